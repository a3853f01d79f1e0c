// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// onehop-power-disk MOUNT DURABLE LIVE LOG
//
// A FUSE file system with two files. MOUNT/disk is a disk with a volatile write cache (disk.hpp):
// a loop device over it turns the flushes of its file system into fsync, which is what makes writes
// durable here. MOUNT/control tells and takes:
//
//   echo cut 0 > MOUNT/control      the power goes now; cut 17: before the 17th request from now
//   cat MOUNT/control               cut=1 requests=17 flushes=3 unflushed_bytes=4096
//
// One request at a time, in the foreground. It ends with whoever started it, on SIGTERM and SIGINT,
// and unmounts itself. The kernel keeps no dirty pages of it (no writeback cache): what it has
// answered it has.
#define FUSE_USE_VERSION 31
#include <fuse3/fuse.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "tests/support/power_disk/disk.hpp"

namespace {

using onehop::power_disk::Disk;

constexpr std::string_view disk_path = "/disk", control_path = "/control";

Disk& disk() { return *static_cast<Disk*>(fuse_get_context()->private_data); }

void* on_init(fuse_conn_info*, fuse_config* config) {
  config->nullpath_ok = 0;
  return fuse_get_context()->private_data;
}

int on_getattr(const char* path, struct stat* status, fuse_file_info*) {
  const std::string_view name = path;
  *status = {};
  status->st_mode = name == "/" ? S_IFDIR | 0700 : S_IFREG | 0600;
  status->st_nlink = 1;
  if (name == disk_path) status->st_size = static_cast<off_t>(disk().size_bytes());
  return name == "/" || name == disk_path || name == control_path ? 0 : -ENOENT;
}

int on_open(const char* path, fuse_file_info* info) {
  info->direct_io = path == control_path;  // it has no size to read by
  return 0;
}
int on_truncate(const char* path, off_t, fuse_file_info*) {
  return path == control_path ? 0 : -EPERM;
}

int on_read(const char* path, char* buffer, std::size_t bytes, off_t offset, fuse_file_info*) {
  if (path == disk_path) return disk().read({buffer, bytes}, static_cast<std::uint64_t>(offset));
  // In one piece: the next read would find another report.
  return offset == 0 ? static_cast<int>(disk().report().copy(buffer, bytes)) : 0;
}

int on_write(const char* path, const char* buffer, std::size_t bytes, off_t offset,
             fuse_file_info*) {
  if (path == disk_path) return disk().write({buffer, bytes}, static_cast<std::uint64_t>(offset));
  const std::string order{buffer, bytes};
  if (!order.starts_with("cut ")) return -EINVAL;
  disk().cut_at(std::strtoull(order.c_str() + 4, nullptr, 10));
  return static_cast<int>(bytes);
}

int on_fsync(const char* path, int, fuse_file_info*) {
  return path == disk_path ? disk().flush() : 0;
}

int on_readdir(const char*, void* buffer, fuse_fill_dir_t fill, off_t, fuse_file_info*,
               fuse_readdir_flags) {
  for (const std::string_view path : {disk_path, control_path})
    if (fill(buffer, path.data() + 1, nullptr, 0, static_cast<fuse_fill_dir_flags>(0)) != 0) break;
  return 0;
}

fuse_operations operations() {
  fuse_operations all{};
  all.init = on_init;
  all.getattr = on_getattr;
  all.open = on_open;
  all.truncate = on_truncate;
  all.read = on_read;
  all.write = on_write;
  all.fsync = on_fsync;
  all.readdir = on_readdir;
  return all;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fprintf(stderr, "usage: onehop-power-disk MOUNT DURABLE LIVE LOG\n");
    return 2;
  }
  // A page of ours that is needed for memory must not wait for a file system that waits for us.
  ::prctl(PR_SET_IO_FLUSHER, 1, 0, 0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  Disk the_disk;
  const int errno_value = the_disk.open({.durable = argv[2], .live = argv[3], .log = argv[4]});
  if (errno_value != 0) {
    std::fprintf(stderr, "onehop-power-disk: open the images: %s\n", std::strerror(errno_value));
    return 8;
  }
  const fuse_operations all = operations();
  char program[] = "onehop-power-disk", option[] = "-o", values[] = "fsname=onehop-power-disk";
  char* arguments[] = {program, option, values, nullptr};
  fuse_args args = FUSE_ARGS_INIT(3, arguments);
  fuse* const mount = fuse_new(&args, &all, sizeof all, &the_disk);
  fuse_opt_free_args(&args);
  if (mount == nullptr || fuse_mount(mount, argv[1]) != 0) return 10;
  fuse_set_signal_handlers(fuse_get_session(mount));
  const int rc = fuse_loop(mount);
  fuse_remove_signal_handlers(fuse_get_session(mount));
  fuse_unmount(mount);
  fuse_destroy(mount);
  return rc >= 0 ? 0 : 1;
}
