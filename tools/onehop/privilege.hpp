// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Privileges: what sudo gave is needed for sockets and rings only, and given back before a file is
// touched.
#pragma once

#include <string>

#include "engine/base/result.hpp"

namespace onehop::tool {

/// become_sudo_user turns a root process that sudo started into SUDO_UID/SUDO_GID with that user's
/// groups, so that files belong to the user; a process that was not started by sudo stays as it is.
/// It applies to all threads (glibc's setxid). Returns whether it changed anything. Syscalls:
/// setgroups, setresgid, setresuid.
[[nodiscard]] Result<bool> become_sudo_user();

/// becomes_sudo_user: become_sudo_user() would change this process.
[[nodiscard]] bool becomes_sudo_user() noexcept;

/// rate_memory_file is where this user keeps start rates, under sudo the one that we become:
///
///   $ONEHOP_STATE_DIR/start-rates.json, else $XDG_STATE_HOME/onehop/..., else
///   ~/.local/state/onehop/...; empty where there is no home or ONEHOP_STATE_DIR is set and empty
[[nodiscard]] std::string rate_memory_file();

}  // namespace onehop::tool
