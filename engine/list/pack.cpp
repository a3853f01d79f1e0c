// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "engine/list/pack.hpp"

#include <algorithm>

#include "engine/crypto/content_mac.hpp"
#include "engine/crypto/tree.hpp"

namespace onehop::list {

bool has_pack(const Manifest& manifest) noexcept {
  std::size_t small = 0;
  for (const ManifestEntry& entry : manifest.files) {
    if (entry.is_folder() || entry.is_symlink()) return true;
    small += is_packable(entry) ? 1 : 0;
  }
  return small >= packed_files_min;
}

Pack Pack::make(const Manifest& manifest, crypto::DigestKind kind,
                std::span<const FileAction> actions) {
  Pack pack;
  if (!has_pack(manifest)) return pack;
  for (std::uint32_t file = 0; file < manifest.files.size(); ++file) {
    if (!is_packable(manifest.files[file]) || !has_digests(actions[file])) continue;
    const bool is_whole = actions[file] == FileAction::send;
    pack.entries_.push_back(file);
    pack.is_whole_.push_back(is_whole);
    pack.ends_.push_back(pack.bytes() +
                         (is_whole ? manifest.files[file].size + crypto::digest_bytes(kind)
                                   : crypto::content_tag_bytes));
  }
  return pack;
}

bool Pack::contains(std::uint32_t file) const noexcept {
  return std::ranges::binary_search(entries_, file);
}

std::uint32_t Pack::first_of(std::uint64_t block) const noexcept {
  const auto first = std::ranges::upper_bound(ends_, block * block_bytes);
  return static_cast<std::uint32_t>(first - ends_.begin());
}

Digest record_root(crypto::DigestKind kind, std::span<const std::byte> content) noexcept {
  return record_root(kind, content.size(), crypto::block_digest(kind, content));
}

Digest record_root(crypto::DigestKind kind, std::uint64_t size,
                   const Digest& block_digest) noexcept {
  crypto::DigestTree tree{kind};
  if (size > 0) tree.add(block_digest);
  return tree.root();
}

std::vector<std::uint64_t> block_sizes(const Manifest& manifest, const Pack& pack,
                                       std::span<const FileAction> actions) {
  std::vector<std::uint64_t> sizes;
  sizes.reserve(manifest.files.size() + 1);
  for (std::size_t entry = 0; entry < manifest.files.size(); ++entry)
    sizes.push_back(has_digests(actions[entry]) ? manifest.files[entry].size : file_without_blocks);
  for (const std::uint32_t file : pack.entries()) sizes[file] = file_without_blocks;
  sizes.push_back(pack.is_empty() ? file_without_blocks : pack.bytes());
  return sizes;
}

}  // namespace onehop::list
