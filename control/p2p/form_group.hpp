// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// form_group runs a Formation against wpa_supplicant in real time. When it fails it leaves no
// search, no negotiation and no half-formed group behind.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "control/p2p/supplicant.hpp"

namespace onehop::p2p {

/// Progress: callbacks that report progress to a user; none may be empty. All run on the caller's
/// thread.
struct Progress {
  std::function<void(const Peer&)> on_peer;
  std::function<void(const std::string& pin)> on_pin;  ///< to be entered on the other side
  std::function<void(const std::string& text)> on_text;
};

/// form_group blocks until the plan's end. nullopt: the plan was to find peers. `stop_fd` becomes
/// readable to stop it (-1: never); then the error is `interrupted`. Syscalls: poll, and those of
/// calls on the bus.
[[nodiscard]] Result<std::optional<Group>> form_group(Supplicant& supplicant, const Plan& plan,
                                                      const Progress& progress, int stop_fd);

}  // namespace onehop::p2p
