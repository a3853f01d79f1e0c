// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "engine/list/folder_names.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string_view>

namespace onehop::list {

bool FolderNames::open(int folder) {
  // readdir moves an offset that the copy shares; no other code reads this folder.
  const int copy = ::fcntl(folder, F_DUPFD_CLOEXEC, 0);
  if (copy < 0) return false;
  stream_.reset(::fdopendir(copy));
  if (stream_ != nullptr) return true;
  const int value = errno;
  ::close(copy);
  errno = value;
  return false;
}

bool FolderNames::read_run(const std::function<bool()>& is_stopped) {
  bytes_.clear();
  order_.clear();
  int errno_value = 0;
  while (order_.size() < run_names_max && !is_stopped()) {
    errno = 0;
    const dirent* const entry = ::readdir(stream_.get());
    if (entry == nullptr) {
      errno_value = errno;
      break;
    }
    const std::string_view leaf{entry->d_name};
    if (leaf == "." || leaf == "..") continue;
    order_.push_back({entry->d_ino, static_cast<std::uint32_t>(bytes_.size())});
    bytes_.append(leaf).push_back('\0');
  }
  std::ranges::sort(order_, [&](const Item& a, const Item& b) {
    if (a.inode != b.inode) return a.inode < b.inode;
    return std::string_view{bytes_.data() + a.offset} < std::string_view{bytes_.data() + b.offset};
  });
  errno = errno_value;
  return errno_value == 0;
}

}  // namespace onehop::list
