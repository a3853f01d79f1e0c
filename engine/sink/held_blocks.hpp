// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// HeldBlocks: blocks of an entry that are there already, as HeldReader has read them. Of each the
// sender is told a tag, and the tree takes the digest (crypto/content_mac.hpp).
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <vector>

#include "engine/base/block.hpp"
#include "engine/crypto/content_mac.hpp"
#include "engine/crypto/digest.hpp"
#include "engine/disk/extents.hpp"
#include "engine/disk/page_cache.hpp"
#include "engine/disk/zero_block.hpp"

namespace onehop::sink {

struct HeldBlock {
  Digest digest{};
  Digest tag{};  ///< by which it is compared: crypto::ContentMac
};

struct HeldBlocks {
  std::vector<Claim> claims;    ///< ascending, with tags
  std::vector<Digest> digests;  ///< of the same blocks
  void add(std::uint64_t block, const HeldBlock& held) {
    claims.push_back({block, held.tag});
    digests.push_back(held.digest);
  }
  [[nodiscard]] std::optional<HeldBlock> find(std::uint64_t block) const {
    const auto at = std::ranges::lower_bound(claims, block, {}, &Claim::block);
    if (at == claims.end() || at->block != block) return std::nullopt;
    return HeldBlock{digests[static_cast<std::size_t>(at - claims.begin())], at->digest};
  }
};

class HeldReader {
 public:
  HeldReader(crypto::DigestKind kind, const crypto::CompareKey& key, disk::DirectIo direct_io,
             std::stop_token withdrawn)
      : kind_{kind}, mac_{key}, cache_{direct_io}, withdrawn_{std::move(withdrawn)} {}

  /// read gives those of the listed blocks, which ascend, that can be read, as they are on the disk
  /// now. What lies in a hole is not read. It ends early when it is withdrawn. Syscalls: lseek,
  /// those of PageCache.
  [[nodiscard]] HeldBlocks read(int fd, std::uint64_t size, const std::vector<Claim>& listed) {
    HeldBlocks found;
    found.claims.reserve(listed.size());
    found.digests.reserve(listed.size());
    disk::Extents extents{fd, size};
    disk::CacheWay way = cache_.choose(fd, size);
    for (const Claim& claim : listed) {
      if (withdrawn_.stop_requested()) break;
      const std::uint32_t length = block_length_at(size, claim.block * block_bytes);
      const std::span<std::byte> content = buffer().first(length);
      if (extents.hole_blocks(claim.block) > 0)
        found.add(claim.block, {disk::zero_digest(kind_, length), mac_.zero_tag(length)});
      else if (cache_.read(fd, way, buffer(), length, claim.block * block_bytes) == length)
        found.add(claim.block, hash(content));
    }
    if (way.is_direct()) disk::set_direct(fd, false);
    return found;
  }
  /// hash: what a block is to the tree, and to the sender.
  [[nodiscard]] HeldBlock hash(std::span<const std::byte> content) {
    return {.digest = crypto::block_digest(kind_, content), .tag = mac_.tag(content)};
  }
  /// buffer has room for a block.
  [[nodiscard]] std::span<std::byte> buffer() { return *buffer_; }

 private:
  const crypto::DigestKind kind_;
  crypto::ContentMac mac_;
  disk::PageCache cache_;
  const std::stop_token withdrawn_;
  struct alignas(disk::page_bytes) Buffer : std::array<std::byte, block_bytes> {};
  const std::unique_ptr<Buffer> buffer_ = std::make_unique<Buffer>();
};

}  // namespace onehop::sink
