// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/p2p/network_manager.hpp"

namespace onehop::p2p {

namespace {

constexpr const char* service = "org.freedesktop.NetworkManager";
constexpr const char* device_interface = "org.freedesktop.NetworkManager.Device";

Result<Bus::Target> device_of(Bus& bus, const std::string& interface) {
  ONEHOP_TRY(path,
             bus.call({service, "/org/freedesktop/NetworkManager", service}, "GetDeviceByIpIface",
                      {interface}, "ask NetworkManager for " + interface));
  return Bus::Target{service, path, device_interface};
}

}  // namespace

bool is_managed(Bus& bus, const std::string& interface) {
  if (!bus.has_owner(service)) return false;
  const auto device = device_of(bus, interface);
  if (device.has_error()) return false;
  const auto managed = bus.get<bool>(device.value(), "Managed", "ask NetworkManager");
  return managed.has_value() && managed.value();
}

Result<void> set_managed(Bus& bus, const std::string& interface, bool is_on) {
  const std::string attempt =
      (is_on ? "give " : "take ") + interface + (is_on ? " back to" : " from") + " NetworkManager";
  ONEHOP_TRY(device, device_of(bus, interface));
  auto done = bus.set_property(device, "Managed", is_on, attempt);
  if (done.has_value()) return success();
  Error error = done.error();
  error.hint = "Run it as root, or by hand: nmcli device set " + interface + " managed " +
               (is_on ? "yes" : "no");
  return error;
}

}  // namespace onehop::p2p
