// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// NetworkManager, asked to leave a device alone for a while and to take it back: the Managed
// property of its Device object. Calls block. One thread.
//= NetworkManager's D-Bus API reference: org.freedesktop.NetworkManager.Device
#pragma once

#include <string>

#include "control/p2p/bus.hpp"

namespace onehop::p2p {

/// is_managed: NetworkManager runs and has the device. False also where it cannot be asked.
[[nodiscard]] bool is_managed(Bus& bus, const std::string& interface);
/// set_managed gives the device back (true), or asks for it (false). Error: privilege_missing.
[[nodiscard]] Result<void> set_managed(Bus& bus, const std::string& interface, bool is_on);

}  // namespace onehop::p2p
