// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// HoleRuns: runs of a file's blocks that were announced as holes, until the file's tree has them. A
// run that goes on where another ends is one with it. Pure; one file thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>

namespace onehop::file {

class HoleRuns {
 public:
  /// add takes [first, end), which is not empty. False: a block of it is here already, and nothing
  /// has changed.
  [[nodiscard]] bool add(std::uint64_t first, std::uint64_t end) {
    const auto after = ends_.lower_bound(first);
    const auto before = after == ends_.begin() ? ends_.end() : std::prev(after);
    if (after != ends_.end() && after->first < end) return false;
    if (before != ends_.end() && before->second > first) return false;
    if (before != ends_.end() && before->second == first)
      before->second = end;
    else
      ends_.emplace_hint(after, first, end);
    return true;
  }
  [[nodiscard]] bool contains(std::uint64_t block) const {
    const auto after = ends_.upper_bound(block);
    return after != ends_.begin() && std::prev(after)->second > block;
  }
  /// take_at gives the end of the run that begins at `block`, and forgets it; `block`: there is
  /// none.
  [[nodiscard]] std::uint64_t take_at(std::uint64_t block) {
    const auto node = ends_.extract(block);
    return node.empty() ? block : node.mapped();
  }
  [[nodiscard]] std::size_t size() const noexcept { return ends_.size(); }

 private:
  std::map<std::uint64_t, std::uint64_t> ends_;  // by first block
};

}  // namespace onehop::file
