// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "engine/base/system/descriptors.hpp"

#include <dirent.h>
#include <sys/resource.h>

#include <memory>
#include <string>
#include <utility>

namespace onehop {

namespace {

std::size_t limit_now() noexcept {
  rlimit limit{};
  return ::getrlimit(RLIMIT_NOFILE, &limit) == 0 ? static_cast<std::size_t>(limit.rlim_cur)
                                                 : descriptors_enough;
}

/// With the one that it takes to count them. 0: not even that one is left, or there is no /proc.
std::size_t count_open() noexcept {
  const std::unique_ptr<DIR, int (*)(DIR*)> folder{::opendir("/proc/self/fd"), ::closedir};
  std::size_t count = 0;
  if (!folder) return errno == EMFILE ? limit_now() : 0;
  while (const dirent* const entry = ::readdir(folder.get()))
    if (entry->d_name[0] != '.') ++count;
  return count;
}

}  // namespace

std::size_t descriptors_left() {
  const std::size_t limit = limit_now(), open = count_open();
  return limit > open ? limit - open : 0;
}

Result<void> raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
    limit.rlim_cur = limit.rlim_max;
    // A sandbox may refuse it: what counts is what is left.
    (void)::setrlimit(RLIMIT_NOFILE, &limit);
  }
  if (descriptors_left() >= descriptors_min) return success();
  return ran_out("open what a transfer needs", EMFILE);
}

Error ran_out(std::string attempt, int errno_value) {
  Error error{
      ExitCode::io_unavailable, std::move(attempt), errno_text(errno_value), {}, errno_value};
  if (errno_value == EMFILE) {
    error.cause += ": this process may have " + std::to_string(limit_now());
    error.hint =
        "Allow " + std::to_string(limit_now() + descriptors_enough) + " (ulimit -Hn, LimitNOFILE=)";
  } else if (errno_value == ENFILE) {
    error.hint = "End other programs, or raise fs.file-max (sysctl)";
  } else {
    error.hint = "Free some memory, or raise its limit (ulimit -v)";
  }
  return error;
}

}  // namespace onehop
