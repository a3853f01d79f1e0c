// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// DigestTree: the root over a file's block digests, built leaf by leaf in O(log n) memory.
//
//= RFC 6962 §2.1   leaf = H(0x00 || block digest),   node = H(0x01 || left || right)
//
// A tree of n leaves splits at the largest power of two below n. So the complete subtrees so far
// are exactly the one-bits of n; they are kept on a stack, and equal ones merge.
//
// Owned and called by one file thread. It allocates nothing. H is the block digest's kind. The root
// of an empty file is the digest of the empty string, as in the RFC.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "engine/base/block.hpp"
#include "engine/crypto/digest.hpp"

namespace onehop::crypto {

class DigestTree {
 public:
  explicit DigestTree(DigestKind kind) noexcept : kind_{kind} {}

  /// add appends the digest of the next block, in file order.
  void add(const Digest& block_digest) noexcept;
  /// root of all leaves so far; more may be added afterwards.
  [[nodiscard]] Digest root() const noexcept;
  [[nodiscard]] std::uint64_t leaves() const noexcept { return leaves_; }
  [[nodiscard]] DigestKind kind() const noexcept { return kind_; }

 private:
  static constexpr std::size_t depth_max = 64;  // one subtree per bit of leaves_

  DigestKind kind_;
  std::uint64_t leaves_ = 0;
  std::size_t depth_ = 0;
  std::array<Digest, depth_max> subtrees_{};  // the first depth_ are in use, largest first
};

}  // namespace onehop::crypto
