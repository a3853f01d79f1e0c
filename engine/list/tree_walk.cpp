// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "engine/list/tree_walk.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "engine/base/display_name.hpp"
#include "engine/base/system/access.hpp"
#include "engine/base/system/descriptors.hpp"
#include "engine/disk/confined.hpp"
#include "engine/list/folder_names.hpp"

namespace onehop::list {

namespace {

constexpr int folder_flags = O_RDONLY | O_DIRECTORY | O_NONBLOCK;

}  // namespace

Result<ScanVolume> walk_arguments(ScanArguments& arguments, const ScanOptions& options,
                                  const VolumeSizes& sizes, VolumeOutlet* outlet) {
  VolumeMaker maker{options, arguments, sizes, outlet};
  SourceFiles& named = arguments.named;
  std::size_t file = 0;
  for (std::uint32_t root = 0; root < arguments.arguments.size(); ++root) {
    if ((*arguments.roots)[root].is_folder) {
      ONEHOP_TRYV((TreeWalk{options, arguments, maker, root}.run()));
      continue;
    }
    if (!maker.keeps_open()) named.files[file].fd.close();
    ONEHOP_TRYV(maker.add(std::move(named.manifest.files[file]), named.places[file],
                          std::move(named.files[file])));
    ONEHOP_TRYV(maker.check());
    ++file;
  }
  return maker.finish();
}

Result<void> TreeWalk::run() {
  const ScanArguments::Argument& argument = arguments_.arguments[root_index_];
  name_ = argument.name;
  // Not a copy of the root's descriptor: readdir moves an offset that copies share.
  Fd folder = disk::open_beneath(root_.fd(), ".", folder_flags);
  struct stat status {};
  if (!folder.is_open() || ::fstat(folder.get(), &status) != 0) return problem_errno();
  if (status.st_nlink == 0) {
    errno = ENOENT;
    return problem_errno();
  }
  device_ = status.st_dev;
  if (name_.empty()) return walk(std::move(folder));
  ++depth_;
  ONEHOP_TRYV(walk(std::move(folder)));
  ONEHOP_TRYV(add_folder(status));
  return maker_.check();
}

std::string_view TreeWalk::relative_name() const {
  return std::string_view{name_}.substr(root_.name_offset);
}

Result<void> TreeWalk::problem(ScanProblemKind kind, std::string cause) {
  maker_.add_problem({.path = path(), .kind = kind, .cause = std::move(cause)});
  return success();
}

Result<void> TreeWalk::problem_errno() {
  const int value = errno;
  if (has_run_out(value)) return ran_out(attempt_to_offer(path()), value);
  return problem(value == ENOENT ? ScanProblemKind::vanished : ScanProblemKind::unreadable,
                 errno_text(value));
}

Result<void> TreeWalk::exclude(const std::string& rule) {
  maker_.exclude(path(), rule);
  return success();
}

/// What stands beside the arguments may have the name of another.
Result<void> TreeWalk::take_name() {
  if (root_.name_offset > 0 || depth_ > 1) return success();
  return arguments_.take_name(name_, root_index_);
}

Result<void> TreeWalk::add(int at, const struct stat& status, Fd fd, bool is_link) {
  return maker_.add(entry_of(name_, status), {.root = root_index_, .is_link = is_link},
                    {.fd = std::move(fd), .fence = inodes_.fence(at, status)});
}

Result<void> TreeWalk::add_folder(const struct stat& status) {
  return maker_.add(entry_of(name_, status), {.root = root_index_}, {});
}

void TreeWalk::go_to(std::size_t length, const std::string& leaf) {
  name_.resize(length);
  if (length > 0) name_ += '/';
  name_ += leaf;
}

/// Files first, then each folder: what it holds, then itself. One descriptor per level is open.
Result<void> TreeWalk::walk(Fd folder) {
  const std::size_t length = name_.size();
  std::string folders, leaf;
  ++depth_;
  ONEHOP_TRYV(walk_files(folder.get(), folders));
  for (std::size_t at = 0; at < folders.size(); at += leaf.size() + 1) {
    leaf = folders.c_str() + at;
    go_to(length, leaf);
    ONEHOP_TRYV(take_folder(folder.get(), leaf));
    ONEHOP_TRYV(maker_.check());
  }
  --depth_;
  name_.resize(length);
  return success();
}

/// All but the folders. Their names are appended to `folders`, each with its NUL: of a million that
/// takes less than a vector of strings. The other names are released before folders are walked.
Result<void> TreeWalk::walk_files(int folder, std::string& folders) {
  const std::size_t length = name_.size();
  FolderNames names;
  if (!names.open(folder)) return problem_errno();
  std::string leaf;
  for (bool has_more = true; has_more;) {
    if (!names.read_run([&] { return maker_.is_stopped(); })) {
      ONEHOP_TRYV(problem_errno());  // what was found is sent
      has_more = false;
    }
    has_more = has_more && names.size() > 0;
    for (std::size_t i = 0; i < names.size(); ++i) {
      leaf = names.at(i);
      go_to(length, leaf);
      ONEHOP_TRYV(take(folder, leaf, folders));
      ONEHOP_TRYV(maker_.check());
    }
    name_.resize(length);
  }
  return success();
}

Result<void> TreeWalk::take(int folder, const std::string& leaf, std::string& folders) {
  struct stat status {};
  if (::fstatat(folder, leaf.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) return problem_errno();
  const bool is_folder = S_ISDIR(status.st_mode);
  if (const IgnoreRule* const rule = options_.rules.find(relative_name(), is_folder);
      rule != nullptr && !rule->is_include)
    return exclude(rule->text);
  if (std::string fault = name_fault(name_, options_.limits); !fault.empty())
    return problem(ScanProblemKind::name_refused, std::move(fault));
  if (is_folder) {
    folders.append(leaf).push_back('\0');
    return success();
  }
  if (S_ISREG(status.st_mode)) return take_file(folder, leaf, status);
  if (S_ISLNK(status.st_mode)) return take_link(folder, leaf, status);
  return problem(ScanProblemKind::special, std::string{kind_text(status.st_mode)});
}

Result<void> TreeWalk::take_file(int folder, const std::string& leaf, const struct stat& status) {
  if (!maker_.keeps_open()) {
    errno = access_fault(folder, leaf.c_str(), R_OK, AT_SYMLINK_NOFOLLOW);
    if (errno != 0) return problem_errno();
    maker_.count_links(status);
    ONEHOP_TRYV(take_name());
    return add(folder, status, Fd{});
  }
  Fd fd = disk::open_beneath(folder, leaf, source_file_flags);
  struct stat opened {};
  if (!fd.is_open() || ::fstat(fd.get(), &opened) != 0) return problem_errno();
  if (!S_ISREG(opened.st_mode))
    return problem(ScanProblemKind::special, std::string{kind_text(opened.st_mode)});
  maker_.count_links(opened);
  ONEHOP_TRYV(take_name());
  return add(folder, opened, std::move(fd));
}

Result<void> TreeWalk::take_link(int folder, const std::string& leaf, const struct stat& status) {
  if (options_.symlinks == Symlinks::error)
    return Error{ExitCode::local_file_error, "offer " + display_name(path()),
                 "it is a symbolic link",
                 "Leave it out with --exclude, or say --symlinks skip, copy or follow-inside", 0};
  if (options_.symlinks == Symlinks::skip)
    return problem(ScanProblemKind::symlink_skipped, "it is a symbolic link");
  return options_.symlinks == Symlinks::copy ? copy_link(folder, leaf, status) : follow_link();
}

Result<void> TreeWalk::copy_link(int folder, const std::string& leaf, const struct stat& status) {
  if (std::string fault = symlink_fault(folder, leaf, relative_name(), status); !fault.empty())
    return problem(ScanProblemKind::symlink_refused, std::move(fault));
  maker_.count_links(status);
  ONEHOP_TRYV(take_name());
  return add(folder, status, Fd{});
}

Result<void> TreeWalk::follow_link() {
  Fd fd = open_followed(root_.fd(), std::string{relative_name()});
  struct stat status {};
  if (!fd.is_open() || ::fstat(fd.get(), &status) != 0) {
    const int value = errno;
    if (has_run_out(value)) return ran_out(attempt_to_offer(path()), value);
    return problem(ScanProblemKind::symlink_refused,
                   value == EXDEV    ? "it is a symbolic link that leads out of the folder"
                   : value == EISDIR ? "it is a symbolic link to a folder"
                   : value == EINVAL ? "it is a symbolic link to something that is no file"
                                     : "it is a symbolic link: " + errno_text(value));
  }
  ONEHOP_TRYV(take_name());
  const int at = fd.get();
  if (maker_.keeps_open()) return add(at, status, std::move(fd), true);
  return add(at, status, Fd{}, true);
}

Result<void> TreeWalk::take_folder(int folder, const std::string& leaf) {
  Fd fd = disk::open_beneath(folder, leaf, folder_flags);
  struct stat status {};
  if (!fd.is_open() || ::fstat(fd.get(), &status) != 0) return problem_errno();
  ONEHOP_TRYV(take_name());
  if (options_.is_one_file_system && status.st_dev != device_) {
    ONEHOP_TRYV(exclude("--one-file-system"));
  } else {
    ONEHOP_TRYV(walk(std::move(fd)));
  }
  return add_folder(status);
}

}  // namespace onehop::list
