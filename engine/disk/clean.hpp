// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// clean() removes what dead sessions left in a destination folder and below it.
//
//   ".onehop-stage"                       a stage without a lock
//   ".NAME.part", ".NAME.onehop-journal"  by the journal; a journal alone, too
//   ".NAME.part"                          by a record of its inode in a session's journal
//   ".onehop-session"                     last: without it nothing shows whose a part is
//
// A name alone proves nothing. It keeps what a running session holds under flock, and all that
// belongs to another user, has a second name, or is not a regular file. It follows no links, and
// unlinks the very file that it examined and locked. Any thread may call it; it may block.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "engine/base/result.hpp"

namespace onehop::disk {

struct CleanOptions {
  std::string folder;
  bool is_dry_run = false;  ///< remove nothing
};

/// CleanItem is one thing that has a name which sessions use.
struct CleanItem {
  enum class Outcome : std::uint8_t { removed, kept, failed };
  Outcome outcome = Outcome::kept;
  std::string path;         ///< below the folder; bytes: display_name() is for terminals
  std::string cause;        ///< why it is still there
  std::uint64_t bytes = 0;  ///< room on the disk, of what was removed
};

/// clean reports each thing as it goes, `failed` also folders that cannot be read. Error: the
/// folder itself cannot be opened. Syscalls: openat2, fstatat, statx, flock, getdents64, pread,
/// unlinkat.
[[nodiscard]] Result<void> clean(const CleanOptions& options,
                                 const std::function<void(const CleanItem&)>& report);

}  // namespace onehop::disk
