// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "engine/base/system/descriptors.hpp"

#include <dirent.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

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

/// open_ones are those that /proc lists; empty: there is no /proc.
std::vector<int> open_ones() {
  std::vector<int> open;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder{::opendir("/proc/self/fd"), ::closedir};
  while (const dirent* const entry = folder ? ::readdir(folder.get()) : nullptr)
    if (entry->d_name[0] != '.') open.push_back(std::atoi(entry->d_name));
  return open;
}

}  // namespace

void close_descriptors_but(int kept) noexcept {
  constexpr unsigned first = STDERR_FILENO + 1;
  const auto place = static_cast<unsigned>(kept);
  if ((place == first || ::close_range(first, place - 1, 0) == 0) &&
      ::close_range(place + 1, ~0U, 0) == 0)
    return;
  // Linux before 5.9, and sandboxes that do not know the call.
  std::vector<int> open = open_ones();
  if (open.empty()) {
    open.resize(limit_now());
    std::iota(open.begin(), open.end(), 0);
  }
  for (const int fd : open)
    if (fd > STDERR_FILENO && fd != kept) ::close(fd);
}

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
