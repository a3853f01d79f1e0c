// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// NetworkManager: makes it release a device for a while and take it back, by the Managed property
// of its Device object. Calls block. One thread.
//= NetworkManager's D-Bus API reference: org.freedesktop.NetworkManager.Device
#pragma once

#include <string>

#include "control/bus/bus.hpp"

namespace onehop::p2p {

using namespace bus;

/// is_managed: NetworkManager runs and manages the device. False also if it does not answer.
[[nodiscard]] bool is_managed(Bus& bus, const std::string& interface);
/// set_managed gives the device back (true), or asks for it (false). Error: privilege_missing.
[[nodiscard]] Result<void> set_managed(Bus& bus, const std::string& interface, bool is_on);

}  // namespace onehop::p2p
