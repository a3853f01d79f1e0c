// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "engine/disk/opened_folders.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ranges>
#include <utility>
#include <vector>

#include "engine/disk/confined.hpp"

namespace onehop::disk {

namespace {

/// The kernel takes set-group-ID from what gets a mode by somebody who is not of its group.
bool would_lose_group(const struct stat& status) {
  if ((status.st_mode & S_ISGID) == 0 || ::geteuid() == 0 || status.st_gid == ::getegid())
    return false;
  std::vector<gid_t> groups(static_cast<std::size_t>(std::max(::getgroups(0, nullptr), 0)));
  const int count = ::getgroups(static_cast<int>(groups.size()), groups.data());
  groups.resize(static_cast<std::size_t>(std::max(count, 0)));
  return std::ranges::find(groups, status.st_gid) == groups.end();
}

}  // namespace

bool OpenedFolders::open_up(std::string_view path) {
  const int errno_value = errno;
  bool is_changed = false;
  const std::lock_guard lock{mutex_};
  for (std::size_t end = 0; end < path.size(); ++end) {
    end = std::min(path.find('/', end), path.size());
    std::string folder{path.substr(0, end)};
    const Fd fd = open_beneath(root_, folder, O_PATH | O_DIRECTORY);
    struct stat status {};
    if (!fd.is_open() || ::fstat(fd.get(), &status) != 0) break;
    if ((status.st_mode & S_IRWXU) == S_IRWXU || status.st_uid != ::geteuid() ||
        would_lose_group(status))
      continue;
    const mode_t mode = status.st_mode & 07777;
    // FAT and others keep no mode and say nothing.
    const bool is_opened = set_mode_by_path(fd.get(), mode | S_IRWXU) &&
                           ::fstat(fd.get(), &status) == 0 && (status.st_mode & S_IRWXU) == S_IRWXU;
    if (!is_opened) continue;
    modes_.emplace(std::move(folder), mode);
    is_changed = true;
  }
  errno = errno_value;
  return is_changed;
}

int OpenedFolders::use_in(std::string_view path, const std::function<int()>& use) {
  int errno_value = use();
  while (errno_value == EACCES && open_up(path)) errno_value = use();
  return errno_value;
}

std::optional<mode_t> OpenedFolders::take(std::string_view path) {
  const std::lock_guard lock{mutex_};
  const auto at = modes_.find(path);
  if (at == modes_.end()) return std::nullopt;
  const mode_t mode = at->second;
  modes_.erase(at);
  return mode;
}

/// What is below a folder stands behind it.
void OpenedFolders::close() noexcept {
  const std::lock_guard lock{mutex_};
  for (const auto& [path, mode] : modes_ | std::views::reverse)
    if (const Fd fd = open_beneath(root_, path, O_PATH | O_DIRECTORY); fd.is_open())
      static_cast<void>(set_mode_by_path(fd.get(), mode));
  modes_.clear();
}

}  // namespace onehop::disk
