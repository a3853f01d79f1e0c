// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Stage: the folder in the destination where packed files lie until they are complete, verified and
// durable.
//
//   ".onehop-stage/1f"  ─▶ rename ─▶ "photos/a.jpg"
//
// If another user has that name, it is called ".0123456789abcdef.onehop-stage", at random.
//
// Its mode is 0700 and we own it, so no other user reads or plants a file in it. Its session holds
// its flock. A NameProbe tries names in one, in folders of their own. The next session removes what
// a dead one left: only files with names that a Stage makes, and folders of a NameProbe with only
// empty files, if the stage holds nothing else. It accepts a file system without modes (FAT). One
// thread at a time.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <span>
#include <string>

#include "engine/base/fd.hpp"

namespace onehop::disk {

/// probe_folder_name_of is that of a NameProbe's folder for the path of this hash.
[[nodiscard]] std::string probe_folder_name_of(std::span<const std::byte> hash);

class Stage {
 public:
  /// open makes or takes over a stage below `root`, which outlives it. 0 or errno. Syscalls:
  /// mkdirat, openat2, flock, getdents64, unlinkat.
  [[nodiscard]] int open(int root);
  [[nodiscard]] bool is_open() const noexcept { return folder_.is_open(); }
  [[nodiscard]] int fd() const noexcept { return folder_.get(); }

  /// mode_of_new_folder is what mkdirat leaves of 0777 in here; mostly that is the umask's doing,
  /// or a default ACL's. Syscalls: mkdirat, fstatat, unlinkat.
  [[nodiscard]] mode_t mode_of_new_folder() const;

  /// name_of is the leaf of the file with this index on the wire.
  [[nodiscard]] static std::string name_of(std::uint32_t file);
  /// create makes the one of `file`, new, to write and read. Not open: errno says why.
  /// Syscalls: openat2.
  [[nodiscard]] Fd create(std::uint32_t file, mode_t mode) const noexcept;
  /// create_symlink makes a link. The descriptor is one of O_PATH. Syscalls: symlinkat, utimensat,
  /// openat.
  [[nodiscard]] Fd create_symlink(std::uint32_t file, const std::string& target,
                                  std::int64_t mtime_ns) const noexcept;

  /// take holds the stage that a session which died left below `root` as `name`, with what lies in
  /// it. 0 or errno; EWOULDBLOCK: a session holds it; EEXIST: it is not a stage of ours, or holds
  /// something else. Syscalls: openat2, fstat, flock, getdents64, fstatat; fchmod where its mode is
  /// another one.
  [[nodiscard]] int take(int root, const std::string& name);
  /// left_bytes: what lay in a stage when it was taken, in bytes on the disk.
  [[nodiscard]] std::uint64_t left_bytes() const noexcept { return left_bytes_; }

  /// remove_left removes the stages that sessions which died left below `root`. What cannot be
  /// removed stays, and so does what a session holds. Syscalls: as take and remove.
  static void remove_left(int root);

  /// remove takes the stage and what is left in it away. 0 or errno. Syscalls: getdents64,
  /// unlinkat.
  int remove() noexcept;

 private:
  void empty() noexcept;

  int root_ = -1;
  std::uint64_t left_bytes_ = 0;
  std::string name_;
  Fd folder_;
};

}  // namespace onehop::disk
