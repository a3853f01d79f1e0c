// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// A process beside this one, for what the process that parses a peer's bytes must not be able to
// do: to use a port's capabilities, to start a program, to call services on a bus.
#pragma once

#include <sys/types.h>

#include <functional>

#include "engine/base/fd.hpp"
#include "engine/base/result.hpp"

namespace onehop::confine {

struct HelperProcess {
  Fd socket;  ///< its end is the helper's end
  pid_t pid;
};

/// start_helper runs `serve` in a process called `name`, with the other end of a socket
/// (SOCK_SEQPACKET). The helper has this process's user, capabilities and standard streams and no
/// other descriptor, and it ignores the signals that end this one. Call it before there are
/// threads. Error: 1. Syscalls: socketpair, fork.
[[nodiscard]] Result<HelperProcess> start_helper(const char* name,
                                                 const std::function<void(Fd)>& serve);
/// start_powerless_helper is start_helper without capabilities and standard streams. It returns the
/// helper's socket.
[[nodiscard]] Result<Fd> start_powerless_helper(const char* name, void (*serve)(Fd));

/// close_streams has the standard streams lead to /dev/null. A pipe of theirs then ends with the
/// other processes that have it.
void close_streams();

}  // namespace onehop::confine
