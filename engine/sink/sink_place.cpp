// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// SinkVolume, the places: the folder that an entry is to be in, and what bars it.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "engine/base/display_name.hpp"
#include "engine/disk/confined.hpp"
#include "engine/disk/folder_cache.hpp"
#include "engine/sink/sink_volume.hpp"

namespace onehop::sink {

namespace {

/// What is new cannot be made in `folder`. 0: it can, or its owner, who we are, can make it so.
int write_fault(int folder) noexcept {
  if (::faccessat(folder, ".", W_OK | X_OK, AT_EACCESS) == 0) return 0;
  struct stat status {};
  const int errno_value = errno;
  const bool is_own = ::fstat(folder, &status) == 0 && status.st_uid == ::geteuid();
  if (errno_value == EACCES) return is_own ? 0 : EACCES;
  return errno_value == EPERM || errno_value == EROFS ? errno_value : 0;
}

}  // namespace

/// The folder that the entry is to be in; nothing: it is missing.
Result<std::optional<int>> SinkVolume::folder_of(std::uint32_t entry) {
  const std::string& name = manifest_.files[entry].name;
  const std::string_view path = disk::parent_of(name);
  if (!path.empty() && path == missing_path_) return std::optional<int>{};
  int errno_value = barred_fault_;
  if (path.empty() || path != barred_path_) {
    const int folder = folders_.open(path, false);
    if (folder >= 0) return std::optional{folder};
    errno_value = errno;
    if (errno_value == ENOTDIR || errno_value == ELOOP) errno_value = fault_above(entry, path);
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

/// Why `path`, of which some component is no folder, cannot be one. 0: that is a file, and gives
/// way to a folder.
int SinkVolume::fault_above(std::uint32_t entry, std::string_view path) {
  for (std::size_t end = 0; end < path.size(); ++end) {
    end = std::min(path.find('/', end), path.size());
    std::string folder{path.substr(0, end)};
    const Fd there = disk::open_beneath(destination_->root(), folder, O_PATH);
    struct stat status {};
    if (!there.is_open() || ::fstat(there.get(), &status) != 0) return errno;
    if (S_ISDIR(status.st_mode)) continue;
    if (S_ISLNK(status.st_mode)) return ELOOP;
    if (!S_ISREG(status.st_mode) || policy_of(entry) != OnExist::overwrite) return ENOTDIR;
    if (const auto place = check_place(folder, false); !place) return place.error().errno_value;
    ways_.insert(std::move(folder));
    return 0;
  }
  return ENOTDIR;  // it was none a moment ago
}

/// Whether what is new can be made and get its name where `name` leads. What is renamed from the
/// stage, which lies in the root, can only get a name on its file system.
Result<void> SinkVolume::check_place(const std::string& name, bool is_staged) {
  std::string_view path = disk::parent_of(name);
  if (path != place_path_) {
    place_path_ = path;
    int folder = folders_.open(path, false);
    for (; folder < 0; folder = folders_.open(path, false)) path = disk::parent_of(path);
    place_fault_ = write_fault(folder);
    mount_fault_ = disk::is_same_mount(folder, destination_->root()) ? 0 : EXDEV;
  }
  const int fault = place_fault_ == 0 && is_staged ? mount_fault_ : place_fault_;
  if (fault == 0) return success();
  return errno_error(ExitCode::local_file_error, "receive '" + display_name(name) + "'",
                     fault == EXDEV ? "Receive what belongs there with --dir there" : "", fault);
}

/// A file gives way to a folder that a file of this volume comes into, or that is offered empty.
/// Otherwise it stays, and all that was to be there is left out: a link may still be refused.
void SinkVolume::check_ways() {
  std::set<std::string_view> filled, doubted;
  const auto way_of = [&](std::string_view name) {
    std::size_t end = name.find('/');
    while (end != std::string_view::npos && !ways_.contains(name.substr(0, end)))
      end = name.find('/', end + 1);
    return ways_.find(name.substr(0, end));
  };
  for (std::uint32_t entry = 0; entry < entries() && !ways_.empty(); ++entry) {
    const list::ManifestEntry& file = manifest_.files[entry];
    const auto way = way_of(file.name);
    if (way == ways_.end()) continue;
    const bool is_put = is_wanted(entry) && !file.is_symlink();
    if (is_put && !file.is_folder())
      filled.insert(*way);
    else if (!is_put || !check_place(file.name, true))
      doubted.insert(*way);
  }
  for (std::uint32_t entry = 0; entry < entries() && !doubted.empty(); ++entry)
    if (const auto way = way_of(manifest_.files[entry].name);
        way != ways_.end() && doubted.contains(*way) && !filled.contains(*way) && is_wanted(entry))
      refuse(entry, ENOTDIR);
  std::erase_if(ways_, [&](const std::string& way) {
    return doubted.contains(way) && !filled.contains(way);
  });
}

void SinkVolume::discard_left() const {
  for (const auto& [entry, stems] : left_)
    if (actions_[entry] != list::FileAction::compare)
      PartFile::discard(*destination_, manifest_.files[entry], stems);
}

void SinkVolume::make_way() const {
  for (const std::string& path : ways_) {
    const Result<disk::Place> place = disk::open_place(destination_->root(), path, false);
    struct stat status {};
    if (place.has_error()) continue;  // whoever makes the folder meets it
    const int folder = place.value().folder.get();
    const std::string& leaf = place.value().leaf;
    if (::fstatat(folder, leaf.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0 ||
        !S_ISREG(status.st_mode))
      continue;
    static_cast<void>(destination_->opened_folders().use_in(disk::parent_of(path), [&] {
      return ::unlinkat(folder, leaf.c_str(), 0) == 0 ? 0 : errno;
    }));
  }
}

}  // namespace onehop::sink
