// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "engine/crypto/tree.hpp"

#include <cstring>
#include <span>

#include "engine/base/check.hpp"

namespace onehop::crypto {

namespace {

// RFC 6962 section 2.1: different prefixes, so that no node can be passed off as a leaf.
constexpr std::byte leaf_prefix{0x00}, node_prefix{0x01};

Digest hash_leaf(DigestKind kind, const Digest& leaf) noexcept {
  std::array<std::byte, 1 + sizeof(Digest)> input;
  const std::size_t bytes = digest_bytes(kind);
  input[0] = leaf_prefix;
  std::memcpy(input.data() + 1, leaf.data(), bytes);
  return block_digest(kind, std::span{input}.first(1 + bytes));
}

Digest hash_node(DigestKind kind, const Digest& left, const Digest& right) noexcept {
  std::array<std::byte, 1 + 2 * sizeof(Digest)> input;
  const std::size_t bytes = digest_bytes(kind);
  input[0] = node_prefix;
  std::memcpy(input.data() + 1, left.data(), bytes);
  std::memcpy(input.data() + 1 + bytes, right.data(), bytes);
  return block_digest(kind, std::span{input}.first(1 + 2 * bytes));
}

}  // namespace

void DigestTree::add(const Digest& block_digest) noexcept {
  Digest subtree = hash_leaf(kind_, block_digest);
  // Each trailing one-bit of the count is a complete subtree of the size that `subtree` has grown
  // to.
  for (std::uint64_t ones = leaves_; (ones & 1) != 0; ones >>= 1) {
    ONEHOP_CHECK(depth_ > 0);
    subtree = hash_node(kind_, subtrees_[--depth_], subtree);
  }
  ONEHOP_CHECK(depth_ < depth_max);
  subtrees_[depth_++] = subtree;
  ++leaves_;
}

Digest DigestTree::root() const noexcept {
  if (depth_ == 0) return block_digest(kind_, {});
  Digest root = subtrees_[depth_ - 1];
  for (std::size_t i = depth_ - 1; i-- > 0;) root = hash_node(kind_, subtrees_[i], root);
  return root;
}

}  // namespace onehop::crypto
