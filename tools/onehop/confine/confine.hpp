// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// What a transfer's process gives up before the first byte of a stranger is parsed, in this order:
//
//   sockets, rings and program are open
//      │  no_new_privs   no program that is started can have more
//      │  capabilities   none but those that its port still needs
//      │  Landlock       files: what is sent or received, and what it writes itself
//      ▼  seccomp        a list of system calls
//   connect or listen
//
// It holds for the calling thread and what it starts: call it before there are others. The library
// never does this, since the process is its program's (docs/embedding.md).
#pragma once

#include <string>
#include <vector>

#include "engine/base/result.hpp"
#include "tools/onehop/confine/capabilities.hpp"
#include "tools/onehop/confine/landlock.hpp"
#include "tools/onehop/confine/seccomp.hpp"

namespace onehop::confine {

struct Plan {
  Capabilities kept = 0;
  /// Kept only where Landlock holds: they open any file that it leaves in reach.
  Capabilities kept_in_reach = 0;
  LandlockRules files;
  SeccompNeeds calls;
};

/// common_places: what libraries read of the system, the terminal, and what the program reads of
/// /proc and /sys.
[[nodiscard]] std::vector<Place> common_places();

/// confine does all of it. What the kernel or a sandbox around us refuses of Landlock and seccomp
/// is in the list that it returns, with its cause; the rest is done. Error: 10, where capabilities
/// stay.
[[nodiscard]] Result<std::vector<std::string>> confine(const Plan& plan);

/// describe_kernel: what confine() can do here, for people: "capabilities, Landlock ABI 7, ...".
[[nodiscard]] std::string describe_kernel();
/// missing_in_kernel: why not all of it, or empty.
[[nodiscard]] std::string missing_in_kernel();

}  // namespace onehop::confine
