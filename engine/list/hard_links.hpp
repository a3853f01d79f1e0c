// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// HardLinks counts the files whose inode was met before under another name. It remembers a bounded
// number of inodes, so where a tree has more of them the count is a lower bound, and says so.
// Any one thread; no syscalls.
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <set>
#include <utility>

namespace onehop::list {

class HardLinks {
 public:
  /// Higher: 64 bytes each, for a figure that is only printed. Lower: a copy made of hard links
  /// (rsnapshot, cp -al) is counted in part only.
  static constexpr std::size_t inodes_max = 65'536;

  /// count is called once for each file that is sent.
  void count(const struct stat& status) {
    if (status.st_nlink < 2) return;
    const std::pair inode{status.st_dev, status.st_ino};
    if (met_.contains(inode))
      ++links_total_;
    else if (met_.size() < inodes_max)
      met_.insert(inode);
    else
      is_lower_bound_ = true;
  }

  [[nodiscard]] std::uint64_t links_total() const noexcept { return links_total_; }
  /// is_lower_bound: an inode with several names was met and not remembered.
  [[nodiscard]] bool is_lower_bound() const noexcept { return is_lower_bound_; }

 private:
  std::set<std::pair<dev_t, ino_t>> met_;
  std::uint64_t links_total_ = 0;
  bool is_lower_bound_ = false;
};

}  // namespace onehop::list
