// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Privileges: what root gives is needed for sockets and rings only, and given up before a file is
// touched and before a stranger is listened to.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "engine/base/result.hpp"

namespace onehop::tool {

/// User: who a process of root becomes.
struct User {
  uid_t uid = 0;
  gid_t gid = 0;
};

/// find_user: with whose rights files are touched. `name` (--user; empty: not given), else who
/// called sudo, else the owner of `folder` (empty: there is none). Nothing: this process stays who
/// it is. Errors: 2, no such user; 10, not root.
[[nodiscard]] Result<std::optional<User>> find_user(const std::string& name,
                                                    const std::string& folder);

/// become turns this process into that user with that user's groups, on all threads, so that files
/// belong to the user. No capability is in effect then; confine::keep_capabilities() brings back
/// what is to be kept, and ends the rest. Syscalls: prctl, setgroups, setresgid, setresuid.
[[nodiscard]] Result<void> become(const std::optional<User>& user);

/// become_for_files is become() for a command that has no socket: it keeps nothing.
[[nodiscard]] Result<void> become_for_files(const std::string& name, const std::string& folder);

/// CallerRights: while it lives, what this process opens it opens as the user who called sudo. For
/// files that are named on the command line and read before become(). Before there are threads.
class CallerRights {
 public:
  /// Error 10: the rights could not be taken. Syscalls: getgroups, setgroups, setegid, seteuid.
  [[nodiscard]] static Result<CallerRights> take();
  CallerRights(CallerRights&& other) noexcept;
  CallerRights& operator=(CallerRights&&) = delete;
  ~CallerRights();

 private:
  CallerRights() = default;
  bool is_taken_ = false;
  std::vector<gid_t> groups_;
};

/// rate_memory_file is where a user keeps start rates: `user`, or who this process is.
///
///   $ONEHOP_STATE_DIR/start-rates.json, else $XDG_STATE_HOME/onehop/..., else
///   ~/.local/state/onehop/...; empty where there is no home or ONEHOP_STATE_DIR is set and empty
[[nodiscard]] std::string rate_memory_file(const std::optional<User>& user = {});

/// device_folder is where a user's device key and paired devices are, and nothing else:
///
///   $ONEHOP_CONFIG_DIR/pairing, else $XDG_CONFIG_HOME/onehop/pairing, else
///   ~/.config/onehop/pairing; empty where there is no home or ONEHOP_CONFIG_DIR is set and empty
[[nodiscard]] std::string device_folder(const std::optional<User>& user = {});

}  // namespace onehop::tool
