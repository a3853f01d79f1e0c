// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// SourceOpener opens the files that a sender's list names, below the descriptors of the command
// line's arguments.
//
//   SourceRoot::folder ─▶ FolderCache (openat2, beneath, no link) ─▶ openat2(folder, leaf)
//
// No path is resolved from the working directory or from "/" after the command line was checked: a
// user that can write to a tree could exchange a folder of it for a link, and have any file read.
// So a folder that was exchanged for a link is an error, and a file that replaced another has
// another fence. Files of a tree come folder by folder, and each folder is opened once. One thread;
// may block on a slow disk.
#pragma once

#include <sys/stat.h>

#include <memory>
#include <optional>
#include <vector>

#include "engine/base/fd.hpp"
#include "engine/base/result.hpp"
#include "engine/disk/folder_cache.hpp"
#include "engine/list/source_files.hpp"

namespace onehop::list {

class SourceOpener {
 public:
  /// open gives a file's descriptor without a look at what it is: the caller compares its fence
  /// before it reads. A link that is sent as a file may lead nowhere out of its root. Not open:
  /// errno says why. Syscalls: openat2, two where the folder is another one; of a link those of
  /// open_followed().
  [[nodiscard]] Fd open(const SourceNames& names, std::size_t index);
  /// look_at_file is open() for what may be no file any more: a device is not opened. Error:
  /// errno_value 0: something else has its name. Syscalls: those of open(), fstatat, fstat.
  [[nodiscard]] Result<Fd> look_at_file(const SourceNames& names, std::size_t index,
                                        struct stat& status);
  /// look_at_symlink: it is a link, and has no symlink_fault(). Syscalls: openat2, fstatat,
  /// readlinkat.
  [[nodiscard]] Result<void> look_at_symlink(const SourceNames& names, std::size_t index,
                                             struct stat& status);

  /// folder_of is the folder in which an entry's last component stands; -1: errno says why. It
  /// stays open until the next call. Syscalls: openat2, where it is another folder.
  [[nodiscard]] int folder_of(const SourceNames& names, std::size_t index);

 private:
  // Of folders_: they keep its root open.
  std::shared_ptr<const std::vector<SourceRoot>> roots_;
  std::size_t root_ = 0;
  std::optional<disk::FolderCache> folders_;
};

}  // namespace onehop::list
