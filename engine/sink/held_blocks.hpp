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

struct HeldDigests {
  Digest digest{};
  Digest tag{};  ///< by which it is compared: crypto::ContentMac
};

struct HeldBlocks {
  std::vector<Claim> claims;    ///< ascending, with tags
  std::vector<Digest> digests;  ///< of the same blocks
  void add(std::uint64_t block, const HeldDigests& held) {
    claims.push_back({block, held.tag});
    digests.push_back(held.digest);
  }
  [[nodiscard]] std::optional<HeldDigests> find(std::uint64_t block) const {
    const auto at = std::ranges::lower_bound(claims, block, {}, &Claim::block);
    if (at == claims.end() || at->block != block) return std::nullopt;
    return HeldDigests{digests[static_cast<std::size_t>(at - claims.begin())], at->digest};
  }
};

class HeldReader {
 public:
  HeldReader(crypto::DigestKind kind, const crypto::CompareKey& key, disk::DirectIo direct_io,
             std::stop_token withdrawn)
      : kind_{kind}, mac_{key}, cache_{direct_io}, withdrawn_{std::move(withdrawn)} {}

  /// read gives the blocks of a file that can be read, as they are on the disk now. It ends early
  /// when it is withdrawn. Syscalls: as read_block.
  [[nodiscard]] HeldBlocks read(int fd, std::uint64_t size) {
    HeldBlocks found;
    begin(fd, size);
    for (std::uint64_t block = 0; block < blocks_of(size) && !withdrawn_.stop_requested(); ++block)
      if (const auto held = read_block(block)) found.add(block, *held);
    return found;
  }
  /// begin: the next blocks are those of `fd`, which nobody else reads or writes by. Syscalls:
  /// those of Extents and PageCache.
  void begin(int fd, std::uint64_t size) {
    file_ = {.fd = fd, .size = size, .extents = {fd, size}, .way = cache_.choose(fd, size)};
  }
  /// read_block does not read what lies in a hole. Nothing: it cannot be read. Blocks ascend.
  /// Syscalls: lseek, those of PageCache.
  [[nodiscard]] std::optional<HeldDigests> read_block(std::uint64_t block) {
    const std::uint32_t length = block_length_at(file_.size, block * block_bytes);
    if (file_.extents.hole_blocks(block) > 0)
      return HeldDigests{disk::zero_digest(kind_, length), mac_.zero_tag(length)};
    if (cache_.read(file_.fd, file_.way, buffer(), length, block * block_bytes) != length)
      return std::nullopt;
    return hash(buffer().first(length));
  }
  /// hash: what a block is to the tree, and to the sender.
  [[nodiscard]] HeldDigests hash(std::span<const std::byte> content) {
    return {.digest = crypto::block_digest(kind_, content), .tag = mac_.tag(content)};
  }
  /// buffer has room for a block.
  [[nodiscard]] std::span<std::byte> buffer() { return *buffer_; }

 private:
  const crypto::DigestKind kind_;
  crypto::ContentMac mac_;
  disk::PageCache cache_;
  const std::stop_token withdrawn_;
  struct {
    int fd = -1;
    std::uint64_t size = 0;
    disk::Extents extents;
    disk::CacheWay way;
  } file_;
  struct alignas(disk::page_bytes) Buffer : std::array<std::byte, block_bytes> {};
  const std::unique_ptr<Buffer> buffer_ = std::make_unique<Buffer>();
};

}  // namespace onehop::sink
