// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// SymlinkRule: which of a peer's symbolic links are made.
//
//   name, target ─▶ fault_of(): by the text alone ─▶ Stage ─▶ check(): by what is there ─▶ its name
//
// A link is made if its target stays below the folder that was sent. By the text: it is relative,
// has ".." only at its beginning, and no hidden component. On the disk: it stays below the first
// component of the link's own name, or below another first component of the session (`send DIR/`
// has several); and the path to it has no links but those of this session. These follow the same
// rule, so a chain of them stays inside as well.
//
// The order in which links come must not matter. A link through a name that does not exist yet
// waits: a later link of that name is made only if both together stay inside.
//
// It follows no link to open anything, and it changes nothing. A session has one, which outlives a
// restart of the session. offer() is for the thread that prepares volumes, check() for the one
// that gives files their names.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "engine/list/manifest.hpp"

namespace onehop::list {

/// SymlinkFault: why a link is not made, where an entry has the errno of a refused name. The
/// numbers are protocol, and above every errno.
enum class SymlinkFault : std::uint8_t {
  none = 0,
  not_taken = 200,   ///< the receiver's user wants no links
  leads_out = 201,   ///< the target is not below the folder that was sent
  hidden = 202,      ///< a component of the target begins with a dot
  other_link = 203,  ///< the target is reached through a link that is not one of the session
};
/// symlink_fault_text is a cause, or empty: the number is no SymlinkFault.
[[nodiscard]] std::string_view symlink_fault_text(int fault) noexcept;

class SymlinkRule {
 public:
  explicit SymlinkRule(bool is_hidden_allowed) : is_hidden_allowed_{is_hidden_allowed} {}

  /// offer records a volume's names, before anything of it is made.
  void offer(const Manifest& volume);
  /// set_folding: names with different bytes may be the same there. Then a target may lead through
  /// real folders alone.
  void set_folding() noexcept { is_strict_ = true; }

  /// fault_of checks the text alone. `name` is a path below the destination.
  [[nodiscard]] SymlinkFault fault_of(std::string_view name,
                                      std::string_view target) const noexcept;
  /// check examines the disk, for a link that gets or has the name `name`, and has no fault by
  /// fault_of(). Syscalls: openat2, fstat, readlinkat.
  [[nodiscard]] SymlinkFault check(int root, const std::string& name, const std::string& target);

 private:
  /// Wait: a link leads through the first `bytes` of a path.
  struct Wait {
    std::size_t path = 0;  ///< in paths_
    std::size_t bytes = 0;
  };
  [[nodiscard]] SymlinkFault walk(int root, std::string from, std::string path);
  [[nodiscard]] bool is_sent(int root, std::string_view from, std::string_view path);
  [[nodiscard]] bool is_offered_link(const std::string& path);
  [[nodiscard]] SymlinkFault wait_for(const std::string& path, std::size_t begin);
  void drop_waits(int root);

  const bool is_hidden_allowed_;
  /// Also if too many wait: then a link that would have to wait is refused.
  std::atomic<bool> is_strict_{false};

  std::mutex mutex_;                          // of these two
  std::unordered_set<std::size_t> tops_;      // hashes of first components
  std::unordered_set<std::size_t> symlinks_;  // hashes of the names of links

  // Of the thread that gives names.
  std::unordered_multimap<std::size_t, Wait> waits_;  // by the hash of what they lead through
  std::deque<std::string> paths_;
  std::size_t paths_bytes_ = 0;
};

}  // namespace onehop::list
