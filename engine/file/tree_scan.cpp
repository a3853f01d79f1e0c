// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "engine/file/tree_scan.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <memory>

#include "engine/file/tree_walk.hpp"

namespace onehop::file {

namespace {

std::string attempt_to_offer(const std::string& path) { return "offer " + display_name(path); }

/// What a folder arrives as: its last component; of `.` and `..` the name that it really has. Empty
/// for the root of the file system.
Result<std::string> name_of_folder(const std::string& path) {
  std::string leaf = path.substr(path.rfind('/') + 1);
  if (leaf != "." && leaf != "..") return leaf;
  const std::unique_ptr<char, void (*)(void*)> real{::realpath(path.c_str(), nullptr), std::free};
  if (real == nullptr) return errno_error(ExitCode::local_file_error, attempt_to_offer(path));
  leaf = real.get();
  return leaf.substr(leaf.rfind('/') + 1);
}

/// Scanner: the arguments one after the other.
class Scanner {
 public:
  explicit Scanner(const ScanOptions& options) : options_{options} {}
  Result<Scan> run(std::span<const std::string> paths);

 private:
  Result<void> take(const std::string& path);
  Result<void> take_folder(const std::string& path);

  const ScanOptions& options_;
  Scan scan_;
  std::vector<SourceRoot> roots_;
  MetInodes met_;
};

Result<void> Scanner::take(const std::string& path) {
  struct stat status {};
  // A link is what add_file() refuses; one with a slash behind it is the folder that it leads to.
  if (::fstatat(AT_FDCWD, path.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 &&
      S_ISDIR(status.st_mode))
    return take_folder(path);
  ONEHOP_TRYV(add_file(path, roots_, scan_.source));
  ++scan_.files;
  if (status.st_nlink > 1 && !met_.emplace(status.st_dev, status.st_ino).second) ++scan_.hard_links;
  return success();
}

Result<void> Scanner::take_folder(const std::string& path) {
  ONEHOP_TRY(name, name_of_folder(path));
  Fd folder{::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW)};
  if (!folder.is_open())
    return errno_error(ExitCode::local_file_error, attempt_to_offer(path),
                       "Give the path of a folder that you may read");
  roots_.push_back({.path = path.ends_with('/') ? path : path + "/",
                    .name_offset = name.empty() ? 0 : name.size() + 1,
                    .is_folder = true});
  const SourceRoot root = roots_.back();
  TreeWalk walk{options_, scan_, met_, static_cast<std::uint32_t>(roots_.size() - 1), root};
  return walk.run(std::move(folder), std::move(name));
}

Result<Scan> Scanner::run(std::span<const std::string> paths) {
  for (const std::string& path : paths) {
    ONEHOP_TRYV(take(path));
  }
  scan_.source.roots = std::make_shared<const std::vector<SourceRoot>>(std::move(roots_));
  if (scan_.source.files.empty() && !scan_.problems.empty())
    return Error{ExitCode::local_file_error,
                 attempt_to_offer(scan_.problems.front().path),
                 scan_.problems.front().cause + ", and there is nothing else",
                 {},
                 0};
  ONEHOP_TRYV(check_list(scan_.source, options_.limits));
  return std::move(scan_);
}

}  // namespace

std::string_view name_of(ScanProblemKind kind) noexcept {
  constexpr std::array<std::string_view, 6> names{
      "unreadable", "special", "symlink_skipped", "symlink_refused", "reserved_name", "vanished"};
  return names[static_cast<std::size_t>(kind)];
}

Result<Scan> scan(std::span<const std::string> paths, const ScanOptions& options) {
  return Scanner{options}.run(paths);
}

Result<SourceFiles> look_again(SourceNames names, std::vector<ScanProblem>& problems,
                               const ManifestLimits& limits) {
  SourceFiles source;
  static_cast<SourceNames&>(source) = std::move(names);
  source.files.resize(source.manifest.files.size());
  std::vector<bool> is_lost(source.files.size());
  std::size_t open_count = 0;
  for (std::size_t i = 0; i < source.files.size(); ++i) {
    ManifestEntry& entry = source.manifest.files[i];
    if (entry.is_folder) continue;
    struct stat status {};
    auto opened = source.open(i, status);
    if (opened.has_error()) {
      const Error& error = opened.error();
      if (!source.root_of(i).is_folder) return error;
      is_lost[i] = true;
      problems.push_back({.path = source.path_of(i),
                          .kind = error.errno_value == ENOENT ? ScanProblemKind::vanished
                                  : error.errno_value != 0    ? ScanProblemKind::unreadable
                                                              : ScanProblemKind::special,
                          .cause = error.cause});
      continue;
    }
    entry = entry_of(std::move(entry.name), status);
    source.files[i].fence = fence_of(status);
    if (open_count++ < open_files_kept) source.files[i].fd = std::move(opened).value();
  }
  source.erase_if([&](std::size_t i) { return is_lost[i]; });
  ONEHOP_TRYV(check_list(source, limits));
  return source;
}

}  // namespace onehop::file
