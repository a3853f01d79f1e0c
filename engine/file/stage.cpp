// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "engine/file/stage.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <vector>

#include <fmt/format.h>

#include "engine/file/confined.hpp"
#include "engine/file/manifest.hpp"

namespace onehop::file {

namespace {

// Sessions of one folder at a time, and folders of that name that are somebody's own.
constexpr unsigned stages_max = 32;
constexpr mode_t stage_mode = 0700;

bool is_ours(std::string_view name) {
  return !name.empty() && name.size() <= 8 && std::ranges::all_of(name, [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
  });
}

/// The names in a folder; false: it cannot be read.
bool list(int folder, std::vector<std::string>& names) {
  const int again = ::openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (again < 0) return false;
  const std::unique_ptr<DIR, int (*)(DIR*)> entries{::fdopendir(again), &::closedir};
  if (!entries) return ::close(again), false;
  while (const dirent* const entry = ::readdir(entries.get())) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  return true;
}

}  // namespace

std::string Stage::name_of(std::uint32_t ordinal) { return fmt::format("{:x}", ordinal); }

int Stage::open(int root) {
  for (unsigned number = 0; number < stages_max; ++number) {
    const std::string name = numbered_suffix(number, stage_suffix);
    if (::mkdirat(root, name.c_str(), stage_mode) != 0 && errno != EEXIST) return errno;
    if (take(root, name)) return 0;
  }
  return EEXIST;
}

/// A folder of that name is ours if its owner and mode are, nobody holds it, and it has nothing but
/// what a stage has.
bool Stage::take(int root, const std::string& name) {
  Fd folder = open_beneath(root, name, O_RDONLY | O_DIRECTORY);
  struct stat status {};
  if (!folder.is_open() || ::fstat(folder.get(), &status) != 0 || status.st_uid != ::geteuid() ||
      (status.st_mode & 07777) != stage_mode || ::flock(folder.get(), LOCK_EX | LOCK_NB) != 0 ||
      !is_same_inode(root, name, folder.get()))
    return false;
  std::vector<std::string> names;
  if (!list(folder.get(), names) || !std::ranges::all_of(names, is_ours)) return false;
  for (const std::string& left : names) ::unlinkat(folder.get(), left.c_str(), 0);
  root_ = root;
  name_ = name;
  folder_ = std::move(folder);
  return true;
}

Fd Stage::create(std::uint32_t ordinal, mode_t mode) const noexcept {
  return open_beneath(folder_.get(), name_of(ordinal), O_RDWR | O_CREAT | O_EXCL, mode);
}

void Stage::remove() noexcept {
  if (!folder_.is_open()) return;
  std::vector<std::string> names;
  if (list(folder_.get(), names))
    for (const std::string& left : names)
      if (is_ours(left)) ::unlinkat(folder_.get(), left.c_str(), 0);
  if (is_same_inode(root_, name_, folder_.get())) ::unlinkat(root_, name_.c_str(), AT_REMOVEDIR);
  folder_.close();
}

}  // namespace onehop::file
