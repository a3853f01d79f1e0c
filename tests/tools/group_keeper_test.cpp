// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Goal:   the process that ends a group gives NetworkManager the radio back, whenever its parent
//         took that; the end of a group is noticed also where the bus has gone.
// Method: a real dbus-daemon; services on it stand in for NetworkManager and wpa_supplicant.
// Bounds: none but equality.
#include "tools/onehop/p2p/group_keeper.hpp"

#include <catch2/catch.hpp>

#include "control/p2p/network_manager.hpp"
#include "tests/control/p2p/services.hpp"
#include "tools/onehop/p2p/group_door.hpp"

using namespace onehop;
using namespace onehop::p2p;

TEST_CASE("the keeper gives NetworkManager the radio back, though it was taken at once",
          "[tools][p2p]") {
  const BusWorld world;
  const Service supplicant{name, healthy()};
  std::atomic<bool> is_on = true;
  Service network_manager{manager, managing(is_on)};
  auto bus = Bus::open();
  REQUIRE(bus.has_value());
  {
    const auto keeper = GroupKeeper::start("wlan0");
    REQUIRE(keeper.has_value());
    is_on = false;
    REQUIRE(set_managed(bus.value(), "wlan0", false).has_value());
  }
  CHECK(network_manager.set == std::map<std::string, bool>{{managed, true}});
}

TEST_CASE("the keeper gives back its own radio, and leaves another with its group",
          "[tools][p2p]") {
  const BusWorld world;
  const std::string second = root + "/Interfaces/7";
  auto replies = healthy();
  replies[root + " " + name + ".Interfaces"] = {
      [&](sd_bus_message* reply) {
        sd_bus_message_append(reply, "v", "ao", 2, radio.c_str(), second.c_str());
      },
      {}};
  replies[second + " " + name + ".Interface.Ifname"] = variant("s", "wlan1");
  replies[second + " " + name + ".Interface.RemoveNetwork"] = {};
  add_mark(replies, second, "\"onehop managed group\"");
  Service supplicant{name, replies};
  std::atomic<bool> is_on = true;
  Service network_manager{manager, managing(is_on)};
  {
    const auto keeper = GroupKeeper::start("wlan0");
    REQUIRE(keeper.has_value());
    is_on = false;
  }
  CHECK(network_manager.set == std::map<std::string, bool>{{managed, true}});
  CHECK(supplicant.calls[second + " " + name + ".Interface.RemoveNetwork"] == 0);
}

TEST_CASE("the keeper withdraws that onehop waits, of one that was killed without a group",
          "[tools][p2p]") {
  const BusWorld world;
  Marks marks{{Marks::accepting}};
  auto replies = marks.replies();
  for (const char* method : {".Cancel", ".StopFind", ".Disconnect"})
    replies[radio + " " + device + method] = {};
  Service supplicant{name, replies};
  supplicant.on_write = marks.writer();
  const bool has_group = GENERATE(false, true);
  {
    auto keeper = GroupKeeper::start("wlan0");
    REQUIRE(keeper.has_value());
    if (has_group) keeper.value().keep(radio);
  }
  CHECK(marks.all.empty() != has_group);
}

TEST_CASE("the end of a group is noticed, though the bus was lost before", "[tools][p2p]") {
  std::atomic<int> texts = 0;
  std::atomic<bool> is_gone = false;
  const auto door = GroupDoor::open(without_bus(), {.interface_name = "no-such-if"},
                                    {.on_text = [&](const std::string&) { ++texts; },
                                     .on_gone = [&] { is_gone = true; },
                                     .gone_limit = 2s});
  REQUIRE(door.has_value());
  for (int i = 0; i < 1000 && !is_gone; ++i) std::this_thread::sleep_for(10ms);
  CHECK(is_gone);
  CHECK(texts == 1);  // and it is said once
}
