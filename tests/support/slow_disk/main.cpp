// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// onehop-slow-disk BACKING MOUNT [--rate 300Mbit] [--read-rate 40Mbit] [--stall AT:FOR]...
//   [--error CALL[@BYTES][:NAME]=ERRNO]... [--fat] [--owner UID] [--name BYTES]
//
// A FUSE file system that passes everything through to a folder, as slowly and as badly as asked: a
// byte rate on writes and on reads, times at which nothing moves, and errors at write (from a
// number of bytes on, like a disk that fills up), read (of one file), fsync, rename, open, and at
// what some file systems do not have: chmod, utimens, link, fallocate, fsync of a folder, rename
// with flags. With --fat it has FAT's names, and keeps no modes; with --owner all belongs to that
// user, whoever made it, and may be written by everybody; with --name a name has so many bytes at
// most, whatever statfs says. Locks (flock) are the kernel's own.
// It stays in the foreground and unmounts itself on SIGTERM or SIGINT. A test fixture: it keeps no
// state and protects nothing.
#define FUSE_USE_VERSION 31
#include <dirent.h>
#include <fcntl.h>
#include <fuse3/fuse.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>

#include "tests/support/slow_disk/fat_names.hpp"
#include "tests/support/slow_disk/plan.hpp"

namespace {

using onehop::slow_disk::Plan;

int backing = -1;         // the folder; set once in main(), as is
bool is_fat = false;      // --fat
unsigned owner = 0;       // --owner; 0: as it is
unsigned name_bytes = 0;  // --name; 0: as the backing has them
Plan& plan() { return *static_cast<Plan*>(fuse_get_context()->private_data); }

/// FUSE paths are absolute within the mount; ours are relative to `backing`.
std::string relative(const char* path) {
  if (path[1] == '\0') return ".";
  return is_fat ? onehop::slow_disk::fat_path(backing, path + 1) : path + 1;
}
/// name_fault: 0, or the errno for which nothing new may have this name.
int name_fault(const char* path) {
  const std::string_view leaf =
      std::string_view{path}.substr(std::string_view{path}.rfind('/') + 1);
  if (name_bytes != 0 && leaf.size() > name_bytes) return ENAMETOOLONG;
  return is_fat && !onehop::slow_disk::is_fat_name(path) ? EINVAL : 0;
}
int handle(const fuse_file_info* info) { return static_cast<int>(info->fh); }
int outcome(int rc) { return rc == 0 ? 0 : -errno; }

void* on_init(fuse_conn_info*, fuse_config* config) {
  config->use_ino = 1;      // names and descriptors must show one inode
  config->hard_remove = 1;  // no ".fuse_hidden" names: a test looks at what is left in the folder
  config->nullpath_ok = 0;
  config->entry_timeout = config->attr_timeout = config->negative_timeout = 0;
  return fuse_get_context()->private_data;
}

int on_getattr(const char* path, struct stat* status, fuse_file_info* info) {
  const int rc = info != nullptr && info->fh != 0
                     ? ::fstat(handle(info), status)
                     : ::fstatat(backing, relative(path).c_str(), status, AT_SYMLINK_NOFOLLOW);
  if (rc == 0 && owner != 0) {
    status->st_uid = owner;
    status->st_mode |= 0777U;
  }
  if (rc == 0 && is_fat) status->st_mode = (status->st_mode & S_IFMT) | 0755U;
  return outcome(rc);
}

int on_readlink(const char* path, char* target, std::size_t bytes) {
  const ssize_t length = ::readlinkat(backing, relative(path).c_str(), target, bytes - 1);
  if (length < 0) return -errno;
  target[length] = '\0';
  return 0;
}

/// What is made belongs to who asked for it, not to who serves: under sudo a receiver has given its
/// privileges up.
int give_to_caller(const char* path) {
  const fuse_context* const caller = fuse_get_context();
  if (::geteuid() != 0) return 0;
  return outcome(
      ::fchownat(backing, relative(path).c_str(), caller->uid, caller->gid, AT_SYMLINK_NOFOLLOW));
}

int on_mkdir(const char* path, mode_t mode) {
  if (const int fault = name_fault(path); fault != 0) return -fault;
  const int made = outcome(::mkdirat(backing, relative(path).c_str(), mode));
  return made == 0 ? give_to_caller(path) : made;
}
int on_unlink(const char* path) { return outcome(::unlinkat(backing, relative(path).c_str(), 0)); }
int on_rmdir(const char* path) {
  return outcome(::unlinkat(backing, relative(path).c_str(), AT_REMOVEDIR));
}
int on_symlink(const char* target, const char* path) {
  if (const int fault = name_fault(path); fault != 0) return -fault;
  return outcome(::symlinkat(target, backing, relative(path).c_str()));
}
int on_link(const char* from, const char* to) {
  if (is_fat) return -EPERM;
  if (const int error = plan().fault("link"); error != 0) return -error;
  return outcome(::linkat(backing, relative(from).c_str(), backing, relative(to).c_str(), 0));
}

int on_rename(const char* from, const char* to, unsigned flags) {
  if (const int fault = name_fault(to); fault != 0) return -fault;
  if (const int error = plan().fault("rename"); error != 0) return -error;
  if (const int error = flags != 0 ? plan().fault("noreplace") : 0; error != 0) return -error;
  return outcome(
      ::renameat2(backing, relative(from).c_str(), backing, relative(to).c_str(), flags));
}

int on_chmod(const char* path, mode_t mode, fuse_file_info* info) {
  if (const int error = plan().fault("chmod"); error != 0) return -error;
  if (is_fat) return 0;
  return outcome(info != nullptr ? ::fchmod(handle(info), mode)
                                 : ::fchmodat(backing, relative(path).c_str(), mode, 0));
}
int on_chown(const char* path, uid_t uid, gid_t gid, fuse_file_info*) {
  return outcome(::fchownat(backing, relative(path).c_str(), uid, gid, AT_SYMLINK_NOFOLLOW));
}
int on_utimens(const char* path, const timespec times[2], fuse_file_info* info) {
  if (const int error = plan().fault("utimens"); error != 0) return -error;
  return outcome(info != nullptr
                     ? ::futimens(handle(info), times)
                     : ::utimensat(backing, relative(path).c_str(), times, AT_SYMLINK_NOFOLLOW));
}

int on_truncate(const char* path, off_t size, fuse_file_info* info) {
  if (info != nullptr) return outcome(::ftruncate(handle(info), size));
  const int fd = ::openat(backing, relative(path).c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return -errno;
  const int result = outcome(::ftruncate(fd, size));
  ::close(fd);
  return result;
}

int open_file(const char* path, int flags, mode_t mode, fuse_file_info* info) {
  if (const int error = plan().fault("open"); error != 0) return -error;
  const int fd = ::openat(backing, relative(path).c_str(), flags | O_CLOEXEC | O_NOFOLLOW, mode);
  if (fd < 0) return -errno;
  info->fh = static_cast<std::uint64_t>(fd);
  return 0;
}
int on_open(const char* path, fuse_file_info* info) {
  return open_file(path, info->flags, 0, info);
}
int on_create(const char* path, mode_t mode, fuse_file_info* info) {
  if (const int fault = name_fault(path); fault != 0) return -fault;
  const int made = open_file(path, info->flags | O_CREAT, mode, info);
  return made == 0 ? give_to_caller(path) : made;
}
int on_release(const char*, fuse_file_info* info) { return outcome(::close(handle(info))); }

int on_read(const char* path, char* buffer, std::size_t bytes, off_t offset, fuse_file_info* info) {
  if (const int error = plan().fault("read", 0, path); error != 0) return -error;
  plan().wait_read(bytes);
  const ssize_t read = ::pread(handle(info), buffer, bytes, offset);
  return read < 0 ? -errno : static_cast<int>(read);
}

int on_write(const char*, const char* buffer, std::size_t bytes, off_t offset,
             fuse_file_info* info) {
  plan().wait_turn(bytes);
  if (const int error = plan().fault("write", bytes); error != 0) return -error;
  const ssize_t written = ::pwrite(handle(info), buffer, bytes, offset);
  return written < 0 ? -errno : static_cast<int>(written);
}

int on_fsync(const char*, int is_data_only, fuse_file_info* info) {
  plan().wait_turn(0);  // a stalled disk does not flush either
  if (const int error = plan().fault("fsync"); error != 0) return -error;
  return outcome(is_data_only != 0 ? ::fdatasync(handle(info)) : ::fsync(handle(info)));
}
int on_fsyncdir(const char* path, int, fuse_file_info*) {
  if (const int error = plan().fault("fsyncdir"); error != 0) return -error;
  const int fd = ::openat(backing, relative(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return -errno;
  const int result = outcome(::fsync(fd));
  ::close(fd);
  return result;
}

int on_fallocate(const char*, int mode, off_t offset, off_t length, fuse_file_info* info) {
  if (const int error = plan().fault("write", 0); error != 0) return -error;
  if (const int error = plan().fault("fallocate"); error != 0) return -error;
  return outcome(::fallocate(handle(info), mode, offset, length));
}
int on_statfs(const char*, struct statvfs* status) { return outcome(::fstatvfs(backing, status)); }

int on_readdir(const char* path, void* buffer, fuse_fill_dir_t fill, off_t, fuse_file_info*,
               fuse_readdir_flags) {
  const int fd = ::openat(backing, relative(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return -errno;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder{::fdopendir(fd), &::closedir};
  if (!folder) return -errno;
  while (const dirent* entry = ::readdir(folder.get()))
    if (fill(buffer, entry->d_name, nullptr, 0, static_cast<fuse_fill_dir_flags>(0)) != 0) break;
  return 0;
}

fuse_operations operations() {
  fuse_operations all{};
  all.init = on_init;
  all.getattr = on_getattr;
  all.readlink = on_readlink;
  all.mkdir = on_mkdir;
  all.unlink = on_unlink;
  all.rmdir = on_rmdir;
  all.symlink = on_symlink;
  all.link = on_link;
  all.rename = on_rename;
  all.chmod = on_chmod;
  all.chown = on_chown;
  all.utimens = on_utimens;
  all.truncate = on_truncate;
  all.open = on_open;
  all.create = on_create;
  all.release = on_release;
  all.read = on_read;
  all.write = on_write;
  all.fsync = on_fsync;
  all.fsyncdir = on_fsyncdir;
  all.fallocate = on_fallocate;
  all.statfs = on_statfs;
  all.readdir = on_readdir;
  return all;
}

}  // namespace

// Of what libfuse itself keeps where a mount ends in an unusual way.
extern "C" const char* __lsan_default_suppressions() { return "leak:libfuse3.so\n"; }

int main(int argc, char** argv) {
  std::string wrong;
  const auto settings = onehop::slow_disk::parse_settings(argc, argv, wrong);
  if (!settings) {
    std::fprintf(
        stderr,
        "onehop-slow-disk: %s\n"
        "usage: onehop-slow-disk BACKING MOUNT [--rate 300Mbit] [--read-rate 40Mbit] [--stall "
        "AT:FOR]..."
        " [--error write@BYTES=ENOSPC]... [--error read:NAME=EIO] [--fat] [--owner UID] [--name "
        "BYTES]\n"
        "       CALL of --error: write read fsync rename open chmod utimens link noreplace "
        "fsyncdir fallocate\n"
        "       ERRNO: ENOSPC EIO EDQUOT EROFS EACCES EINTR EPERM EINVAL EOPNOTSUPP\n",
        wrong.c_str());
    return 2;
  }
  backing = ::open(settings->backing.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (backing < 0) {
    std::perror(settings->backing.c_str());
    return 8;
  }
  is_fat = settings->is_fat;
  owner = settings->owner;
  name_bytes = settings->name_bytes;
  ::umask(0);  // modes come from the caller, who has applied his own
  Plan the_plan{*settings};
  const fuse_operations all = operations();
  char program[] = "onehop-slow-disk", option[] = "-o";
  std::string values = "fsname=onehop-slow-disk,default_permissions";
  if (::geteuid() == 0) values += ",allow_other";  // anybody else may mount for himself only
  char* arguments[] = {program, option, values.data(), nullptr};
  fuse_args args = FUSE_ARGS_INIT(3, arguments);
  fuse* const mount = fuse_new(&args, &all, sizeof all, &the_plan);
  fuse_opt_free_args(&args);
  if (mount == nullptr || fuse_mount(mount, settings->mount_point.c_str()) != 0) return 10;
  fuse_set_signal_handlers(fuse_get_session(mount));
  const int rc = fuse_loop_mt(mount, 0);
  fuse_remove_signal_handlers(fuse_get_session(mount));
  fuse_unmount(mount);
  fuse_destroy(mount);
  return rc >= 0 ? 0 : 1;
}
