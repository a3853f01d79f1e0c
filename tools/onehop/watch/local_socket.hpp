// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Unix stream sockets with a path: the two calls that publisher and observer need. Never blocking.
#pragma once

#include <sys/un.h>

#include <string>

#include "engine/base/fd.hpp"
#include "engine/base/result.hpp"

namespace onehop::watch {

inline constexpr std::size_t socket_path_bytes_max = sizeof(sockaddr_un::sun_path) - 1;

/// connect_local opens the socket at `path`. errno_value ECONNREFUSED: its process is gone; EAGAIN:
/// it accepts no connection now. Syscalls: socket, connect.
[[nodiscard]] Result<Fd> connect_local(const std::string& path);

/// listen_local makes the socket of `path` with mode 0600, by way of `path_new` in the same folder,
/// so that it is never seen before it listens. Syscalls: socket, bind, chmod, listen, rename.
[[nodiscard]] Result<Fd> listen_local(const std::string& path, const std::string& path_new);

/// is_allowed: the process at the other end runs as this process's user, or as root. Syscalls:
/// getsockopt (SO_PEERCRED).
[[nodiscard]] bool is_allowed(int fd) noexcept;

}  // namespace onehop::watch
