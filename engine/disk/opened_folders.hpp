// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// OpenedFolders: folders of our own in the destination whose mode keeps us out, opened up while a
// session lasts.
//
//   0555, 0311, 0000 ─▶ open_up() ─▶ what the session brings ─▶ take(): the announced mode
//                                                           └─▶ close(): the mode that it had
//
// Only the owner's own rights are added. After a kill they stay until the next session gives the
// folder its announced mode (pack_commit.hpp). A Destination owns it. Any thread.
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

namespace onehop::disk {

class OpenedFolders {
 public:
  /// root outlives it.
  explicit OpenedFolders(int root) noexcept : root_{root} {}
  ~OpenedFolders() { close(); }
  OpenedFolders(const OpenedFolders&) = delete;
  OpenedFolders& operator=(const OpenedFolders&) = delete;

  /// open_up gives the owner all rights in each folder of `path`, as far as they are ours and
  /// there. True: one had not got them. Else errno is as it was. Syscalls: openat2, fstat, chmod.
  bool open_up(std::string_view path);
  /// use_in calls `use`, which gives 0 or an errno, and once more where it was refused EACCES and
  /// a folder of `path` could be opened up.
  [[nodiscard]] int use_in(std::string_view path, const std::function<int()>& use);
  /// take returns the mode that an opened folder had, once; the caller sets its mode.
  [[nodiscard]] std::optional<mode_t> take(std::string_view path);
  /// close gives all that were not taken their modes back. Syscalls: as open_up.
  void close() noexcept;

 private:
  const int root_;
  std::mutex mutex_;
  std::map<std::string, mode_t, std::less<>> modes_;  // by path
};

}  // namespace onehop::disk
