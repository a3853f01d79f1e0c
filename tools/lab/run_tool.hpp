// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// run_tool runs ip, tc or ethtool to its end. The child inherits the calling thread's network namespace.
#pragma once

#include <string>
#include <vector>

#include "engine/base/result.hpp"

namespace onehop::lab {

using Arguments = std::vector<std::string>;

/// run_tool returns what the program wrote to standard output; where it fails, the error holds its standard error.
/// It waits for the program. Syscalls: pipe2, posix_spawn, poll, read, waitpid.
[[nodiscard]] Result<std::string> run_tool(const Arguments& arguments);

}  // namespace onehop::lab
