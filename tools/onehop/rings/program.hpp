// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Program: a process with AF_XDP rings in its memory, found by /proc. Nothing is asked of it and
// nothing in it is changed.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "engine/base/fd.hpp"
#include "engine/base/result.hpp"
#include "tools/onehop/rings/maps.hpp"

namespace onehop::rings {

struct Program {
  pid_t pid = 0;
  std::string name;  ///< of its main thread (comm), fit for a terminal
  std::vector<RingMapping> rings;
};

/// read_program reads the name and the rings of a process. Errors: 3, there is none; 10, it may not
/// be looked at. Syscalls: open, read, and as borrow_socket() where a mapping may be of another
/// family.
[[nodiscard]] Result<Program> read_program(pid_t pid);

struct Found {
  std::vector<Program> programs;  ///< by PID
  bool is_all = true;             ///< false: some processes may not be looked at
};
/// find_programs looks at all processes. Syscalls: as read_program() for each.
[[nodiscard]] Found find_programs();

/// named finds the programs whose name matches an extended regular expression, as pgrep does.
/// Error: usage.
[[nodiscard]] Result<std::vector<Program>> named(std::vector<Program> programs,
                                                 const std::string& pattern);

/// borrow_socket is a descriptor of our own for a socket of that process; closed where it cannot be
/// had. As long as it is open the socket and its queue live on, whatever the process does: keep it
/// for one call only. Syscalls: pidfd_open, getdents, readlink, pidfd_getfd, fstat.
[[nodiscard]] Fd borrow_socket(pid_t pid, std::uint64_t inode);

/// cannot_look is the error of a process that the kernel keeps us from; errno says how.
[[nodiscard]] Error cannot_look(pid_t pid, const char* at_what, int errno_value);

}  // namespace onehop::rings
