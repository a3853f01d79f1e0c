// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// run_tool runs ip, tc or ethtool to its end.
#pragma once

#include <string>

#include "engine/base/result.hpp"
#include "tools/labs/lab/process/spawn.hpp"

namespace onehop::lab {

/// run_tool returns what the program wrote to standard output; where it fails, the error holds its
/// standard error. It waits for the program. Syscalls: pipe2, posix_spawn, poll, read, waitpid.
[[nodiscard]] Result<std::string> run_tool(const Arguments& arguments);

}  // namespace onehop::lab
