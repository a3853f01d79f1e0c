// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Extents: which blocks of a file lie wholly in one of its holes, as its file system tells.
//
//   block     | data | data, hole | hole | hole | hole, data | data |
//   answer       0         0          2      1        0          0
//
// A file of one block, or one that takes all the room of its size, is not asked about. A file
// system that does not tell has no holes for us. What it tells may be out of date when it is used:
// the fence of a source finds that. One thread.
#pragma once

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <limits>

#include "engine/base/block.hpp"
#include "engine/disk/file_bytes.hpp"

namespace onehop::disk {

class Extents {
 public:
  /// A file without holes.
  Extents() = default;
  /// One that is shorter than `size` has no holes either: behind its end is nothing. Syscalls:
  /// fstat, where `size` is several blocks.
  Extents(int fd, std::uint64_t size) noexcept : fd_{fd}, size_{size} {
    struct stat status {};
    if (size > block_bytes && ::fstat(fd, &status) == 0 && disk_bytes(status) < size &&
        static_cast<std::uint64_t>(status.st_size) >= size)
      known_end_ = 0;
  }

  /// hole_blocks is how many blocks from `block` on lie in a hole, at most hole_blocks_max; 0: this
  /// one has data. `block` is in the file, and never below that of the call before. Syscalls:
  /// lseek, three per hole at most.
  [[nodiscard]] std::uint64_t hole_blocks(std::uint64_t block) noexcept {
    if (block >= known_end_) look(block);
    return is_hole_ ? std::min(known_end_ - block, hole_blocks_max) : 0;
  }

 private:
  static constexpr std::uint64_t all = std::numeric_limits<std::uint64_t>::max();

  void look(std::uint64_t block) noexcept {
    const off_t data = ::lseek(fd_, static_cast<off_t>(block * block_bytes), SEEK_DATA);
    if (data < 0) {
      is_hole_ = errno == ENXIO;  // nothing but a hole from here on
      known_end_ = is_hole_ ? blocks_of(size_) : all;
      return;
    }
    const std::uint64_t first = static_cast<std::uint64_t>(data) / block_bytes;
    is_hole_ = first > block;
    if (is_hole_) {
      known_end_ = std::min(first, blocks_of(size_));
      return;
    }
    const off_t hole = ::lseek(fd_, data, SEEK_HOLE);
    known_end_ = hole > data ? (static_cast<std::uint64_t>(hole) - 1) / block_bytes + 1 : block + 1;
  }

  int fd_ = -1;
  std::uint64_t size_ = 0;
  std::uint64_t known_end_ = all;  // what is_hole_ says holds for all blocks up to here
  bool is_hole_ = false;
};

}  // namespace onehop::disk
