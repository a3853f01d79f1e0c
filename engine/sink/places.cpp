// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "engine/sink/places.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "engine/base/display_name.hpp"
#include "engine/base/system/access.hpp"
#include "engine/disk/confined.hpp"

namespace onehop::sink {

namespace {

/// What is new cannot be made in `folder`. 0: it can, or its owner, who we are, can make it so.
int write_fault(int folder) noexcept {
  const int errno_value = access_fault(folder, ".", W_OK | X_OK);
  if (errno_value == 0) return 0;
  struct stat status {};
  const bool is_own = ::fstat(folder, &status) == 0 && status.st_uid == ::geteuid();
  if (errno_value == EACCES) return is_own ? 0 : EACCES;
  return errno_value == EPERM || errno_value == EROFS ? errno_value : 0;
}

}  // namespace

Result<std::optional<int>> Places::folder_of(const std::string& name, bool may_replace) {
  const std::string_view path = disk::parent_of(name);
  if (!path.empty() && path == missing_path_) return std::optional<int>{};
  int errno_value = barred_fault_;
  if (path.empty() || path != barred_path_) {
    const int folder = folders_.open(path, false);
    if (folder >= 0) return std::optional{folder};
    errno_value = errno;
    if (errno_value == ENOTDIR || errno_value == ELOOP)
      errno_value = fault_above(path, may_replace);
    if (errno_value == ENOENT || errno_value == 0) {
      missing_path_ = path;
      return std::optional<int>{};
    }
    barred_path_ = path;
    barred_fault_ = errno_value;
  }
  return errno_error(ExitCode::local_file_error, "look for '" + display_name(name) + "'", "",
                     errno_value);
}

int Places::fault_above(std::string_view path, bool may_replace) {
  for (std::size_t end = 0; end < path.size(); ++end) {
    end = std::min(path.find('/', end), path.size());
    std::string folder{path.substr(0, end)};
    const Fd there = disk::open_beneath(destination_.root(), folder, O_PATH);
    struct stat status {};
    if (!there.is_open() || ::fstat(there.get(), &status) != 0) return errno;
    if (S_ISDIR(status.st_mode)) continue;
    if (S_ISLNK(status.st_mode)) return ELOOP;
    if (!S_ISREG(status.st_mode) || !may_replace) return ENOTDIR;
    if (const auto place = check(folder, false); !place) return place.error().errno_value;
    ways_.insert(std::move(folder));
    return 0;
  }
  return ENOTDIR;  // it was none a moment ago
}

Result<void> Places::check(const std::string& name, bool is_staged) {
  std::string_view path = disk::parent_of(name);
  if (path != place_path_) {
    place_path_ = path;
    int folder = folders_.open(path, false);
    for (; folder < 0; folder = folders_.open(path, false)) path = disk::parent_of(path);
    place_fault_ = write_fault(folder);
    mount_fault_ = disk::is_same_mount(folder, destination_.root()) ? 0 : EXDEV;
  }
  const int fault = place_fault_ == 0 && is_staged ? mount_fault_ : place_fault_;
  if (fault == 0) return success();
  return errno_error(ExitCode::local_file_error, "receive '" + display_name(name) + "'",
                     fault == EXDEV ? "Receive what belongs there with --dir there" : "", fault);
}

std::vector<std::uint32_t> Places::drop_ways(const list::Manifest& manifest,
                                             const std::vector<list::FileAction>& actions) {
  std::vector<std::uint32_t> barred;
  std::set<std::string_view> filled, doubted;
  const auto way_of = [&](std::uint32_t entry) {
    const std::string_view name = manifest.files[entry].name;
    std::size_t end = name.find('/');
    while (end != std::string_view::npos && !ways_.contains(name.substr(0, end)))
      end = name.find('/', end + 1);
    return ways_.find(name.substr(0, end));
  };
  for (std::uint32_t entry = 0; entry < actions.size() && !ways_.empty(); ++entry) {
    const list::ManifestEntry& file = manifest.files[entry];
    const auto way = way_of(entry);
    if (way == ways_.end()) continue;
    const bool is_put = list::has_digests(actions[entry]) && !file.is_symlink();
    if (is_put && !file.is_folder())
      filled.insert(*way);
    else if (!is_put || !check(file.name, true))
      doubted.insert(*way);
  }
  std::erase_if(doubted, [&](std::string_view way) { return filled.contains(way); });
  for (std::uint32_t entry = 0; entry < actions.size() && !doubted.empty(); ++entry)
    if (const auto way = way_of(entry);
        way != ways_.end() && doubted.contains(*way) && list::has_digests(actions[entry]))
      barred.push_back(entry);
  std::erase_if(ways_, [&](const std::string& way) { return doubted.contains(way); });
  return barred;
}

void Places::make_way() const {
  for (const std::string& path : ways_) {
    const Result<disk::Place> place = disk::open_place(destination_.root(), path, false);
    struct stat status {};
    if (place.has_error()) continue;  // whoever makes the folder meets it
    const int folder = place.value().folder.get();
    const std::string& leaf = place.value().leaf;
    if (::fstatat(folder, leaf.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0 ||
        !S_ISREG(status.st_mode))
      continue;
    static_cast<void>(destination_.opened_folders().use_in(disk::parent_of(path), [&] {
      return ::unlinkat(folder, leaf.c_str(), 0) == 0 ? 0 : errno;
    }));
  }
}

}  // namespace onehop::sink
