// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Privileges: what sudo gave is needed for sockets and rings only, and given back before a file is touched.
#pragma once

#include "engine/base/result.hpp"

namespace onehop::tool {

/// become_sudo_user turns a root process that sudo started into SUDO_UID/SUDO_GID with that user's groups, so that files
/// belong to the user; a process that was not started by sudo stays as it is. It applies to all threads (glibc's setxid).
/// Returns whether it changed anything. Syscalls: setgroups, setresgid, setresuid.
[[nodiscard]] Result<bool> become_sudo_user();

/// becomes_sudo_user: become_sudo_user() would change this process.
[[nodiscard]] bool becomes_sudo_user() noexcept;

}  // namespace onehop::tool
