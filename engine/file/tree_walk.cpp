// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "engine/file/tree_walk.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <memory>

namespace onehop::file {

namespace {

constexpr int folder_flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
constexpr int file_flags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;

std::string_view kind_text(mode_t mode) noexcept {
  if (S_ISFIFO(mode)) return "it is a fifo";
  if (S_ISSOCK(mode)) return "it is a socket";
  return "it is a device";
}

}  // namespace

Result<void> TreeWalk::run(Fd folder, std::string name) {
  struct stat status {};
  if (::fstat(folder.get(), &status) != 0)
    return errno_error(ExitCode::local_file_error, "look into " + display_name(root_.path));
  // walk() takes the descriptor and closes it; links are resolved from this one.
  const Fd root{::fcntl(folder.get(), F_DUPFD_CLOEXEC, 0)};
  root_fd_ = root.get();
  device_ = status.st_dev;
  name_ = std::move(name);
  if (name_.empty()) return walk(std::move(folder));
  ++depth_;
  ONEHOP_TRYV(walk(std::move(folder)));
  add(status, Fd{});
  return success();
}

std::string TreeWalk::path() const {
  return name_.size() <= root_.name_offset ? root_.path
                                           : root_.path + name_.substr(root_.name_offset);
}

std::string_view TreeWalk::relative_name() const {
  return std::string_view{name_}.substr(root_.name_offset);
}

void TreeWalk::problem(ScanProblemKind kind, std::string cause) {
  scan_.problems.push_back({.path = path(), .kind = kind, .cause = std::move(cause)});
}

void TreeWalk::problem_errno() {
  const int value = errno;
  problem(value == ENOENT ? ScanProblemKind::vanished : ScanProblemKind::unreadable,
          errno_text(value));
}

void TreeWalk::exclude(const std::string& rule) {
  ++scan_.excluded_total;
  if (options_.lists_excluded) scan_.excluded.push_back({.path = path(), .rule = rule});
}

void TreeWalk::add(const struct stat& status, Fd fd, bool is_link) {
  SourceFiles& source = scan_.source;
  const bool is_folder = S_ISDIR(status.st_mode);
  is_folder ? ++scan_.folders : ++scan_.files;
  source.manifest.files.push_back(entry_of(name_, status));
  source.places.push_back({.root = root_index_, .is_link = is_link});
  source.files.push_back({.fd = std::move(fd), .fence = is_folder ? Fence{} : fence_of(status)});
}

void TreeWalk::count_links(const struct stat& status) {
  if (status.st_nlink > 1 && !met_.emplace(status.st_dev, status.st_ino).second) ++scan_.hard_links;
}

/// The names in a folder, by inode: on most file systems that is the order on the disk. No value:
/// the folder cannot be read, and the problem is noted.
std::optional<std::vector<std::string>> TreeWalk::read_names(int folder) {
  // readdir moves an offset that the copy shares; nobody else reads this folder.
  const int copy = ::fcntl(folder, F_DUPFD_CLOEXEC, 0);
  const std::unique_ptr<DIR, int (*)(DIR*)> stream{copy < 0 ? nullptr : ::fdopendir(copy),
                                                   ::closedir};
  if (stream == nullptr) {
    const int value = errno;
    if (copy >= 0) ::close(copy);
    errno = value;
    problem_errno();
    return std::nullopt;
  }
  std::vector<std::pair<ino_t, std::string>> found;
  while (true) {
    errno = 0;
    const dirent* const entry = ::readdir(stream.get());
    if (entry == nullptr) break;
    const std::string_view leaf{entry->d_name};
    if (leaf != "." && leaf != "..") found.emplace_back(entry->d_ino, leaf);
  }
  if (errno != 0) problem_errno();  // what was found is sent
  std::ranges::sort(found);
  std::vector<std::string> names;
  names.reserve(found.size());
  for (auto& [inode, leaf] : found) names.push_back(std::move(leaf));
  return names;
}

/// Files first, then each folder: what it holds, then itself. One descriptor per level is open.
Result<void> TreeWalk::walk(Fd folder) {
  const auto names = read_names(folder.get());
  if (!names) return success();
  const std::size_t length = name_.size();
  const auto go_to = [&](const std::string& leaf) {
    name_.resize(length);
    if (length > 0) name_ += '/';
    name_ += leaf;
  };
  ++depth_;
  std::vector<std::string> folders;
  for (const std::string& leaf : *names) {
    go_to(leaf);
    ONEHOP_TRYV(take(folder.get(), leaf, folders));
    ONEHOP_TRYV(check_count());
  }
  for (const std::string& leaf : folders) {
    go_to(leaf);
    ONEHOP_TRYV(take_folder(folder.get(), leaf));
    ONEHOP_TRYV(check_count());
  }
  --depth_;
  name_.resize(length);
  return success();
}

Result<void> TreeWalk::check_count() const {
  if (scan_.source.files.size() <= options_.limits.entries_max) return success();
  return too_many_entries(scan_.source.files.size(), options_.limits);
}

Result<void> TreeWalk::take(int folder, const std::string& leaf,
                            std::vector<std::string>& folders) {
  struct stat status {};
  if (::fstatat(folder, leaf.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
    problem_errno();
    return success();
  }
  const bool is_folder = S_ISDIR(status.st_mode);
  if (const IgnoreRule* const rule = options_.rules.find(relative_name(), is_folder);
      rule != nullptr && !rule->is_include) {
    exclude(rule->text);
    return success();
  }
  for (const std::string_view suffix : {journal_suffix, session_suffix, stage_suffix}) {
    if (!leaf.ends_with(suffix)) continue;
    problem(ScanProblemKind::reserved_name,
            std::string{"the name ends in "}.append(suffix).append(", which is reserved"));
    return success();
  }
  if (is_folder) {
    folders.push_back(leaf);
  } else if (S_ISREG(status.st_mode)) {
    take_file(folder, leaf, status);
  } else if (S_ISLNK(status.st_mode)) {
    return take_link();
  } else {
    problem(ScanProblemKind::special, std::string{kind_text(status.st_mode)});
  }
  return success();
}

void TreeWalk::take_file(int folder, const std::string& leaf, const struct stat& status) {
  if (root_.path.size() + relative_name().size() >= PATH_MAX)
    return problem(ScanProblemKind::unreadable,
                   "its path has more than 4095 bytes: name a folder that is nearer to it");
  if (scan_.source.files.size() >= open_files_kept) {
    if (::faccessat(folder, leaf.c_str(), R_OK, AT_EACCESS) != 0) return problem_errno();
    count_links(status);
    return add(status, Fd{});
  }
  Fd fd{::openat(folder, leaf.c_str(), file_flags)};
  struct stat opened {};
  if (!fd.is_open() || ::fstat(fd.get(), &opened) != 0) return problem_errno();
  if (!S_ISREG(opened.st_mode))
    return problem(ScanProblemKind::special, std::string{kind_text(opened.st_mode)});
  count_links(opened);
  add(opened, std::move(fd));
}

Result<void> TreeWalk::take_link() {
  if (options_.symlinks == Symlinks::error)
    return Error{ExitCode::local_file_error, "offer " + display_name(path()),
                 "it is a symbolic link",
                 "Leave it out with --exclude, or say --symlinks skip or follow-inside", 0};
  if (options_.symlinks == Symlinks::skip) {
    problem(ScanProblemKind::symlink_skipped, "it is a symbolic link");
    return success();
  }
  Fd fd = open_beneath(root_fd_, std::string{relative_name()});
  struct stat status {};
  if (!fd.is_open() || ::fstat(fd.get(), &status) != 0) {
    const int value = errno;
    problem(ScanProblemKind::symlink_refused,
            value == EXDEV    ? "it is a symbolic link that leads out of the folder"
            : value == EISDIR ? "it is a symbolic link to a folder"
            : value == EINVAL ? "it is a symbolic link to something that is no file"
                              : "it is a symbolic link: " + errno_text(value));
    return success();
  }
  if (scan_.source.files.size() >= open_files_kept) fd.close();
  add(status, std::move(fd), true);
  return success();
}

Result<void> TreeWalk::take_folder(int folder, const std::string& leaf) {
  Fd fd{::openat(folder, leaf.c_str(), folder_flags)};
  struct stat status {};
  if (!fd.is_open() || ::fstat(fd.get(), &status) != 0) {
    problem_errno();
    return success();
  }
  // One that is beyond a limit is refused by name when the list is complete; it need not be walked.
  const bool is_beyond =
      depth_ > options_.limits.depth_max || name_.size() > options_.limits.path_bytes_max;
  if (options_.is_one_file_system && status.st_dev != device_) {
    exclude("--one-file-system");
  } else if (!is_beyond) {
    ONEHOP_TRYV(walk(std::move(fd)));
  }
  add(status, Fd{});
  return success();
}

}  // namespace onehop::file
