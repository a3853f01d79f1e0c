// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// What a wpa_supplicant with one radio and a NetworkManager answer on a test's bus.
#pragma once

#include <atomic>
#include <catch2/catch.hpp>
#include <map>
#include <string>

#include "control/p2p/supplicant.hpp"
#include "tests/control/p2p/bus_world.hpp"

namespace onehop::p2p {

inline const std::string root = "/fi/w1/wpa_supplicant1", radio = root + "/Interfaces/0",
                         name = "fi.w1.wpa_supplicant1", device = name + ".Interface.P2PDevice";
inline const std::string manager = "org.freedesktop.NetworkManager",
                         manager_path = "/org/freedesktop/NetworkManager",
                         managed = manager_path + "/Devices/1 " + manager + ".Device.Managed";

inline Service::Reply variant(const char* type, const std::string& value) {
  return {[=](sd_bus_message* reply) { sd_bus_message_append(reply, "v", type, value.c_str()); },
          {}};
}

/// A wpa_supplicant with one radio, wlan0, that has Wi-Fi Direct.
inline std::map<std::string, Service::Reply> healthy() {
  return {
      {root + " " + name + ".Interfaces",
       {[](sd_bus_message* reply) { sd_bus_message_append(reply, "v", "ao", 1, radio.c_str()); },
        {}}},
      {radio + " " + name + ".Interface.Ifname", variant("s", "wlan0")},
      {radio + " " + device + ".Role", variant("s", "device")},
      {radio + " " + device + ".P2PDeviceConfig",
       {[](sd_bus_message* reply) {
          sd_bus_message_append(reply, "v", "a{sv}", 1, "DeviceName", "s", "box");
        },
        {}}},
  };
}

/// A NetworkManager that has the radio while `is_on`.
inline std::map<std::string, Service::Reply> managing(std::atomic<bool>& is_on) {
  return {{manager_path + " " + manager + ".GetDeviceByIpIface",
           {[](sd_bus_message* reply) {
              sd_bus_message_append(reply, "o", (manager_path + "/Devices/1").c_str());
            },
            {}}},
          {managed,
           {[&is_on](sd_bus_message* reply) { sd_bus_message_append(reply, "v", "b", int{is_on}); },
            {}}}};
}

/// A connection to wpa_supplicant over a bus that has gone.
inline Supplicant without_bus() {
  const BusWorld world;
  const Service service{name, healthy()};
  auto supplicant = Supplicant::open({});
  REQUIRE(supplicant.has_value());
  return std::move(supplicant).value();
}

}  // namespace onehop::p2p
