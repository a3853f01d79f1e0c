// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Room: what files take of a file system, in bytes and in inodes, held against what it says it has.
// Pure. Any thread.
#pragma once

#include <sys/statvfs.h>

#include <cstdint>

#include "engine/base/result.hpp"

namespace onehop::file {

struct Room {
  std::uint64_t bytes = 0;
  std::uint64_t files = 0;  ///< inodes: files and folders
};

/// check_room: `needed` fits on the disk beside `reserve` and what is `taken` and not used yet. A
/// file system that counts no inodes (f_files is 0) has as many as it needs. What is not needed is
/// not looked at. Error: exit 8 with ENOSPC, which says how much is needed and there.
[[nodiscard]] Result<void> check_room(const Room& needed, const Room& taken, const Room& reserve,
                                      const struct statvfs& disk);

}  // namespace onehop::file
