// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Goal:   the process that ends a group gives NetworkManager the radio back, whenever its parent
//         took that.
// Method: a real dbus-daemon; services on it stand in for NetworkManager and wpa_supplicant.
// Bounds: none but equality.
#include "tools/p2p/group_keeper.hpp"

#include <catch2/catch.hpp>

#include <atomic>

#include "control/p2p/network_manager.hpp"
#include "tests/control/p2p/bus_world.hpp"

using namespace onehop;
using namespace onehop::p2p;

namespace {

const std::string root = "/fi/w1/wpa_supplicant1", radio = root + "/Interfaces/0",
                  name = "fi.w1.wpa_supplicant1", device = name + ".Interface.P2PDevice",
                  manager = "org.freedesktop.NetworkManager",
                  manager_path = "/org/freedesktop/NetworkManager",
                  managed_device = manager_path + "/Devices/1";

}  // namespace

TEST_CASE("the keeper gives NetworkManager the radio back, though it was taken at once",
          "[tools][p2p]") {
  const BusWorld world;
  const Service supplicant{
      name,
      {{root + " " + name + ".Interfaces",
        {[](sd_bus_message* reply) { sd_bus_message_append(reply, "v", "ao", 1, radio.c_str()); },
         {}}},
       {radio + " " + name + ".Interface.Ifname",
        {[](sd_bus_message* reply) { sd_bus_message_append(reply, "v", "s", "wlan0"); }, {}}},
       {radio + " " + device + ".P2PDeviceConfig",
        {[](sd_bus_message* reply) {
           sd_bus_message_append(reply, "v", "a{sv}", 1, "DeviceName", "s", "box");
         },
         {}}}}};
  std::atomic<bool> is_on = true;
  Service network_manager{
      manager,
      {{manager_path + " " + manager + ".GetDeviceByIpIface",
        {[](sd_bus_message* reply) { sd_bus_message_append(reply, "o", managed_device.c_str()); },
         {}}},
       {managed_device + " " + manager + ".Device.Managed",
        {[&is_on](sd_bus_message* reply) { sd_bus_message_append(reply, "v", "b", int{is_on}); },
         {}}}}};
  auto bus = Bus::open();
  REQUIRE(bus.has_value());
  {
    const auto keeper = GroupKeeper::start("wlan0");
    REQUIRE(keeper.has_value());
    is_on = false;
    REQUIRE(set_managed(bus.value(), "wlan0", false).has_value());
  }
  CHECK(network_manager.set ==
        std::map<std::string, bool>{{managed_device + " " + manager + ".Device.Managed", true}});
}
