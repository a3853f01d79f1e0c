// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// FileVolume: a run of a session's files, by index on the wire, and which of their blocks are
// whole. Sizes are what the peer claims, so no memory follows them: the whole blocks are a few
// ranges, as a sender sends them in order.
//
//   index    first_file    first_file + 1     ...    end_file - 1
//   size     300 KiB       without blocks            of the pack
//   blocks   0  1          (it is packed)            2  3  4
//
// Any thread builds it, which allocates here. From CommandKind::add_files on the engine core alone
// touches it, and neither allocates nor frees, until is_released(). Then its owner may free it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/base/block.hpp"
#include "engine/protocol/range_set.hpp"

namespace onehop::protocol {

class FileVolume {
 public:
  /// The files' sizes, from the index first_file on; file_without_blocks: none of its own. The
  /// pack's size is one of them.
  FileVolume(std::uint32_t first_file, std::span<const std::uint64_t> sizes)
      : first_file_{first_file}, sizes_{sizes.begin(), sizes.end()} {
    first_block_.reserve(sizes_.size());
    for (const std::uint64_t size : sizes_) {
      first_block_.push_back(left_);
      if (size != file_without_blocks) left_ += blocks_of(size);
    }
  }
  FileVolume(const FileVolume&) = delete;
  FileVolume& operator=(const FileVolume&) = delete;

  /// is_released: the engine has let go of it; its owner polls this, on any thread.
  [[nodiscard]] bool is_released() const noexcept {
    return is_released_.load(std::memory_order_acquire);
  }

  // --- any thread: these never change
  [[nodiscard]] std::uint32_t first_file() const noexcept { return first_file_; }
  [[nodiscard]] std::uint32_t end_file() const noexcept {
    return first_file_ + static_cast<std::uint32_t>(sizes_.size());
  }
  [[nodiscard]] bool contains(std::uint32_t file) const noexcept {
    return file - first_file_ < sizes_.size();  // below first_file_ it wraps around
  }
  /// size_of, and all that takes a file: one that it contains.
  [[nodiscard]] std::uint64_t size_of(std::uint32_t file) const noexcept {
    return sizes_[file - first_file_];
  }

  // --- engine core
  /// is_done, mark_done: of the block at `offset`, below the file's size. mark_done is true where
  /// it was not done before, and there was room.
  [[nodiscard]] bool is_done(std::uint32_t file, std::uint64_t offset) const noexcept {
    const std::uint64_t number = number_of(file, offset);
    return done_.relation(number, number + 1) == DoneBlocks::Relation::present;
  }
  bool mark_done(std::uint32_t file, std::uint64_t offset) noexcept {
    const std::uint64_t number = number_of(file, offset);
    if (is_done(file, offset) || !done_.can_add(number, number + 1)) return false;
    done_.add(number, number + 1);
    --left_;
    return true;
  }
  /// has_room: so many blocks can be marked, whichever they are.
  [[nodiscard]] bool has_room(std::size_t blocks) const noexcept {
    return done_.size() + blocks <= DoneBlocks::ranges_max;
  }
  [[nodiscard]] std::uint64_t blocks_left() const noexcept { return left_; }
  /// release is the last that the engine does with it.
  void release() noexcept { is_released_.store(true, std::memory_order_release); }

 private:
  /// Between two ranges lies a block that was begun: of those a sender has no more than its own
  /// buffers and the receiver's, 224. Fewer than that: its blocks are refused. More: each volume
  /// takes 16 bytes for each.
  using DoneBlocks = RangeSet<std::uint64_t, 1024>;

  [[nodiscard]] std::uint64_t number_of(std::uint32_t file, std::uint64_t offset) const noexcept {
    return first_block_[file - first_file_] + offset / block_bytes;
  }

  const std::uint32_t first_file_;
  const std::vector<std::uint64_t> sizes_;
  std::vector<std::uint64_t> first_block_;  // by file: number of its first block
  DoneBlocks done_;
  std::uint64_t left_ = 0;
  std::atomic<bool> is_released_{false};  // release in release(), acquire in is_released()
};

}  // namespace onehop::protocol
