// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "engine/crypto/tree.hpp"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <ranges>

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

void DigestTree::put(std::uint64_t index, const Digest& block_digest) {
  auto at = subtrees_.insert(std::ranges::upper_bound(subtrees_, index, {}, &Subtree::first),
                             {.first = index, .digest = hash(kind_, leaf_prefix, {block_digest})});
  ++leaves_;
  for (;;) {
    const bool is_right = (at->first & at->leaves) != 0;
    if (at == (is_right ? subtrees_.begin() : subtrees_.end() - 1)) return;
    const auto left = is_right ? at - 1 : at, right = left + 1;
    if (left->leaves != right->leaves || left->first + left->leaves != right->first) return;
    left->digest = hash(kind_, node_prefix, {left->digest, right->digest});
    left->leaves *= 2;
    subtrees_.erase(right);
    at = left;
  }
}

Digest DigestTree::root() const noexcept {
  if (subtrees_.empty()) return block_digest(kind_, {});
  Digest root = subtrees_.back().digest;
  for (const Subtree& left : subtrees_ | std::views::reverse | std::views::drop(1))
    root = hash(kind_, node_prefix, {left.digest, root});
  return root;
}

}  // namespace onehop::crypto
