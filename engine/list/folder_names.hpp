// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// FolderNames: the names in a folder, by inode: on most file systems that is the order on the disk.
//
// A folder may hold millions of names, so they come in runs, and only a run is held and sorted. Any
// one thread at a time. May block on a slow disk.
#pragma once

#include <dirent.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace onehop::list {

class FolderNames {
 public:
  /// Names in a run. Higher: more memory (a name costs 17 bytes and its own). Lower: the reads of a
  /// larger folder go over the disk more often.
  static constexpr std::size_t run_names_max = 65'536;

  /// open starts at the first name. It moves the offset of `folder`, which stays open. False: errno
  /// says why. Syscalls: fcntl, fstat.
  [[nodiscard]] bool open(int folder);

  /// read_run replaces the run by the next one, which is empty at the end. `is_stopped` ends it
  /// early. False: errno says why reading ended, and what was found stands in the run. Syscalls:
  /// getdents64.
  [[nodiscard]] bool read_run(const std::function<bool()>& is_stopped);

  [[nodiscard]] std::size_t size() const noexcept { return order_.size(); }
  /// at gives a name of the run, which lives until the next read_run().
  [[nodiscard]] const char* at(std::size_t index) const noexcept {
    return bytes_.data() + order_[index].offset;
  }

 private:
  struct Item {
    ino_t inode;
    std::uint32_t offset;  // in bytes_; run_names_max names have 17 MB at most
  };
  std::unique_ptr<DIR, int (*)(DIR*)> stream_{nullptr, ::closedir};
  std::string bytes_;  // the names, each with its NUL
  std::vector<Item> order_;
};

}  // namespace onehop::list
