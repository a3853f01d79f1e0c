// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tests/support/slow_disk/fat_names.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <strings.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <string_view>

namespace onehop::slow_disk {

namespace {

std::string found_in(int folder, const std::string& path, std::string leaf) {
  const std::size_t end = leaf.find_last_not_of('.');
  if (end != std::string::npos) leaf.resize(end + 1);  // not of "." itself
  // Most names are spelled as they stand, and a folder need not be read for them.
  if (::faccessat(folder, (path.empty() ? leaf : path + "/" + leaf).c_str(), F_OK,
                  AT_SYMLINK_NOFOLLOW) == 0)
    return leaf;
  const int fd =
      ::openat(folder, path.empty() ? "." : path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return leaf;
  const std::unique_ptr<DIR, int (*)(DIR*)> entries{::fdopendir(fd), &::closedir};
  while (const dirent* const entry = ::readdir(entries.get()))
    if (::strcasecmp(entry->d_name, leaf.c_str()) == 0) return entry->d_name;
  return leaf;
}

}  // namespace

std::string fat_path(int folder, const std::string& path) {
  std::string found;
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    const std::string leaf = found_in(folder, found, path.substr(begin, end - begin));
    found += (found.empty() ? "" : "/") + leaf;
    begin = end + 1;
  }
  return found;
}

bool is_fat_name(const std::string& path) {
  const std::string_view leaf = std::string_view{path}.substr(path.rfind('/') + 1);
  return !leaf.ends_with(' ') && std::ranges::none_of(leaf, [](char c) {
    return static_cast<unsigned char>(c) < ' ' ||
           std::string_view{"*?<>|\":\\"}.find(c) != std::string_view::npos;
  });
}

}  // namespace onehop::slow_disk
