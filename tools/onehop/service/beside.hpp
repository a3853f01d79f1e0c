// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// A process beside this one for what is on a bus: there programs can be started and services
// called, which the process that parses a peer's bytes has no use for.
#pragma once

#include "engine/base/fd.hpp"
#include "engine/base/result.hpp"

namespace onehop::tool {

/// start_beside runs `serve` in a process called `name` and returns our end of its socket
/// (SOCK_SEQPACKET). It is who we are by now, without capabilities, terminal and other descriptors,
/// and ends when our end is closed: the signals that end us do nothing to it. Call it before there
/// are threads. Error: 1. Syscalls: socketpair, fork.
[[nodiscard]] Result<Fd> start_beside(const char* name, void (*serve)(Fd));

}  // namespace onehop::tool
