// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// FolderCache: the folders of a tree below one root, opened once each. Files of a tree come folder
// by folder, so a walk from the root for each of them would be most of their cost.
//
// Paths are a validated manifest's; "" is the root. Both ends use it. Every open is confined
// (confined.hpp). A folder that is renamed away while it is in here stays the one that was found.
// One thread.
#pragma once

#include <fcntl.h>

#include <string>
#include <string_view>
#include <unordered_map>

#include "engine/base/fd.hpp"
#include "engine/disk/opened_folders.hpp"

namespace onehop::disk {

class FolderCache {
 public:
  /// root outlives this, and so does `opened`, which may open up folders that keep us out; null:
  /// none is. flags: of each open.
  explicit FolderCache(int root, int flags = O_RDONLY, OpenedFolders* opened = nullptr) noexcept
      : root_{root}, flags_{flags}, opened_{opened} {}

  /// open gives the folder's descriptor, which stays open until the next call; -1: errno says why.
  /// With `is_creating` missing folders are made, mode 0777 less umask. Syscalls: openat2, mkdirat;
  /// OpenedFolders::open_up().
  [[nodiscard]] int open(std::string_view path, bool is_creating);

  void close() noexcept {
    folders_.clear();
    newest_ = -1;
  }

 private:
  /// Descriptors at once. Lower: a tree that is walked in turns opens folders again. Higher: less
  /// is left of the process's limit.
  static constexpr std::size_t folders_max = 128;

  [[nodiscard]] int find(std::string_view path, bool is_creating);
  [[nodiscard]] Fd open_folder(const std::string& path) const;

  const int root_, flags_;
  OpenedFolders* const opened_;
  // That of the call before: files come folder by folder.
  std::string newest_path_;
  int newest_ = -1;
  std::unordered_map<std::string, Fd> folders_;
};

}  // namespace onehop::disk
