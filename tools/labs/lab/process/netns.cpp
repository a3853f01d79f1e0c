// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/labs/lab/process/netns.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include <charconv>
#include <cstdlib>
#include <filesystem>

namespace onehop::lab {

namespace {

std::string path_of(const std::string& name) { return "/run/netns/" + name; }

Result<Fd> open_netns(const std::string& name) {
  Fd fd{::open(path_of(name).c_str(), O_RDONLY | O_CLOEXEC)};
  if (!fd.is_open())
    return errno_error(ExitCode::usage, "open the lab host " + name, "Is it up? onehop lab up");
  return fd;
}

}  // namespace

bool has_netns(const std::string& name) {
  struct stat ignored {};
  return ::stat(path_of(name).c_str(), &ignored) == 0;
}

Result<InNetns> InNetns::enter(const std::string& name) {
  Fd home{::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC)};
  if (!home.is_open())
    return errno_error(ExitCode::internal_error, "open the own network namespace");
  ONEHOP_TRY(target, open_netns(name));
  if (::setns(target.get(), CLONE_NEWNET) != 0)
    return errno_error(ExitCode::privilege_missing, "enter the lab host " + name, "Run as root");
  return InNetns{std::move(home)};
}

InNetns::~InNetns() {
  // Going on in the wrong namespace would change the machine's own network.
  if (home_.is_open() && ::setns(home_.get(), CLONE_NEWNET) != 0) std::abort();
}

Result<void> become_host(const std::string& name) {
  ONEHOP_TRY(target, open_netns(name));
  if (::setns(target.get(), CLONE_NEWNET) != 0)
    return errno_error(ExitCode::privilege_missing, "enter the lab host " + name, "Run as root");
  if (::unshare(CLONE_NEWNS) != 0 || ::mount("", "/", "none", MS_SLAVE | MS_REC, nullptr) != 0)
    return errno_error(ExitCode::privilege_missing, "take a mount namespace of its own",
                       "Run as root");
  // /sys shows the namespace it was mounted in. A machine without it works as well: only
  // /sys/class/net is then foreign.
  if (::umount2("/sys", MNT_DETACH) == 0) (void)::mount(name.c_str(), "/sys", "sysfs", 0, nullptr);
  return success();
}

std::vector<pid_t> processes_in(const std::string& name) {
  std::vector<pid_t> found;
  struct stat wanted {};
  if (::stat(path_of(name).c_str(), &wanted) != 0) return found;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator{"/proc", ignored}) {
    const std::string text = entry.path().filename();
    pid_t pid = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), pid);
    if (error != std::errc{} || end != text.data() + text.size()) continue;
    struct stat own {};
    if (::stat((entry.path() / "ns/net").c_str(), &own) != 0) continue;
    if (own.st_ino == wanted.st_ino && own.st_dev == wanted.st_dev) found.push_back(pid);
  }
  return found;
}

}  // namespace onehop::lab
