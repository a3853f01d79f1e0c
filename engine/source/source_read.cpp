// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Source, the reads: what is asked of the disk at once, and what came of it.
#include <algorithm>
#include <array>

#include "engine/base/check.hpp"
#include "engine/disk/file_bytes.hpp"
#include "engine/source/source.hpp"

namespace onehop::source {

/// Reads the next block, and of a direct file up to operation_blocks_max, so that the disk is asked
/// less often: a few blocks more than read_ahead_ wants. Returns how many; 0: no slot is free.
std::size_t Source::submit_read() {
  const std::uint32_t file = next_file();
  const std::uint64_t size = size_of(file);
  disk::FileOperation read{.kind = disk::FileOperation::Kind::read,
                           .fd = source_file(file).fd.get(),
                           .offset = next_.block * block_bytes,
                           .tag = first_tag_ + reads_.size()};
  const std::uint64_t left = next_.piece->run.end - next_.block;
  const std::uint64_t wanted =
      next_.way.is_direct() ? std::min<std::uint64_t>(left, disk::operation_blocks_max) : 1;
  std::size_t count = 0;
  for (std::uint32_t slot = 0; count < wanted; ++count) {
    const std::uint64_t block = next_.block + count;
    const bool is_ready = !next_.piece->is_held || is_tag_known(block);
    if (count > 0 && (!is_ready || next_.extents.hole_blocks(block) > 0)) break;
    if (!pool_.lend(slot)) break;
    pool_.make_present(slot + 1);  // btrfs reads directly into pages alone
    const BlockRef next{.data = pool_.data(slot),
                        .offset = block * block_bytes,
                        .file = file,
                        .length = block_length_at(size, block * block_bytes),
                        .slot = slot};
    (count == 0 ? read.buffer : read.more[count - 1]) = next.data;
    read.bytes += next.length;
    reads_.push_back({.block = next, .tag = take_tag(block), .way = next_.way});
  }
  if (count == 0) return 0;
  read.spare_bytes = next_.way.spare(read.bytes);
  reads_[static_cast<std::size_t>(read.tag - first_tag_)].blocks = count;
  io_->submit(read);
  pass_blocks(count);
  return count;
}

void Source::collect_reads() {
  std::array<disk::IoCompletion, disk::io_depth_max> done;
  const std::size_t count = io_->collect(done);
  for (std::size_t i = 0; i < count; ++i) {
    ONEHOP_CHECK(done[i].tag >= first_tag_);
    const auto first = static_cast<std::size_t>(done[i].tag - first_tag_);
    std::int64_t left = done[i].result;
    for (std::size_t at = first, end = first + reads_[first].blocks; at < end; ++at) {
      Read& read = reads_[at];
      read.is_done = true;
      read.result = std::min<std::int64_t>(left, read.block.length);
      if (left > 0) left -= read.result;
    }
  }
}

/// What came of a block. Where direct I/O failed it is read again, through the page cache.
std::int64_t Source::bytes_read(Read& read) {
  const BlockRef& block = read.block;
  const int fd = source_file(block.file).fd.get();
  if (read.result < block.length && read.way.is_direct()) {
    cache_.give_up(fd, read.way, read.result < 0 ? static_cast<int>(-read.result) : 0);
    read.result = disk::read_at(fd, {block.data, block.length}, block.offset);
    if (next_.is_open && next_file() == block.file) next_.way = read.way;
  }
  const std::uint64_t end = block.offset + block.length;
  disk::drop_behind(fd, read.way, end, end == size_of(block.file));
  return read.result;
}

}  // namespace onehop::source
