// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Descriptors: how many files this process may have open, and what is said where they run out.
//
// Running out is no property of the file that was to be opened: it ends the session, with the
// number that is needed. Any thread.
#pragma once

#include <cerrno>
#include <cstddef>

#include "engine/base/result.hpp"

namespace onehop {

/// What a transfer has open beside its files: standard streams, sockets of session and link, rings,
/// timers, outputs. Higher: refused where it would have worked. Lower: it ends later, with the same
/// text.
inline constexpr std::size_t descriptors_min = 64;
/// With so many no session runs out. A sender keeps up to 256 files open from the first volume,
/// and up to 128 folders; a receiver up to three for each file that is under way.
inline constexpr std::size_t descriptors_enough = 1024;

/// has_run_out: the errno is of this process or machine, and not of what was to be opened or read.
[[nodiscard]] constexpr bool has_run_out(int errno_value) noexcept {
  return errno_value == EMFILE || errno_value == ENFILE || errno_value == ENOMEM ||
         errno_value == ENOBUFS;
}

/// raise_descriptor_limit raises the soft limit to the hard one. Error: exit 9, fewer than
/// descriptors_min are left. Syscalls: getrlimit, setrlimit, openat, getdents64.
[[nodiscard]] Result<void> raise_descriptor_limit();

/// descriptors_left is how many more may be opened. Syscalls: getrlimit, openat, getdents64.
[[nodiscard]] std::size_t descriptors_left();

/// close_descriptors_but closes all but the standard streams and `kept`, in a child: a parent would
/// wait without an end for one that holds its other end of their socket.
/// Syscalls: close_range; else getdents64 of /proc/self/fd, getrlimit, close.
void close_descriptors_but(int kept) noexcept;

/// ran_out is the Error of an attempt that failed with one of has_run_out().
[[nodiscard]] Error ran_out(std::string attempt, int errno_value);

}  // namespace onehop
