// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Places: the folders that entries of a volume are to be in, and what bars an entry from its own.
// For the thread that prepares the volume, but for make_way().
#pragma once

#include <fcntl.h>

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "engine/disk/folder_cache.hpp"
#include "engine/list/volume.hpp"
#include "engine/sink/destination.hpp"

namespace onehop::sink {

class Places {
 public:
  /// destination outlives it.
  explicit Places(Destination& destination)
      : destination_{destination},
        folders_{destination.root(), O_RDONLY, &destination.opened_folders()} {}

  /// folder_of gives the folder that `name` is to be in; nothing: it is missing. `may_replace`: a
  /// file there gives way to a folder. Syscalls: those of FolderCache::open; openat2, fstat.
  [[nodiscard]] Result<std::optional<int>> folder_of(const std::string& name, bool may_replace);
  /// fault_above is why `path`, of which some component is no folder, cannot be one. 0: that is a
  /// file, and gives way to a folder.
  [[nodiscard]] int fault_above(std::string_view path, bool may_replace);
  /// check: what is new can be made and get its name where `name` leads. What is renamed from the
  /// stage, which lies in the root, can only get a name on its file system.
  [[nodiscard]] Result<void> check(const std::string& name, bool is_staged);
  /// drop_ways gives the entries that are left out because a file above them stays. It gives way to
  /// a folder that a file of this volume comes into, or that is offered empty. Otherwise all that
  /// was to be there is left out: a link may still be refused.
  [[nodiscard]] std::vector<std::uint32_t> drop_ways(const list::Manifest& manifest,
                                                     const std::vector<list::FileAction>& actions);
  void close_folders() noexcept { folders_.close(); }
  /// make_way removes the files that folders of the volume replace (OnExist::overwrite), before
  /// anything of it is made. Syscalls: openat2, fstatat, unlinkat.
  void make_way() const;

 private:
  Destination& destination_;
  disk::FolderCache folders_;
  std::set<std::string, std::less<>> ways_;              // files that give way to folders
  std::string missing_path_, barred_path_, place_path_;  // folders that were looked at
  int barred_fault_ = 0, place_fault_ = 0, mount_fault_ = 0;
};

}  // namespace onehop::sink
