// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// The control process of a Wi-Fi link: a process and not a thread, so that `lab up` can leave it
// behind, a signal to the lab does not reach it half way, and a test can kill it. The gates it
// holds are shut but for its grants, so without it nothing passes.
//
//   REPORT file   its process id, locked while it lives; then what it has to say of the run
#pragma once

#include <string>

#include "engine/base/result.hpp"
#include "tools/labs/lab/air/player.hpp"

namespace onehop::lab::air {

struct AirProcessOptions {
  PlayerOptions player;
  std::string report;         ///< path
  bool ends_with_us = false;  ///< and not with `lab down`
};

/// start_air returns when the link is under control. The process must have one thread. Syscalls:
/// fork, pipe2, read.
[[nodiscard]] Result<void> start_air(const AirProcessOptions& options);

struct AirEnd {
  bool was_alive = false;  ///< until now
  std::string report;
};

/// stop_air ends the control process that `report` names and removes the file. None there:
/// was_alive is false.
[[nodiscard]] AirEnd stop_air(const std::string& report);

}  // namespace onehop::lab::air
