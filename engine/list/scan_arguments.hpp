// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// ScanArguments: the paths of a command line, checked before anything is sent.
//
// What a person mistypes is refused at once: a path that is not there, a file that cannot be sent,
// two arguments that would arrive under one name. What is below the folders is for the walk. A part
// of tree_scan.hpp.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/base/result.hpp"
#include "engine/list/hard_links.hpp"
#include "engine/list/source_files.hpp"

namespace onehop::list {

struct ScanArguments {
  struct Argument {
    std::string path;  ///< as it was given
    std::string name;  ///< what it arrives as; empty: what it holds stands beside the others
  };
  std::vector<Argument> arguments;  ///< by root
  std::shared_ptr<const std::vector<SourceRoot>> roots;
  SourceFiles named;                        ///< the files that are named themselves, in their order
  HardLinks links;                          ///< of `named`
  std::size_t kept_max = open_files_max();  ///< descriptors of the first volume

  /// take_name is for each name without a slash that the walk finds below an argument which gives
  /// what it holds: it may stand there already. `root` is that argument.
  [[nodiscard]] Result<void> take_name(const std::string& name, std::uint32_t root);

  /// By name: its root. Empty where names cannot meet: a folder of a million files has no two
  /// alike.
  std::unordered_map<std::string, std::uint32_t> top_names;
  std::size_t contents = 0;  ///< arguments that give what they hold
};

/// check_arguments. Syscalls: per path fstatat,
/// open, openat2, fstat, fstatfs; of an empty file pread.
[[nodiscard]] Result<ScanArguments> check_arguments(std::span<const std::string> paths);

}  // namespace onehop::list
