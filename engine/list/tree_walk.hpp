// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// TreeWalk: one folder of the command line and all below it, into volumes. A part of
// tree_scan.hpp.
#pragma once

#include <sys/stat.h>

#include <string>
#include <string_view>

#include "engine/base/fd.hpp"
#include "engine/list/volume_maker.hpp"

namespace onehop::list {

/// walk_arguments goes through the arguments one after the other, and gives the last volume. A
/// folder among them that has vanished since check_arguments() is a problem. May block: on the disk
/// and in the outlet, which may be nullptr (VolumeMaker).
[[nodiscard]] Result<ScanVolume> walk_arguments(ScanArguments& arguments,
                                                const ScanOptions& options,
                                                const VolumeSizes& sizes, VolumeOutlet* outlet);

class TreeWalk {
 public:
  /// root: its index in the arguments. All that is referred to outlives this.
  TreeWalk(const ScanOptions& options, ScanArguments& arguments, VolumeMaker& maker,
           std::uint32_t root)
      : options_{options},
        arguments_{arguments},
        maker_{maker},
        root_index_{root},
        root_{(*arguments.roots)[root]} {}

  /// run lists what the argument is and holds.
  [[nodiscard]] Result<void> run();

 private:
  [[nodiscard]] Result<void> walk(Fd folder);
  [[nodiscard]] Result<void> walk_files(int folder, std::string& folders);
  [[nodiscard]] Result<void> take(int folder, const std::string& leaf, std::string& folders);
  [[nodiscard]] Result<void> take_folder(int folder, const std::string& leaf);
  [[nodiscard]] Result<void> take_file(int folder, const std::string& leaf,
                                       const struct stat& status);
  [[nodiscard]] Result<void> take_link(int folder, const std::string& leaf,
                                       const struct stat& status);
  [[nodiscard]] Result<void> copy_link(int folder, const std::string& leaf,
                                       const struct stat& status);
  [[nodiscard]] Result<void> follow_link();
  /// `at`: what the entry is, or its folder.
  [[nodiscard]] Result<void> add(int at, const struct stat& status, Fd fd, bool is_link = false);
  [[nodiscard]] Result<void> add_folder(const struct stat& status);
  [[nodiscard]] Result<void> take_name();
  /// A problem of the entry whose name is name_.
  Result<void> problem(ScanProblemKind kind, std::string cause);
  /// problem_errno: Error: it is not the entry's.
  [[nodiscard]] Result<void> problem_errno();
  Result<void> exclude(const std::string& rule);
  void go_to(std::size_t length, const std::string& leaf);
  [[nodiscard]] std::string path() const { return path_of(root_, name_); }
  [[nodiscard]] std::string_view relative_name() const;

  const ScanOptions& options_;
  ScanArguments& arguments_;
  VolumeMaker& maker_;
  const std::uint32_t root_index_;
  const SourceRoot& root_;
  std::string name_;  // of the entry that is looked at, as it arrives
  InodeNumbering inodes_;
  dev_t device_ = 0;
  std::size_t depth_ = 0;  // of name_'s folder
};

}  // namespace onehop::list
