// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "engine/disk/stage.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include <fmt/ranges.h>

#include "engine/disk/confined.hpp"
#include "engine/disk/file_bytes.hpp"
#include "engine/disk/own_names.hpp"

namespace onehop::disk {

namespace {

// The first name may belong to another user or another session; the others are new. A session that
// cleans up may take one from us.
constexpr unsigned stage_attempts_max = 8;
constexpr mode_t stage_mode = 0700;

constexpr std::size_t probe_hash_bytes = 16;

bool is_hexadecimal(std::string_view name) {
  return std::ranges::all_of(
      name, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

bool is_ours(std::string_view name) {
  return !name.empty() && name.size() <= 8 && is_hexadecimal(name);
}

bool is_probe_folder_name(std::string_view name) {
  return name.size() == 2 * probe_hash_bytes && is_hexadecimal(name);
}

/// A folder of a NameProbe, which has nothing to lose.
bool is_probe_folder(int stage, const std::string& name) {
  if (!is_probe_folder_name(name)) return false;
  const Fd folder = open_beneath(stage, name, O_RDONLY | O_DIRECTORY);
  std::vector<std::string> names;
  if (!folder.is_open() || list_names(folder.get(), names) != 0) return false;
  return std::ranges::all_of(names, [&](const std::string& leaf) {
    struct stat status {};
    return ::fstatat(folder.get(), leaf.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 &&
           S_ISREG(status.st_mode) && status.st_size == 0;
  });
}

void remove_probe_folder(int stage, const std::string& name) noexcept {
  const Fd folder = open_beneath(stage, name, O_RDONLY | O_DIRECTORY);
  std::vector<std::string> names;
  if (folder.is_open()) static_cast<void>(list_names(folder.get(), names));
  for (const std::string& leaf : names) ::unlinkat(folder.get(), leaf.c_str(), 0);
  ::unlinkat(stage, name.c_str(), AT_REMOVEDIR);
}

/// has_stage_mode: the folder has the mode of a stage, or its file system keeps no mode that it is
/// given: then each folder there has the same.
bool has_stage_mode(int folder, struct stat status) {
  const mode_t mode = status.st_mode & 07777;
  if ((mode & 0777) == stage_mode) return true;  // set-group-ID is that of the folder above
  if (set_mode(folder, stage_mode) != 0 || ::fstat(folder, &status) != 0) return false;
  if ((status.st_mode & 07777) == mode) return true;
  static_cast<void>(set_mode(folder, mode));  // somebody's own
  return false;
}

}  // namespace

std::string probe_folder_name_of(std::span<const std::byte> hash) {
  return fmt::format("{:02x}", fmt::join(hash.first(probe_hash_bytes), ""));
}

std::string Stage::name_of(std::uint32_t file) { return fmt::format("{:x}", file); }

int Stage::open(int root) {
  std::string name{stage_suffix};
  for (unsigned attempt = 0; attempt < stage_attempts_max; ++attempt) {
    const int refused = make_own_folder(root, name, stage_mode);
    const bool is_made = refused == 0;
    if (!is_made && refused != EEXIST) return refused;
    const int errno_value = take(root, name);
    if (errno_value == 0) {
      empty();
      return 0;
    }
    // What we made another session may have taken. Else the next one would fail as well.
    if (is_made && errno_value != EEXIST && errno_value != EWOULDBLOCK) {
      ::unlinkat(root, name.c_str(), AT_REMOVEDIR);
      return errno_value;
    }
    name = random_tag().append(stage_suffix);
  }
  return EEXIST;
}

/// A folder of that name is ours if we own it with the right mode, it has no flock, and it contains
/// only what a stage contains.
int Stage::take(int root, const std::string& name) {
  Fd folder = open_beneath(root, name, O_RDONLY | O_DIRECTORY);
  struct stat status {};
  if (!folder.is_open() || ::fstat(folder.get(), &status) != 0) return errno;
  if (!is_own(root, status.st_uid)) return EEXIST;
  const struct stat stage_status = status;
  if (::flock(folder.get(), LOCK_EX | LOCK_NB) != 0) return errno;
  if (!is_same_inode(root, name, folder.get())) return EEXIST;
  std::vector<std::string> names;
  if (const int errno_value = list_names(folder.get(), names); errno_value != 0) return errno_value;
  left_bytes_ = 0;
  for (const std::string& left : names) {
    if (is_probe_folder(folder.get(), left)) continue;
    if (!is_ours(left) ||
        ::fstatat(folder.get(), left.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0 ||
        (!S_ISREG(status.st_mode) && !S_ISLNK(status.st_mode)))
      return EEXIST;
    left_bytes_ += disk_bytes(status);
  }
  if (!has_stage_mode(folder.get(), stage_status)) return EEXIST;
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
  if (::symlinkat(target.c_str(), folder_.get(), name.c_str()) != 0 ||
      (::utimensat(folder_.get(), name.c_str(), times, AT_SYMLINK_NOFOLLOW) != 0 &&
       !is_not_kept(errno)))
    return {};
  return Fd{::openat(folder_.get(), name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC)};
}

void Stage::remove_left(int root) {
  for (const std::string& name : list_own(root, stage_suffix)) {
    Stage stage;
    if (stage.take(root, name) == 0) static_cast<void>(stage.remove());
  }
}

void Stage::empty() noexcept {
  std::vector<std::string> names;
  static_cast<void>(list_names(folder_.get(), names));  // what stays keeps the folder
  for (const std::string& left : names)
    if (is_ours(left))
      ::unlinkat(folder_.get(), left.c_str(), 0);
    else if (is_probe_folder_name(left))
      remove_probe_folder(folder_.get(), left);
}

mode_t Stage::mode_of_new_folder() const {
  const std::string name(std::size_t{2} * probe_hash_bytes,
                         '0');  // as of a probe: empty() knows it
  struct stat status {};
  if (::mkdirat(folder_.get(), name.c_str(), 0777) == 0 || errno == EEXIST)
    (void)::fstatat(folder_.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW);
  ::unlinkat(folder_.get(), name.c_str(), AT_REMOVEDIR);
  return status.st_mode & 0777;
}

int Stage::remove() noexcept {
  if (!folder_.is_open()) return 0;
  empty();
  int errno_value = is_same_inode(root_, name_, folder_.get()) ? 0 : ESTALE;
  if (errno_value == 0 && ::unlinkat(root_, name_.c_str(), AT_REMOVEDIR) != 0) errno_value = errno;
  folder_.close();
  return errno_value;
}

}  // namespace onehop::disk
