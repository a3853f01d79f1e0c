// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "engine/disk/confined.hpp"

#include <dirent.h>
#include <linux/openat2.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <memory>

#include "engine/base/display_name.hpp"
#include "engine/base/system/text_file.hpp"
#include "engine/disk/own_names.hpp"

namespace onehop::disk {

namespace {
constexpr mode_t umask_unreadable = 022, probe_mode = 0600;
// EAGAIN: somebody renamed a folder during the walk, and the kernel asks to try again. Higher: a
// hostile renamer holds us longer. Lower: an innocent one fails a transfer.
constexpr int walk_attempts_max = 64;
}  // namespace

Fd open_beneath(int folder, const char* path, int flags, mode_t mode, Links links) noexcept {
  if (!has_openat2()) return walk_beneath(folder, path, flags, mode, links);
  open_how how{};
  how.flags = static_cast<std::uint64_t>(flags) | O_CLOEXEC;
  how.mode = mode;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
  if (links == Links::none) {
    how.flags |= O_NOFOLLOW;
    how.resolve |= RESOLVE_NO_SYMLINKS;
  }
  for (int attempt = 0;; ++attempt) {
    const long fd = ::syscall(SYS_openat2, folder, path, &how, sizeof how);
    if (fd >= 0) return Fd{static_cast<int>(fd)};
    if ((errno != EAGAIN && errno != EINTR) || attempt == walk_attempts_max) return Fd{};
  }
}

int probe(int folder, struct stat& status) {
  Fd file{::openat(folder, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, probe_mode)};
  std::string name;
  if (!file.is_open() && (errno == EOPNOTSUPP || errno == EISDIR || errno == ENOENT)) {
    name = std::string{".onehop-probe"}.append(random_tag());
    file = open_beneath(folder, name, O_RDWR | O_CREAT | O_EXCL, probe_mode);
  }
  // Before its name goes: some FUSE know nothing of a file without one.
  const int errno_value = file.is_open() && ::fstat(file.get(), &status) == 0 ? 0 : errno;
  if (file.is_open() && !name.empty()) unlink_same(folder, name, file.get());
  return errno_value;
}

bool is_own(int folder, uid_t owner) {
  struct stat made {};
  return owner == ::geteuid() || (probe(folder, made) == 0 && made.st_uid == owner);
}

Fd open_own(int folder, const std::string& leaf, struct stat& status, int access) {
  // O_NONBLOCK: a fifo of this name must not stop us. It is refused by its type.
  Fd fd = open_beneath(folder, leaf, access | O_NONBLOCK | O_NOCTTY);
  if (!fd.is_open()) return fd;
  if (::fstat(fd.get(), &status) == 0 && S_ISREG(status.st_mode) && status.st_nlink == 1 &&
      is_own(folder, status.st_uid))
    return fd;
  fd.close();
  errno = EEXIST;
  return fd;
}

Fd open_locked(int folder, const std::string& leaf, struct stat& status, int access) {
  Fd fd = open_own(folder, leaf, status, access);
  if (!fd.is_open()) return fd;
  const bool is_held = ::flock(fd.get(), LOCK_EX | LOCK_NB) != 0;
  // The owner before us may have renamed or removed it between our open and our lock.
  if (is_held || !is_same_inode(folder, leaf, fd.get())) {
    fd.close();
    errno = is_held ? EWOULDBLOCK : EEXIST;
  }
  return fd;
}

int list_names(int folder, std::vector<std::string>& names, std::string_view suffix) {
  const int again = ::openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (again < 0) return errno;
  const std::unique_ptr<DIR, int (*)(DIR*)> entries{::fdopendir(again), &::closedir};
  if (!entries) {
    const int errno_value = errno;
    ::close(again);
    return errno_value;
  }
  while (true) {
    errno = 0;
    const dirent* const entry = ::readdir(entries.get());
    if (entry == nullptr) return errno;
    const std::string_view name = entry->d_name;
    if (name != "." && name != ".." && name.ends_with(suffix)) names.emplace_back(name);
  }
}

std::vector<std::string> list_own(int folder, std::string_view suffix) {
  std::vector<std::string> names;
  if (list_names(folder, names, suffix) != 0) return {std::string{suffix}};
  std::erase_if(names, [&](const std::string& name) { return !is_own_name(name, suffix); });
  std::ranges::sort(names);
  return names;
}

bool set_mode_by_path(int fd, mode_t mode) noexcept {
  return ::chmod(("/proc/self/fd/" + std::to_string(fd)).c_str(), mode) == 0;
}

Fd create_own(int folder, const std::string& leaf, mode_t mode) noexcept {
  Fd fd = open_beneath(folder, leaf, O_RDWR | O_CREAT | O_EXCL, mode);
  struct stat status {};
  if (fd.is_open() && ::fstat(fd.get(), &status) == 0 && (status.st_mode & 0777) != mode)
    static_cast<void>(::fchmod(fd.get(), mode));
  return fd;
}

int make_own_folder(int folder, const std::string& leaf, mode_t mode) noexcept {
  if (::mkdirat(folder, leaf.c_str(), mode) != 0) return errno;
  const Fd fd = open_beneath(folder, leaf, O_PATH | O_DIRECTORY);
  struct stat status {};
  if (fd.is_open() && ::fstat(fd.get(), &status) == 0 && status.st_uid == ::geteuid() &&
      (status.st_mode & 0777) != mode)
    static_cast<void>(set_mode_by_path(fd.get(), mode | (status.st_mode & S_ISGID)));
  return 0;
}

Result<Place> open_place(int root, std::string_view name, bool is_creating) {
  Place place;
  const auto fail = [&](std::string_view folder) {
    return errno_error(
        ExitCode::local_file_error,
        "open the folder '" + display_name(folder) + "' in the destination",
        errno == ELOOP || errno == EXDEV ? "A symbolic link is never followed there" : "");
  };
  place.folder = open_beneath(root, ".", O_RDONLY | O_DIRECTORY);
  if (!place.folder.is_open()) return fail(".");
  for (std::size_t begin = 0;;) {
    const std::size_t slash = name.find('/', begin);
    const std::string component{name.substr(begin, slash - begin)};
    if (slash == std::string_view::npos) {
      place.leaf = component;
      return place;
    }
    const std::string_view path = name.substr(0, slash);
    Fd next = open_beneath(place.folder.get(), component, O_RDONLY | O_DIRECTORY);
    if (!next.is_open() && errno == ENOENT && is_creating) {
      if (::mkdirat(place.folder.get(), component.c_str(), 0777) == 0) {
        place.made.emplace_back(path);
        // The new folder's own name must survive a power cut before a file in it can.
        if (sync_folder(place.folder.get()) != 0) return fail(path);
      } else if (errno != EEXIST) {
        return fail(path);
      }
      next = open_beneath(place.folder.get(), component, O_RDONLY | O_DIRECTORY);
    }
    if (!next.is_open()) return fail(path);
    place.folder = std::move(next);
    begin = slash + 1;
  }
}

bool is_same_inode(int folder, const std::string& leaf, int fd) noexcept {
  struct stat by_name;
  struct stat by_fd;
  if (::fstatat(folder, leaf.c_str(), &by_name, AT_SYMLINK_NOFOLLOW) != 0 ||
      ::fstat(fd, &by_fd) != 0)
    return false;
  return by_name.st_dev == by_fd.st_dev && by_name.st_ino == by_fd.st_ino;
}

/// Two mounts of one disk (bind) have one device, two subvolumes of btrfs one mount.
bool is_same_mount(int folder, int other) noexcept {
  struct statx one {
  }, two{};
  if (::statx(folder, "", AT_EMPTY_PATH, STATX_MNT_ID, &one) == 0 &&
      ::statx(other, "", AT_EMPTY_PATH, STATX_MNT_ID, &two) == 0)
    return one.stx_mnt_id == two.stx_mnt_id && one.stx_dev_major == two.stx_dev_major &&
           one.stx_dev_minor == two.stx_dev_minor;
  // A sandbox without statx. Where the mounts differ a rename fails, and is an error of that name.
  struct stat here {
  }, there{};
  return ::fstat(folder, &here) == 0 && ::fstat(other, &there) == 0 && here.st_dev == there.st_dev;
}

int unlink_same(int folder, const std::string& leaf, int fd) noexcept {
  if (!is_same_inode(folder, leaf, fd)) return ESTALE;
  return ::unlinkat(folder, leaf.c_str(), 0) == 0 ? 0 : errno;
}

int rename_new(int from_folder, const std::string& from, int to_folder,
               const std::string& to) noexcept {
  if (::renameat2(from_folder, from.c_str(), to_folder, to.c_str(), RENAME_NOREPLACE) == 0)
    return 0;
  if (errno != EINVAL && errno != ENOSYS && errno != EPERM) return errno;
  // NFS and some FUSE know no RENAME_NOREPLACE, and EPERM may be a sandbox's answer. A hard link
  // refuses an existing name as well.
  if (::linkat(from_folder, from.c_str(), to_folder, to.c_str(), 0) == 0)
    return ::unlinkat(from_folder, from.c_str(), 0) == 0 ? 0 : errno;
  if (errno != EPERM && errno != ENOSYS && errno != EOPNOTSUPP) return errno;
  // Some have neither (folders of a virtual machine's host, some FUSE).
  struct stat status {};
  if (::fstatat(to_folder, to.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0) return EEXIST;
  if (errno != ENOENT) return errno;
  return ::renameat(from_folder, from.c_str(), to_folder, to.c_str()) == 0 ? 0 : errno;
}

int sync_folder(int folder) noexcept { return ::fsync(folder) == 0 || errno == EINVAL ? 0 : errno; }

mode_t read_umask() {
  TextFile status{"/proc/self/status"};
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("Umask:"))
      return static_cast<mode_t>(std::strtoul(line.c_str() + 6, nullptr, 8)) & 0777;
  return umask_unreadable;
}

}  // namespace onehop::disk
