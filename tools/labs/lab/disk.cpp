// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/labs/lab/disk.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "engine/base/fd.hpp"
#include "tools/labs/lab/process/spawn.hpp"

namespace onehop::lab {

namespace {

namespace fs = std::filesystem;

constexpr const char* program_name = "onehop-slow-disk";
constexpr unsigned fuse_magic = 0x65735546;
// Mounting took 4 ms here. Too low: a loaded machine fails; too high: a user waits for an error.
constexpr Nanos mount_patience = 10s;
constexpr Nanos mount_poll = 10ms;
constexpr Nanos disk_patience = 2s;

std::string files_of(const std::string& base) { return base + "/files"; }
std::string log_of(const std::string& base) { return base + "/log"; }

bool is_mounted(const std::string& path) {
  struct statfs facts {};
  return ::statfs(path.c_str(), &facts) == 0 && static_cast<unsigned>(facts.f_type) == fuse_magic;
}

// find_program looks beside this program first, so that a build never takes the disk of an older
// installation.
std::string find_program() {
  if (const char* const own = std::getenv("ONEHOP_SLOW_DISK"); own != nullptr && *own != '\0')
    return own;
  std::error_code ignored;
  const fs::path here = fs::read_symlink("/proc/self/exe", ignored).parent_path();
  for (const char* const place :
       {".", "../../tests/support/slow_disk", "../../../tests/support/slow_disk"}) {
    const fs::path candidate = here / place / program_name;
    if (fs::is_regular_file(candidate, ignored)) return candidate;
  }
  return program_name;
}

// make_folders refuses what exists: the place may be a folder that everybody can write to.
Result<void> make_folders(const std::string& base) {
  for (const std::string& path : {base, files_of(base), disk_mount(base)}) {
    if (::mkdir(path.c_str(), 0755) != 0)
      return errno_error(ExitCode::local_file_error, "make the folder " + path,
                         "onehop lab down removes the remains of a lab");
  }
  // Under sudo the receiver gives its privilege up before it touches the folder.
  const char* const uid = std::getenv("SUDO_UID");
  const char* const gid = std::getenv("SUDO_GID");
  if (uid != nullptr && gid != nullptr &&
      ::chown(files_of(base).c_str(), static_cast<uid_t>(std::strtoul(uid, nullptr, 10)),
              static_cast<gid_t>(std::strtoul(gid, nullptr, 10))) != 0)
    return errno_error(ExitCode::local_file_error, "hand over the folder " + files_of(base));
  return success();
}

bool is_disk_process(pid_t pid) {
  std::string comm;
  std::ifstream{"/proc/" + std::to_string(pid) + "/comm"} >> comm;
  return !comm.empty() && std::string_view{program_name}.starts_with(comm);
}

void end_process(pid_t pid) {
  const Nanos step = 10ms;
  for (Nanos waited{0}; waited < disk_patience && is_disk_process(pid); waited += step) {
    if (::waitpid(pid, nullptr, WNOHANG) == pid) return;
    ::kill(pid, SIGTERM);
    std::this_thread::sleep_for(step);
  }
  if (is_disk_process(pid)) ::kill(pid, SIGKILL);
  (void)::waitpid(pid, nullptr, WNOHANG);
}

}  // namespace

std::string disk_base(const DiskProfile& disk, const std::string& lab) {
  return disk.folder + "/" + lab + ".disk";
}

std::string disk_mount(const std::string& base) { return base + "/mnt"; }

Result<pid_t> start_disk(const DiskProfile& disk, const std::string& base) {
  ONEHOP_TRYV(make_folders(base));
  Arguments arguments{find_program(), files_of(base), disk_mount(base)};
  if (!disk.rate.empty()) arguments.insert(arguments.end(), {"--rate", disk.rate});
  if (!disk.read_rate.empty()) arguments.insert(arguments.end(), {"--read-rate", disk.read_rate});
  for (const std::string& stall : disk.stalls)
    arguments.insert(arguments.end(), {"--stall", stall});
  for (const std::string& error : disk.errors)
    arguments.insert(arguments.end(), {"--error", error});
  const Fd log{::open(log_of(base).c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600)};
  if (!log.is_open()) return errno_error(ExitCode::local_file_error, "write " + log_of(base));
  ONEHOP_TRY(pid,
             spawn_program(arguments, {.output = log.get(),
                                       .errors = log.get(),
                                       .has_session = true,
                                       .hint = "It is built where libfuse3-dev is installed"}));
  for (Nanos waited{0}; waited < mount_patience; waited += mount_poll) {
    if (is_mounted(disk_mount(base))) return pid;
    if (::waitpid(pid, nullptr, WNOHANG) == pid) break;
    std::this_thread::sleep_for(mount_poll);
  }
  std::ostringstream said;
  said << std::ifstream{log_of(base)}.rdbuf();
  end_process(pid);
  return Error{ExitCode::io_unavailable, "mount the slow disk",
               said.str().empty() ? "it did not come up" : said.str(),
               "It needs /dev/fuse and the package fuse3"};
}

Result<void> stop_disk(const std::string& base, pid_t pid) {
  if (is_mounted(disk_mount(base))) (void)::umount2(disk_mount(base).c_str(), MNT_DETACH);
  if (pid > 0) end_process(pid);
  // A crashed server leaves a mount that answers ENOTCONN to everything but umount.
  while (::umount2(disk_mount(base).c_str(), MNT_DETACH) == 0) {
  }
  std::error_code failure;
  fs::remove_all(base, failure);
  if (failure)
    return errno_error(ExitCode::local_file_error, "remove " + base, "", failure.value());
  return success();
}

}  // namespace onehop::lab
