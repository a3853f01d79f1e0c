// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "engine/list/source_opener.hpp"

#include <fcntl.h>

#include "engine/disk/confined.hpp"

namespace onehop::list {

namespace {

Error not_found(const SourceNames& names, std::size_t index) {
  return errno_error(ExitCode::local_file_error, attempt_to_offer(names.path_of(index)));
}

}  // namespace

int SourceOpener::folder_of(const SourceNames& names, std::size_t index) {
  const std::size_t root = names.places[index].root;
  if (!folders_ || roots_ != names.roots || root_ != root) {
    roots_ = names.roots;
    root_ = root;
    folders_.emplace((*roots_)[root].fd(), O_PATH);
  }
  return folders_->open(disk::parent_of(names.below_root(index)), false);
}

Fd SourceOpener::open(const SourceNames& names, std::size_t index) {
  if (names.places[index].is_link)
    return open_followed(names.root_of(index).fd(), std::string{names.below_root(index)});
  const int folder = folder_of(names, index);
  if (folder < 0) return {};
  return disk::open_beneath(folder, leaf_in(names.manifest.files[index].name), source_file_flags);
}

Result<Fd> SourceOpener::look_at_file(const SourceNames& names, std::size_t index,
                                      struct stat& status) {
  if (!names.places[index].is_link) {
    const int folder = folder_of(names, index);
    if (folder < 0) return not_found(names, index);
    return open_regular(folder, leaf_in(names.manifest.files[index].name), names.path_of(index),
                        status);
  }
  Fd fd = open(names, index);
  if (!fd.is_open() || ::fstat(fd.get(), &status) != 0) return not_found(names, index);
  return fd;
}

Result<void> SourceOpener::look_at_symlink(const SourceNames& names, std::size_t index,
                                           struct stat& status) {
  const char* const leaf = leaf_in(names.manifest.files[index].name);
  const int folder = folder_of(names, index);
  if (folder < 0 || ::fstatat(folder, leaf, &status, AT_SYMLINK_NOFOLLOW) != 0)
    return not_found(names, index);
  const auto refuse = [&](std::string cause) {
    return Error{ExitCode::local_file_error, attempt_to_offer(names.path_of(index)),
                 std::move(cause)};
  };
  if (!S_ISLNK(status.st_mode)) return refuse("it is no symbolic link any more");
  if (std::string fault = symlink_fault(folder, leaf, names.below_root(index), status);
      !fault.empty())
    return refuse(std::move(fault));
  return success();
}

}  // namespace onehop::list
