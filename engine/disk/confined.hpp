// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Confined paths: every call below a destination folder, and every open below a sent path, goes
// through here, by its descriptor.
//
// openat2 with RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS: the kernel itself
// refuses to leave the folder, even if another process puts a link there between two calls. A path
// from a peer is never passed to a call that follows links. Where openat2 is missing, walk.hpp does
// the same. The functions return descriptors or
// errno values and keep nothing. A file thread or set-up calls them.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

#include "engine/base/fd.hpp"
#include "engine/base/result.hpp"
#include "engine/disk/walk.hpp"

namespace onehop::disk {

/// open_beneath opens `path` with O_CLOEXEC, and with O_NOFOLLOW for Links::none, or sets errno.
/// Syscalls: openat2, or those of walk_beneath.
[[nodiscard]] Fd open_beneath(int folder, const char* path, int flags, mode_t mode = 0,
                              Links links = Links::none) noexcept;
[[nodiscard]] inline Fd open_beneath(int folder, const std::string& path, int flags,
                                     mode_t mode = 0, Links links = Links::none) noexcept {
  return open_beneath(folder, path.c_str(), flags, mode, links);
}

/// Place: the folder of a manifest name, and the last component.
struct Place {
  Fd folder;
  std::string leaf;
  /// Folders that this call created, as paths below the root, outermost first.
  std::vector<std::string> made;
};

/// probe makes a file in `folder`, which is gone when it returns. `status` shows its owner. 0 or
/// errno. Syscalls: openat, fstat; openat2 and unlinkat on file systems without O_TMPFILE.
[[nodiscard]] int probe(int folder, struct stat& status);
/// is_own: `owner` is the owner that a file system gives to what we make in `folder`. Mostly that
/// is our user. On FAT, NTFS or CIFS mounted with one owner, or NFS that squashes users, it is
/// another one, which has every right to all that we make there anyway. Syscalls: for another user
/// those of probe.
/// probe.
[[nodiscard]] bool is_own(int folder, uid_t owner);
/// open_own opens an existing file to read and write, if it is ours: a regular file that is_own()
/// with no second name. Not open: errno says why, and EEXIST that it is not ours. `status` is
/// filled where it is open. Syscalls: openat2, fstat; is_own().
[[nodiscard]] Fd open_own(int folder, const std::string& leaf, struct stat& status,
                          int access = O_RDWR);
/// open_locked is open_own for a file without a flock; it holds the flock from then on. Not open:
/// EWOULDBLOCK means that another process holds it. A file that lost its name meanwhile is not
/// ours. Syscalls: openat2, fstat, flock, fstatat; is_own().
[[nodiscard]] Fd open_locked(int folder, const std::string& leaf, struct stat& status,
                             int access = O_RDWR);

/// list_names adds the names in `folder` that end in `suffix`, without "." and "..". 0 or errno.
/// Syscalls: openat, getdents64.
[[nodiscard]] int list_names(int folder, std::vector<std::string>& names,
                             std::string_view suffix = {});
/// list_own gives the names in `folder` that is_own_name(). Of a folder that cannot be read: the
/// first. Syscalls: as list_names.
[[nodiscard]] std::vector<std::string> list_own(int folder, std::string_view suffix);

/// set_mode_by_path is fchmod, also of what was opened with O_PATH. Syscalls: chmod.
[[nodiscard]] bool set_mode_by_path(int fd, mode_t mode) noexcept;
/// create_own makes a file of ours that was not there, to read and write, and make_own_folder a
/// folder: with this very mode, whatever the umask leaves of it. Not open: errno says why; 0 or
/// errno. Syscalls: openat2, fstat, fchmod; mkdirat, openat2, fstat, chmod.
[[nodiscard]] Fd create_own(int folder, const std::string& leaf, mode_t mode) noexcept;
[[nodiscard]] int make_own_folder(int folder, const std::string& leaf, mode_t mode) noexcept;

/// open_place walks to the folder of `name`. With `is_creating` missing folders are made (mode 0777
/// less umask). Fails with errno in the Error. Syscalls: openat2, mkdirat.
[[nodiscard]] Result<Place> open_place(int root, std::string_view name, bool is_creating);

/// is_same_inode: does `leaf` still name the file behind `fd`? Syscalls: fstat, fstatat.
[[nodiscard]] bool is_same_inode(int folder, const std::string& leaf, int fd) noexcept;
/// is_same_mount: the kernel renames files from one of the folders to the other. Syscalls: statx,
/// else fstat.
[[nodiscard]] bool is_same_mount(int folder, int other) noexcept;
/// unlink_same removes `leaf`, if it is the file behind `fd`. 0 or errno, ESTALE: it is another
/// file. Syscalls: fstat, fstatat, unlinkat.
int unlink_same(int folder, const std::string& leaf, int fd) noexcept;

/// rename_new gives `from` the name `to`, never over anything; on file systems that have neither
/// RENAME_NOREPLACE nor hard links a name that comes up at this very moment is lost. 0 or errno.
/// Syscalls: renameat2; linkat, unlinkat; fstatat, renameat.
[[nodiscard]] int rename_new(int from_folder, const std::string& from, int to_folder,
                             const std::string& to) noexcept;

/// sync_folder: 0 or errno; a folder that its file system cannot sync is no error. Syscalls: fsync.
[[nodiscard]] int sync_folder(int folder) noexcept;

/// read_umask does not change it, unlike umask(2), a race of threads. Reads /proc/self/status.
[[nodiscard]] mode_t read_umask();

}  // namespace onehop::disk
