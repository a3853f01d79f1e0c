// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "engine/file/stage.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include <fmt/format.h>

#include "engine/file/confined.hpp"
#include "engine/file/file_bytes.hpp"
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

}  // namespace

std::string Stage::name_of(std::uint32_t file) { return fmt::format("{:x}", file); }

int Stage::open(int root) {
  for (unsigned number = 0; number < stages_max; ++number) {
    const std::string name = numbered_suffix(number, stage_suffix);
    if (::mkdirat(root, name.c_str(), stage_mode) != 0 && errno != EEXIST) return errno;
    if (take(root, name) != 0) continue;
    empty();
    return 0;
  }
  return EEXIST;
}

/// A folder of that name is ours if its owner and mode are, nobody holds it, and it has nothing but
/// what a stage has.
int Stage::take(int root, const std::string& name) {
  Fd folder = open_beneath(root, name, O_RDONLY | O_DIRECTORY);
  struct stat status {};
  if (!folder.is_open() || ::fstat(folder.get(), &status) != 0) return errno;
  if (status.st_uid != ::geteuid() || (status.st_mode & 07777) != stage_mode) return EEXIST;
  if (::flock(folder.get(), LOCK_EX | LOCK_NB) != 0) return errno;
  if (!is_same_inode(root, name, folder.get())) return EEXIST;
  std::vector<std::string> names;
  if (const int errno_value = list_names(folder.get(), names); errno_value != 0) return errno_value;
  left_bytes_ = 0;
  for (const std::string& left : names) {
    if (!is_ours(left) ||
        ::fstatat(folder.get(), left.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0 ||
        (!S_ISREG(status.st_mode) && !S_ISLNK(status.st_mode)))
      return EEXIST;
    left_bytes_ += disk_bytes(status);
  }
  root_ = root;
  name_ = name;
  folder_ = std::move(folder);
  return 0;
}

Fd Stage::create(std::uint32_t file, mode_t mode) const noexcept {
  return open_beneath(folder_.get(), name_of(file), O_RDWR | O_CREAT | O_EXCL, mode);
}

Fd Stage::create_symlink(std::uint32_t file, const std::string& target,
                         std::int64_t mtime_ns) const noexcept {
  const std::string name = name_of(file);
  const timespec times[2] = {{.tv_sec = 0, .tv_nsec = UTIME_OMIT}, time_of(mtime_ns)};
  if ((::unlinkat(folder_.get(), name.c_str(), 0) != 0 && errno != ENOENT) ||
      ::symlinkat(target.c_str(), folder_.get(), name.c_str()) != 0 ||
      ::utimensat(folder_.get(), name.c_str(), times, AT_SYMLINK_NOFOLLOW) != 0)
    return {};
  return Fd{::openat(folder_.get(), name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC)};
}

void Stage::remove_left(int root) {
  for (unsigned number = 0; number < stages_max; ++number) {
    Stage stage;
    if (stage.take(root, numbered_suffix(number, stage_suffix)) == 0)
      static_cast<void>(stage.remove());
  }
}

void Stage::empty() noexcept {
  std::vector<std::string> names;
  static_cast<void>(list_names(folder_.get(), names));  // what stays keeps the folder
  for (const std::string& left : names)
    if (is_ours(left)) ::unlinkat(folder_.get(), left.c_str(), 0);
}

int Stage::remove() noexcept {
  if (!folder_.is_open()) return 0;
  empty();
  int errno_value = is_same_inode(root_, name_, folder_.get()) ? 0 : ESTALE;
  if (errno_value == 0 && ::unlinkat(root_, name_.c_str(), AT_REMOVEDIR) != 0) errno_value = errno;
  folder_.close();
  return errno_value;
}

}  // namespace onehop::file
