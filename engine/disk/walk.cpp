// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "engine/disk/walk.hpp"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <string>
#include <utility>
#include <vector>

namespace onehop::disk {

namespace {

constexpr int links_max = 40;  // Linux's MAXSYMLINKS
constexpr int look_flags = O_PATH | O_NOFOLLOW | O_CLOEXEC;

Fd failed(int errno_value) noexcept {
  errno = errno_value;
  return {};
}

/// first_of takes the first component, and the slashes behind it, off `rest`. What ends with a
/// slash must be a folder: "a/" is "a/.".
std::string first_of(std::string& rest) {
  const std::size_t end = rest.find('/');
  std::string first = rest.substr(0, end);
  const std::size_t next = rest.find_first_not_of('/', end);
  rest = next != std::string::npos ? rest.substr(next) : end != std::string::npos ? "." : "";
  return first;
}

/// target_of a link that is open with O_PATH. False: errno says why it cannot be followed.
bool target_of(int link, std::string& target) {
  std::array<char, PATH_MAX> bytes{};
  const ssize_t size = ::readlinkat(link, "", bytes.data(), bytes.size());
  if (size <= 0 || bytes.front() == '/') {
    if (size >= 0) errno = size == 0 ? ENOENT : EXDEV;
    return false;
  }
  target.assign(bytes.data(), static_cast<std::size_t>(size));
  return true;
}

}  // namespace

bool has_openat2() noexcept {
  static const bool has = [] {
    open_how how{};
    how.flags = O_PATH | O_CLOEXEC;
    const Fd here{static_cast<int>(::syscall(SYS_openat2, AT_FDCWD, ".", &how, sizeof how))};
    // Sandboxes answer with EPERM, too, and elsewhere EACCES is of the working directory.
    return here.is_open() || (errno != ENOSYS && errno != EPERM);
  }();
  return has;
}

Fd walk_beneath(int folder, std::string_view path, int flags, mode_t mode, Links links) noexcept {
  if (path.empty()) return failed(ENOENT);
  if (path.front() == '/') return failed(EXDEV);
  if (path.size() >= PATH_MAX) return failed(ENAMETOOLONG);
  std::string rest{path}, target;
  std::vector<Fd> passed;  // from the first component down to where the walk is
  int links_passed = 0;
  while (true) {
    const int at = passed.empty() ? folder : passed.back().get();
    std::string component = first_of(rest);
    if (component == "..") {
      if (passed.empty()) return failed(EXDEV);
      passed.pop_back();
      if (rest.empty()) rest = ".";
      continue;
    }
    if (component != "." && (!rest.empty() || links == Links::beneath)) {
      Fd next{::openat(at, component.c_str(), look_flags)};
      struct stat status {};
      if (!next.is_open() || ::fstat(next.get(), &status) != 0) return {};
      if (S_ISLNK(status.st_mode)) {
        if (links == Links::none || ++links_passed > links_max) return failed(ELOOP);
        if (!target_of(next.get(), target)) return {};
        rest = rest.empty() ? target : target.append("/").append(rest);
        if (rest.size() >= PATH_MAX) return failed(ENAMETOOLONG);
        continue;
      }
      if (!rest.empty()) {
        if (!S_ISDIR(status.st_mode)) return failed(ENOTDIR);
        passed.push_back(std::move(next));
        continue;
      }
    }
    if (!rest.empty()) continue;
    return Fd{::openat(at, component.c_str(), flags | O_NOFOLLOW | O_CLOEXEC, mode)};
  }
}

}  // namespace onehop::disk
