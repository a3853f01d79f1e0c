// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "engine/crypto/tree.hpp"

#include <algorithm>
#include <initializer_list>

#include "engine/base/check.hpp"

namespace onehop::crypto {

namespace {

// RFC 6962 section 2.1: different prefixes, so that no node can be passed off as a leaf.
constexpr std::byte leaf_prefix{0x00}, node_prefix{0x01};

Digest hash(DigestKind kind, std::byte prefix, std::initializer_list<Digest> parts) noexcept {
  std::array<std::byte, 1 + 2 * sizeof(Digest)> input{prefix};
  auto end = input.begin() + 1;
  for (const Digest& part : parts) end = std::copy_n(part.begin(), digest_bytes(kind), end);
  return block_digest(kind, {input.begin(), end});
}

}  // namespace

void DigestTree::add(const Digest& block_digest) noexcept {
  Digest subtree = hash(kind_, leaf_prefix, {block_digest});
  // Each trailing one-bit of the count is a complete subtree of `subtree`'s size.
  for (std::uint64_t ones = leaves_; (ones & 1) != 0; ones >>= 1) {
    ONEHOP_CHECK(depth_ > 0);
    subtree = hash(kind_, node_prefix, {subtrees_[--depth_], subtree});
  }
  ONEHOP_CHECK(depth_ < depth_max);
  subtrees_[depth_++] = subtree;
  ++leaves_;
}

Digest DigestTree::root() const noexcept {
  if (depth_ == 0) return block_digest(kind_, {});
  Digest root = subtrees_[depth_ - 1];
  for (std::size_t i = depth_ - 1; i-- > 0;) root = hash(kind_, node_prefix, {subtrees_[i], root});
  return root;
}

}  // namespace onehop::crypto
