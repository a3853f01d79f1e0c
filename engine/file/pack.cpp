// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "engine/file/pack.hpp"

#include <algorithm>

#include "engine/crypto/tree.hpp"

namespace onehop::file {

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
  pack.digest_bytes_ = static_cast<std::uint32_t>(crypto::digest_bytes(kind));
  for (std::uint32_t file = 0; file < manifest.files.size(); ++file) {
    if (!is_packable(manifest.files[file]) || !has_digests(actions[file])) continue;
    const auto ordinal = static_cast<std::uint32_t>(pack.entries_.size());
    pack.entries_.push_back(file);
    pack.is_whole_.push_back(actions[file] == FileAction::send);
    const PackPlace place = pack.place_at(manifest, ordinal, pack.bytes_);
    pack.bytes_ = place.end();
    // It is the first of each block that begins in it.
    while (pack.block_firsts_.size() * block_bytes < pack.bytes_)
      pack.block_firsts_.push_back({ordinal, place.offset});
  }
  return pack;
}

bool Pack::contains(std::uint32_t file) const noexcept {
  return std::ranges::binary_search(entries_, file);
}

PackPlace Pack::place_at(const Manifest& manifest, std::uint32_t ordinal,
                         std::uint64_t offset) const noexcept {
  const std::uint64_t size = is_whole_[ordinal] ? manifest.files[entries_[ordinal]].size : 0;
  return {
      .offset = offset, .size = static_cast<std::uint32_t>(size), .digest_bytes = digest_bytes_};
}

PackPlace Pack::place_of_first(const Manifest& manifest, std::uint64_t block) const noexcept {
  const First& first = block_firsts_[static_cast<std::size_t>(block)];
  return place_at(manifest, first.ordinal, first.offset);
}

PackPlace Pack::next(const Manifest& manifest, std::uint32_t ordinal,
                     const PackPlace& place) const noexcept {
  return place_at(manifest, ordinal + 1, place.end());
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

}  // namespace onehop::file
