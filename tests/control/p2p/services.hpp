// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// What a wpa_supplicant with one radio and a NetworkManager answer on a test's bus.
#pragma once

#include <atomic>
#include <catch2/catch.hpp>
#include <functional>
#include <map>
#include <string>
#include <vector>

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

/// Marks: what the machine says of itself to others, byte strings; read and written by the property
/// P2PDeviceConfig.
struct Marks {
  static inline const std::string accepting{"\0\x7e\xd9onehop", 9};
  std::vector<std::string> all;

  std::map<std::string, Service::Reply> replies() {
    auto replies = healthy();
    replies[key()] = {[this](sd_bus_message* reply) {
                        sd_bus_message_open_container(reply, 'v', "a{sv}");
                        sd_bus_message_open_container(reply, 'a', "{sv}");
                        sd_bus_message_open_container(reply, 'e', "sv");
                        sd_bus_message_append(reply, "s", "VendorExtension");
                        sd_bus_message_open_container(reply, 'v', "aay");
                        sd_bus_message_open_container(reply, 'a', "ay");
                        for (const std::string& mark : all)
                          sd_bus_message_append_array(reply, 'y', mark.data(), mark.size());
                        for (int i = 0; i < 5; ++i) sd_bus_message_close_container(reply);
                      },
                      {}};
    return replies;
  }
  /// For Service::on_write. What else is written there, a name say, is no mark.
  std::function<void(const std::string&, sd_bus_message*)> writer() {
    return [this](const std::string& written, sd_bus_message* message) {
      if (written != key()) return;
      all.clear();
      const char* word = "";
      sd_bus_message_enter_container(message, 'v', "a{sv}");
      sd_bus_message_enter_container(message, 'a', "{sv}");
      sd_bus_message_enter_container(message, 'e', "sv");
      sd_bus_message_read(message, "s", &word);
      if (std::string{word} != "VendorExtension") return;
      sd_bus_message_enter_container(message, 'v', "aay");
      sd_bus_message_enter_container(message, 'a', "ay");
      const void* data = nullptr;
      std::size_t bytes = 0;
      while (sd_bus_message_read_array(message, 'y', &data, &bytes) > 0)
        all.emplace_back(static_cast<const char*>(data), bytes);
    };
  }

 private:
  static std::string key() { return radio + " " + device + ".P2PDeviceConfig"; }
};

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

/// The network of a radio that is in `replies` carries the mark `id`.
inline void add_mark(std::map<std::string, Service::Reply>& replies, const std::string& path,
                     const std::string& id) {
  const std::string network = path + "/Networks/1";
  replies[path + " " + name + ".Interface.Networks"] = {
      [=](sd_bus_message* reply) { sd_bus_message_append(reply, "v", "ao", 1, network.c_str()); },
      {}};
  replies[network + " " + name + ".Network.Properties"] = {
      [=](sd_bus_message* reply) {
        sd_bus_message_append(reply, "v", "a{sv}", 1, "id_str", "s", id.c_str());
      },
      {}};
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
