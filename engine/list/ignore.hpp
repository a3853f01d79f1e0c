// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// IgnoreRules: which names of a folder are left out, by the patterns of gitignore(5).
//
// Patterns are tried on every name below a folder, in the order given; the last one that matches
// decides. The walk checks each folder before it enters it, so nothing below an excluded folder can
// be included again. Names are bytes, relative to the folder, without a slash at the end. Pure
// functions; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace onehop::list {

struct IgnoreRule {
  std::string text;     ///< as it was given, for people
  std::string pattern;  ///< what has to match: no '!', no slash at either end
  bool is_include = false;
  bool is_for_folders = false;  ///< it ended in a slash
  bool has_path = false;        ///< it has another slash: it matches the whole name, not the last
                                ///< component
};

class IgnoreRules {
 public:
  /// add takes a pattern as it is: '#' begins no comment, spaces at its end count.
  void add(std::string_view pattern);

  /// find gives the rule that decides about a name, or nullptr.
  [[nodiscard]] const IgnoreRule* find(std::string_view name, bool is_folder) const noexcept;

 private:
  std::vector<IgnoreRule> rules_;
};

/// patterns_of gives the patterns in the text of a file, one a line, without comments.
[[nodiscard]] std::vector<std::string> patterns_of(std::string_view text);

/// glob_matches: `*`, `?` and `[...]` stay within a component; `**` between slashes is any number
/// of them. Time: at most the product of both lengths, twice.
[[nodiscard]] bool glob_matches(std::string_view pattern, std::string_view name) noexcept;

}  // namespace onehop::list
