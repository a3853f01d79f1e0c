// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// TreeWalk: one folder of the command line and all below it, into a Scan. A part of tree_scan.hpp.
#pragma once

#include <sys/stat.h>

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/fd.hpp"
#include "engine/file/tree_scan.hpp"

namespace onehop::file {

/// Inodes that have further names and were met; of all arguments.
using MetInodes = std::set<std::pair<dev_t, ino_t>>;

class TreeWalk {
 public:
  /// root: its index in the roots of the command line, and what it is.
  TreeWalk(const ScanOptions& options, Scan& scan, MetInodes& met, std::uint32_t root_index,
           const SourceRoot& root)
      : options_{options}, scan_{scan}, met_{met}, root_index_{root_index}, root_{root} {}

  /// run lists what `folder` holds. `name` is what the folder arrives as; empty: what it holds
  /// stands beside the other arguments.
  [[nodiscard]] Result<void> run(Fd folder, std::string name);

 private:
  [[nodiscard]] Result<void> walk(Fd folder);
  [[nodiscard]] std::optional<std::vector<std::string>> read_names(int folder);
  [[nodiscard]] Result<void> check_count() const;
  [[nodiscard]] Result<void> take(int folder, const std::string& leaf,
                                  std::vector<std::string>& folders);
  [[nodiscard]] Result<void> take_folder(int folder, const std::string& leaf);
  [[nodiscard]] Result<void> take_link();
  void take_file(int folder, const std::string& leaf, const struct stat& status);
  void add(const struct stat& status, Fd fd, bool is_link = false);
  void count_links(const struct stat& status);
  /// A problem of the entry whose name is name_.
  void problem(ScanProblemKind kind, std::string cause);
  void problem_errno();
  void exclude(const std::string& rule);
  [[nodiscard]] std::string path() const;
  [[nodiscard]] std::string_view relative_name() const;

  const ScanOptions& options_;
  Scan& scan_;
  MetInodes& met_;
  const std::uint32_t root_index_;
  const SourceRoot& root_;
  std::string name_;  // of the entry that is looked at, as it arrives
  int root_fd_ = -1;
  dev_t device_ = 0;
  std::size_t depth_ = 0;  // of name_'s folder
};

}  // namespace onehop::file
