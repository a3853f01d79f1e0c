// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "engine/disk/folder_cache.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "engine/base/system/access.hpp"
#include "engine/disk/confined.hpp"
#include "engine/disk/own_names.hpp"

namespace onehop::disk {

int FolderCache::open(std::string_view path, bool is_creating) {
  if (path.empty()) return root_;
  if (newest_ >= 0 && path == newest_path_) return newest_;
  const int folder = find(path, is_creating);
  if (folder < 0) return -1;
  newest_path_ = path;
  return newest_ = folder;
}

Fd FolderCache::open_folder(const std::string& path) const {
  while (true) {
    Fd folder = open_beneath(root_, path, flags_ | O_DIRECTORY);
    if (opened_ == nullptr) return folder;
    // One that may be read and not searched opens, and then nothing in it.
    const bool is_barred =
        folder.is_open() ? access_fault(folder.get(), ".", F_OK) != 0 : errno == EACCES;
    if (!is_barred || !opened_->open_up(path)) return folder;
  }
}

int FolderCache::find(std::string_view path, bool is_creating) {
  std::string key{path};
  if (const auto at = folders_.find(key); at != folders_.end()) return at->second.get();
  Fd folder = open_folder(key);
  if (!folder.is_open() && errno == EMFILE && !folders_.empty()) {
    folders_.clear();
    folder = open_folder(key);
  }
  if (!folder.is_open() && errno == ENOENT && is_creating) {
    // Depth is bounded by ManifestLimits.
    const int parent = open(parent_of(path), true);
    if (parent < 0) return -1;
    const std::string leaf{leaf_of(path)};
    const auto make = [&] { return ::mkdirat(parent, leaf.c_str(), 0777) == 0 || errno == EEXIST; };
    const bool is_made = make() || (errno == EACCES && opened_ != nullptr &&
                                    opened_->open_up(parent_of(path)) && make());
    if (!is_made) return -1;
    folder = open_folder(key);
  }
  if (!folder.is_open()) return -1;
  if (folders_.size() >= folders_max) folders_.clear();
  return folders_.emplace(std::move(key), std::move(folder)).first->second.get();
}

}  // namespace onehop::disk
