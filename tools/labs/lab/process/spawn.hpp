// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// spawn_program starts a program of another package, or of ours, from the lab: nothing on its
// standard input, all signals unblocked, out of reach of the terminal's Ctrl-C, which is for us. It
// inherits the calling thread's network namespace.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "engine/base/result.hpp"

namespace onehop::lab {

using Arguments = std::vector<std::string>;

struct SpawnOptions {
  int output = -1;           ///< descriptor for standard output
  int errors = -1;           ///< descriptor for standard error
  bool has_session = false;  ///< a session of its own: it outlives us
  std::string hint;          ///< where the program is not there
};

/// spawn_program looks the program up in PATH and returns without waiting for it. Syscalls:
/// posix_spawn.
[[nodiscard]] Result<pid_t> spawn_program(const Arguments& arguments, const SpawnOptions& options);

}  // namespace onehop::lab
