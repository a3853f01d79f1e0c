// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "engine/base/system/own_place.hpp"

#include <dlfcn.h>
#include <link.h>
#include <sys/stat.h>

namespace onehop {

namespace {

namespace fs = std::filesystem;

/// can_others_write: others than those who can write this program, whose status is `self`.
bool can_others_write(const struct stat& status, const struct stat& self) {
  const bool is_of_owner = status.st_uid == 0 || status.st_uid == self.st_uid;
  const bool is_same_group = status.st_gid == self.st_gid && (self.st_mode & S_IWGRP) != 0;
  return !is_of_owner || ((status.st_mode & S_IWGRP) != 0 && !is_same_group) ||
         ((status.st_mode & S_IWOTH) != 0 && (self.st_mode & S_IWOTH) == 0);
}

bool is_above(const fs::path& folder, const fs::path& file) {
  const fs::path relative = file.lexically_relative(folder);
  return !relative.empty() && *relative.begin() != "..";
}

/// open_to_others is the first of `file` and the folders above it that others can write; empty:
/// none. Who can write a folder that this program is in, too, could have replaced this one.
Result<std::string> open_to_others(const fs::path& file, const fs::path& self) {
  struct stat own {};
  if (::stat(self.c_str(), &own) != 0)
    return errno_error(ExitCode::io_unavailable, "look at " + self.string());
  for (fs::path at = file; !is_above(at, self); at = at.parent_path()) {
    struct stat status {};
    if (::stat(at.c_str(), &status) != 0)
      return errno_error(ExitCode::io_unavailable, "look at " + at.string());
    if (can_others_write(status, own)) return at.string();
  }
  return std::string{};
}

}  // namespace

fs::path own_file() {
  static const char here = 0;
  Dl_info info{};
  link_map* map = nullptr;
  // The program itself has no name in the list of what is loaded.
  if (::dladdr1(&here, &info, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP) != 0 &&
      map != nullptr && map->l_name != nullptr && map->l_name[0] != '\0') {
    const fs::path library{map->l_name};
    // The current folder may be another one by now.
    return library.is_absolute() ? library : fs::path{};
  }
  std::error_code error;
  return fs::read_symlink("/proc/self/exe", error);
}

Result<std::string> find_beside(const fs::path& self, std::initializer_list<fs::path> places,
                                std::string_view attempt) {
  std::error_code error;
  for (const fs::path& place : places) {
    const fs::path found = fs::canonical(self.parent_path() / place, error);
    if (error || !fs::is_regular_file(found, error)) continue;
    ONEHOP_TRY(open, open_to_others(found, self));
    if (open.empty()) return found.string();
    return Error{ExitCode::io_unavailable, std::string{attempt} + " " + found.string(),
                 "others than the owner of " + self.string() + " can write " + open,
                 "Make root or that owner its owner, and let nobody else write it"};
  }
  return std::string{};
}

}  // namespace onehop
