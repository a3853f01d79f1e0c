// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Goal:   the radio that NetworkManager lets us have goes back to it, also where that is
//         interrupted; a join follows another one, and takes nothing from another radio.
// Method: a real dbus-daemon, with services that answer as wpa_supplicant and NetworkManager do.
//         What the real ones do is played in tests/vm/network_manager.
// Bounds: none but equality.
#include "control/p2p/station.hpp"

#include <catch2/catch.hpp>
#include <sys/eventfd.h>

#include "tests/control/p2p/services.hpp"

using namespace onehop;
using namespace onehop::p2p;

namespace {

Service::Answer answering(const char* type, const std::string& text) {
  return [=](sd_bus_message* reply) { sd_bus_message_append(reply, type, text.c_str()); };
}

/// A radio of wpa_supplicant that joins whatever network it is given.
void add_station(std::map<std::string, Service::Reply>& replies, const std::string& path,
                 const std::string& ifname) {
  const std::string interface = path + " " + name + ".Interface", network = path + "/Networks/1";
  replies[interface + ".Ifname"] = variant("s", ifname);
  replies[interface + ".AddNetwork"] = {answering("o", network), {}};
  replies[interface + ".RemoveNetwork"] = replies[interface + ".Reassociate"] = {};
  replies[interface + ".State"] = variant("s", "completed");
  replies[interface + ".CurrentNetwork"] = variant("o", network);
  replies[network + " " + name + ".Network.Enabled"] = {};
}

Result<Group> join(const std::string& interface) {
  return join_network(interface, {"DIRECT-xy", "passphrase"}, 5s, -1, [](const std::string&) {});
}

}  // namespace

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

TEST_CASE("a second join follows a first that had to hand the interface to wpa_supplicant",
          "[control][p2p]") {
  const BusWorld world;
  const std::string again = root + "/Interfaces/7";
  std::atomic<bool> is_first_there = true, is_again_there = false;
  std::map<std::string, Service::Reply> replies;
  replies[root + " " + name + ".Interfaces"] = {
      [&](sd_bus_message* reply) {
        if (is_first_there || is_again_there)
          sd_bus_message_append(reply, "v", "ao", 1, (is_first_there ? radio : again).c_str());
        else
          sd_bus_message_append(reply, "v", "ao", 0);
      },
      {}};
  replies[root + " " + name + ".RemoveInterface"] = {
      [&](sd_bus_message*) { is_first_there = false; }, {}};
  replies[root + " " + name + ".CreateInterface"] = {[&](sd_bus_message* reply) {
                                                       is_again_there = true;
                                                       answering("o", again)(reply);
                                                     },
                                                     {}};
  add_station(replies, radio, "wlan0");
  add_mark(replies, radio, "\"onehop interface\"");
  replies.erase(radio + " " + name + ".Interface.AddNetwork");  // it is gone by then
  add_station(replies, again, "wlan0");
  const Service service{name, replies};
  const auto joined = join("wlan0");
  REQUIRE(joined.has_value());
  CHECK(joined.value().path == again + "/Networks/1");
}

TEST_CASE("a join leaves another radio with its group, and `leave` takes all", "[control][p2p]") {
  const BusWorld world;
  const std::string second = root + "/Interfaces/7";
  std::map<std::string, Service::Reply> replies;
  replies[root + " " + name + ".Interfaces"] = {
      [&](sd_bus_message* reply) {
        sd_bus_message_append(reply, "v", "ao", 2, radio.c_str(), second.c_str());
      },
      {}};
  add_station(replies, radio, "wlan0");
  add_mark(replies, radio, "\"onehop managed group\"");
  add_station(replies, second, "wlan1");
  const bool is_refused = GENERATE(false, true);
  if (is_refused) replies.erase(second + " " + name + ".Interface.AddNetwork");
  Service service{name, replies};
  std::atomic<bool> is_on = false;
  Service network_manager{manager, managing(is_on)};
  CHECK(join("wlan1").has_value() != is_refused);
  CHECK(service.calls[radio + " " + name + ".Interface.RemoveNetwork"] == 0);
  CHECK(network_manager.set.empty());
  auto supplicant = Supplicant::open({.needs_p2p = false});
  REQUIRE(supplicant.has_value());
  const auto left = leave_networks(supplicant.value(), "");
  REQUIRE(left.has_value());
  CHECK(left.value().radios == std::vector<std::string>{"wlan0"});
  CHECK(network_manager.set == std::map<std::string, bool>{{managed, true}});
}
