// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Where transfers publish: a folder per user, closed to others, with a Unix socket PID.sock per
// process.
//
//   $XDG_RUNTIME_DIR/onehop, else /run/onehop (root) or /run/user/UID/onehop, else /tmp/onehop-UID
//
// The publisher takes the first that it can make or that is its own; observers look into all of
// them. Root looks into every user's.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "engine/base/result.hpp"

namespace onehop::watch {

/// make_folder gives the folder in which this user's transfers publish: owned by the user, closed
/// to all others. A folder of that name that is not so is never used. Syscalls: lstat, mkdir.
[[nodiscard]] Result<std::string> make_folder();

/// remove_stale removes sockets in `folder` whose process is gone (connections are refused).
/// Syscalls: connect, unlink.
void remove_stale(const std::string& folder);

struct Running {
  pid_t pid = 0;
  std::string socket;  ///< path
};
/// find_running lists the sockets that this user may open, by PID; root finds everybody's. Stale
/// ones are in it.
[[nodiscard]] std::vector<Running> find_running();
/// searched_folders names where find_running() looked, for messages.
[[nodiscard]] std::string searched_folders();

/// path_of is the socket of a process.
[[nodiscard]] std::string path_of(const std::string& folder, pid_t pid);

}  // namespace onehop::watch
