// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// DigestTree: the root over a file's block digests, which come in any order.
//
//= RFC 6962 §2.1   leaf = H(0x00 || block digest),   node = H(0x01 || left || right)
//
// A tree of n leaves splits at the largest power of two below n, so each of its subtrees but those
// at the right edge has a power of two leaves, and begins at a multiple of that. Two complete
// halves become one. What is kept is O(log n) for each run of blocks that came.
//
// Owned and called by one file thread. H is the block digest's kind. The root of an empty file is
// the digest of the empty string, as in the RFC.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/base/block.hpp"
#include "engine/crypto/digest.hpp"

namespace onehop::crypto {

class DigestTree {
 public:
  explicit DigestTree(DigestKind kind) noexcept : kind_{kind} {}

  /// put takes the digest of the block at `index`, each once.
  void put(std::uint64_t index, const Digest& block_digest);
  /// add takes that of the next one, where they come in order.
  void add(const Digest& block_digest) { put(leaves_, block_digest); }
  /// root of all leaves so far, which begin at 0 and leave none out; more may follow.
  [[nodiscard]] Digest root() const noexcept;
  [[nodiscard]] std::uint64_t leaves() const noexcept { return leaves_; }
  [[nodiscard]] DigestKind kind() const noexcept { return kind_; }

 private:
  struct Subtree {
    std::uint64_t first = 0, leaves = 1;
    Digest digest{};
  };

  DigestKind kind_;
  std::uint64_t leaves_ = 0;
  std::vector<Subtree> subtrees_;  // complete ones that are in no larger one, ascending
};

}  // namespace onehop::crypto
