// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// form_group runs a Formation against wpa_supplicant in real time. It leaves nothing behind when it
// fails: no search, no negotiation, no half group.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "control/p2p/supplicant.hpp"

namespace onehop::p2p {

/// Progress: what a user is told on the way; none may be empty. All are called on the caller's
/// thread.
struct Progress {
  std::function<void(const Peer&)> on_peer;
  std::function<void(const std::string& pin)> on_pin;  ///< to be entered on the other side
  std::function<void(const std::string& text)> on_text;
};

/// form_group blocks until the plan's end. Nothing: the plan was to find peers. `stop_fd` becomes
/// readable when the user wants it to end (-1: never); then the error is `interrupted`.
/// Syscalls: poll, and those of calls on the bus.
[[nodiscard]] Result<std::optional<Group>> form_group(Supplicant& supplicant, const Plan& plan,
                                                      const Progress& progress, int stop_fd);

}  // namespace onehop::p2p
