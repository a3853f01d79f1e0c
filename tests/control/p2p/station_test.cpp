// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Goal:   the radio that NetworkManager lets us have goes back to it, also where that is
// interrupted. Method: a real dbus-daemon, with services that answer as wpa_supplicant and
// NetworkManager do.
//         What the real ones do is played in tests/vm/network_manager.
// Bounds: none but equality.
#include "control/p2p/station.hpp"

#include <catch2/catch.hpp>
#include <sys/eventfd.h>

#include "tests/control/p2p/services.hpp"

using namespace onehop;
using namespace onehop::p2p;

TEST_CASE("an interrupt while NetworkManager lets go gives it the radio back", "[control][p2p]") {
  const BusWorld world;
  const Fd stop{::eventfd(1, EFD_CLOEXEC)};
  auto replies = healthy();
  replies[radio + " " + name + ".Interface.AddNetwork"] = {
      [](sd_bus_message* reply) { sd_bus_message_append(reply, "o", "/networks/1"); }, {}};
  Service service{name, replies};  // whose interface is still there
  std::atomic<bool> is_on = true;
  Service network_manager{manager, managing(is_on)};
  auto supplicant = Supplicant::open({});
  REQUIRE(supplicant.has_value());
  const auto taken = take_radio(supplicant.value(), stop.get(), [](const std::string&) {});
  REQUIRE(taken.has_error());
  CHECK(taken.error().code == ExitCode::interrupted);
  CHECK(service.calls[radio + " " + name + ".Interface.AddNetwork"] == 0);
  CHECK(network_manager.calls[managed] == 3);  // read, taken and given back
  CHECK(network_manager.set == std::map<std::string, bool>{{managed, true}});
}
