// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Goal:   whatever is missing or refuses between onehop and the radio is told in one line with its
//         cause and remedy, and with the right exit code; signals become events.
// Method: a real dbus-daemon with real policies, and a service that gives the answers of a
//         wpa_supplicant that cannot.
// Bounds: none but equality.
#include "control/p2p/supplicant.hpp"

#include <catch2/catch.hpp>

#include <cerrno>

#include "control/p2p/form_group.hpp"
#include "control/p2p/network_manager.hpp"
#include "engine/base/time.hpp"
#include "tests/control/p2p/services.hpp"

using namespace onehop;
using namespace onehop::p2p;

namespace {

bool has(const Error& error, const char* words) {
  return error.message().find(words) != std::string::npos;
}

}  // namespace

TEST_CASE("without a system bus there is no Wi-Fi Direct, and it is said", "[control][p2p]") {
  ::setenv("DBUS_SYSTEM_BUS_ADDRESS", "unix:path=/nowhere", 1);
  const auto opened = Supplicant::open({});
  ::unsetenv("DBUS_SYSTEM_BUS_ADDRESS");
  REQUIRE(opened.has_error());
  CHECK(opened.error().code == ExitCode::io_unavailable);
  CHECK(has(opened.error(), "system bus"));
}

TEST_CASE("without wpa_supplicant on the bus it says how to start it", "[control][p2p]") {
  const BusWorld world;
  const auto opened = Supplicant::open({});
  REQUIRE(opened.has_error());
  CHECK(opened.error().code == ExitCode::io_unavailable);
  CHECK(has(opened.error(), "wpa_supplicant -u"));
}

TEST_CASE("where iwd has the radios it says so", "[control][p2p]") {
  const BusWorld world;
  const Service iwd{"net.connman.iwd", {}};
  const auto opened = Supplicant::open({});
  REQUIRE(opened.has_error());
  CHECK(has(opened.error(), "iwd has the radios"));
}

TEST_CASE("where iwd has the radios of a wpa_supplicant that the bus has started it says so",
          "[control][p2p]") {
  const BusWorld world;
  const Service iwd{"net.connman.iwd", {}};
  const Service supplicant{
      name,
      {{root + " " + name + ".Interfaces",
        {[](sd_bus_message* reply) { sd_bus_message_append(reply, "v", "ao", 0); }, {}}}}};
  const auto opened = Supplicant::open({});
  REQUIRE(opened.has_error());
  CHECK(has(opened.error(), "wpa_supplicant has no interface, and iwd has the radios"));
  CHECK(has(opened.error(), "systemctl stop iwd"));
}

TEST_CASE("a policy that refuses is named, with the group that it lets in", "[control][p2p]") {
  const BusWorld world{"<deny send_destination=\"fi.w1.wpa_supplicant1\"/>"};
  const Service supplicant{name, healthy()};
  const auto opened = Supplicant::open({});
  REQUIRE(opened.has_error());
  CHECK(opened.error().code == ExitCode::privilege_missing);
  CHECK(has(opened.error(), "org.onehop.p2p.conf"));
  CHECK(has(opened.error(), "netdev"));
}

TEST_CASE("a radio without Wi-Fi Direct is told of, with the way that is left", "[control][p2p]") {
  const BusWorld world;
  auto replies = healthy();
  replies[radio + " " + device + ".P2PDeviceConfig"] = {nullptr,
                                                        "org.freedesktop.DBus.Error.Failed"};
  const Service supplicant{name, replies};
  const auto opened = Supplicant::open({});
  REQUIRE(opened.has_error());
  CHECK(opened.error().code == ExitCode::io_unavailable);
  CHECK(has(opened.error(), "p2p join --ssid"));
  CHECK(Supplicant::open({.needs_p2p = false}).has_value());
}

TEST_CASE("a radio of another name is told of, with those that there are", "[control][p2p]") {
  const BusWorld world;
  const Service supplicant{name, healthy()};
  const auto opened = Supplicant::open({.interface = "wlan7"});
  REQUIRE(opened.has_error());
  CHECK(has(opened.error(), "only wlan0"));
}

TEST_CASE("a channel that will not do is told from other refusals", "[control][p2p]") {
  const BusWorld world;
  auto replies = healthy();
  replies[radio + " " + device + ".Connect"] = {nullptr, name + ".ConnectChannelUnsupported"};
  replies[radio + " " + device + ".GroupAdd"] = {nullptr, name + ".InvalidArgs"};
  const Service service{name, replies};
  auto supplicant = Supplicant::open({});
  REQUIRE(supplicant.has_value());
  CHECK(supplicant.value().interface() == "wlan0");
  CHECK_FALSE(supplicant.value().is_wide_possible());
  CHECK_FALSE(supplicant.value().narrow_reason().empty());
  const auto connected = supplicant.value().connect({.peer_path = radio + "/Peers/1"});
  REQUIRE(connected.has_error());
  CHECK(connected.error().errno_value == ECHRNG);
  CHECK(supplicant.value().add_group({.frequency = 5}).error().errno_value == ECHRNG);
  CHECK(supplicant.value().add_group({}).error().errno_value == EIO);
}

TEST_CASE("a search on one channel that is refused is made on all", "[control][p2p]") {
  const BusWorld world;
  auto replies = healthy();
  replies[radio + " " + device + ".Find"] = {nullptr, name + ".InvalidArgs"};
  Service service{name, replies};
  auto supplicant = Supplicant::open({});
  REQUIRE(supplicant.has_value());
  const auto calls = [&] { return service.calls[radio + " " + device + ".Find"]; };
  CHECK(supplicant.value().find({.span = 5s}).has_error());
  CHECK(calls() == 1);
  CHECK(supplicant.value().find({.span = 5s, .is_social = false, .frequency = 5180}).has_error());
  CHECK(calls() == 3);
}

TEST_CASE("that onehop waits is told and withdrawn, and what others tell stays", "[control][p2p]") {
  const BusWorld world;
  const std::string other = "\x01\x02\x03other";
  Marks marks{{other}};
  Service service{name, marks.replies()};
  service.on_write = marks.writer();
  auto supplicant = Supplicant::open({});
  REQUIRE(supplicant.has_value());
  for (const bool is_accepting : {true, true, false, false}) {
    REQUIRE(supplicant.value().announce(is_accepting).has_value());
    CHECK(marks.all == (is_accepting ? std::vector{other, Marks::accepting} : std::vector{other}));
  }
}

TEST_CASE("a signal becomes an event", "[control][p2p]") {
  const BusWorld world;
  auto replies = healthy();
  replies[radio + " " + device + ".Find"] = {};
  Service service{name, replies};
  auto supplicant = Supplicant::open({});
  REQUIRE(supplicant.has_value());
  service.emit = [](sd_bus* bus) {
    sd_bus_emit_signal(bus, radio.c_str(), device.c_str(), "DeviceFoundProperties", "oa{sv}",
                       (radio + "/Peers/1").c_str(), 5, "DeviceName", "s", "desk", "level", "i",
                       -37, "groupcapability", "y", 1, "DeviceAddress", "ay", 6, 2, 0, 0, 0, 0xab,
                       0, "VendorExtension", "aay", 2, 1, 7, 9, 0, 0x7e, 0xd9, 'o', 'n', 'e', 'h',
                       'o', 'p');
  };
  REQUIRE(supplicant.value().find({.span = 5s}).has_value());
  std::vector<PeerFound> found;
  for (int i = 0; i < 500 && found.empty(); ++i) {
    REQUIRE(supplicant.value()
                .process([&](const Event& event) {
                  if (const auto* peer = std::get_if<PeerFound>(&event)) found.push_back(*peer);
                })
                .has_value());
    std::this_thread::sleep_for(10ms);
  }
  REQUIRE(found.size() == 1);
  CHECK(found[0].peer.path == radio + "/Peers/1");
  CHECK(found[0].peer.name == "desk");
  CHECK(found[0].peer.address == "02:00:00:00:ab:00");
  CHECK(found[0].peer.signal_dbm == -37);
  CHECK(found[0].peer.is_group_owner);
  CHECK(found[0].peer.is_accepting);
}

/// A group on an interface of its own, p2p-wlan0-0, and the signal that it has started.
struct GroupWorld {
  std::string path = root + "/Interfaces/1", object = path + "/Groups/1";
  std::map<std::string, Service::Reply> replies = healthy();

  GroupWorld() {
    replies[path + " " + name + ".Interface.Ifname"] = variant("s", "p2p-wlan0-0");
    replies[path + " " + device + ".Role"] = variant("s", "device");
    replies[path + " " + device + ".Group"] = variant("o", object.c_str());
    replies[radio + " " + device + ".Find"] = {};
  }
  void emit_started(sd_bus* bus, const char* role) const {
    sd_bus_emit_signal(bus, radio.c_str(), device.c_str(), "GroupStarted", "a{sv}", 3,
                       "interface_object", "o", path.c_str(), "role", "s", role, "group_object",
                       "o", object.c_str());
  }
};

/// events_of emits signals behind a call, and returns what comes of them.
std::vector<Event> events_of(Service& service, std::function<void(sd_bus*)> emit) {
  auto supplicant = Supplicant::open({});
  REQUIRE(supplicant.has_value());
  service.emit = std::move(emit);
  REQUIRE(supplicant.value().find({.span = 5s}).has_value());
  std::vector<Event> events;
  for (int i = 0; i < 500 && events.empty(); ++i) {
    REQUIRE(supplicant.value()
                .process([&](const Event& event) { events.push_back(event); })
                .has_value());
    std::this_thread::sleep_for(10ms);
  }
  return events;
}

TEST_CASE("a group is what its signal says, though its client has lost the connection meanwhile",
          "[control][p2p]") {
  const BusWorld world;
  GroupWorld group;
  SECTION("it has lost it") {
    Service service{name, group.replies};
    const auto events = events_of(service, [&](sd_bus* bus) { group.emit_started(bus, "client"); });
    REQUIRE(events.size() == 1);
    const auto* started = std::get_if<GroupStarted>(&events[0]);
    REQUIRE(started != nullptr);
    CHECK(started->group.role == Role::client);
    CHECK(started->group.path == group.path);
    CHECK(started->group.object == group.object);
    CHECK(started->group.interface_name == "p2p-wlan0-0");
    CHECK(started->group.bssid.empty());
  }
  SECTION("it is gone") {
    group.replies.erase(group.path + " " + name + ".Interface.Ifname");
    Service service{name, group.replies};
    const auto events = events_of(service, [&](sd_bus* bus) { group.emit_started(bus, "client"); });
    REQUIRE(events.size() == 1);
    CHECK(std::holds_alternative<AttemptFailed>(events[0]));
  }
}

TEST_CASE("who joins a group, and what the two agreed on, become events", "[control][p2p]") {
  const BusWorld world;
  GroupWorld group;
  Service service{name, group.replies};
  SECTION("joined") {
    const auto events = events_of(service, [&](sd_bus* bus) {
      sd_bus_emit_signal(bus, group.object.c_str(), (name + ".Group").c_str(), "PeerJoined", "o",
                         (radio + "/Peers/1").c_str());
    });
    REQUIRE(events.size() == 1);
    REQUIRE(std::holds_alternative<PeerJoined>(events[0]));
    CHECK(std::get<PeerJoined>(events[0]).group_object == group.object);
  }
  SECTION("agreed") {
    const auto events = events_of(service, [&](sd_bus* bus) {
      sd_bus_emit_signal(bus, radio.c_str(), device.c_str(), "GONegotiationSuccess", "a{sv}", 2,
                         "status", "i", 0, "frequency", "i", 5180);
    });
    REQUIRE(events.size() == 1);
    REQUIRE(std::holds_alternative<Negotiated>(events[0]));
    CHECK(std::get<Negotiated>(events[0]).frequency == 5180);
  }
}

TEST_CASE("a group's interface is no radio, also while its client is not connected",
          "[control][p2p]") {
  const BusWorld world;
  GroupWorld group;
  group.replies[root + " " + name + ".Interfaces"] = {
      [&](sd_bus_message* reply) {
        sd_bus_message_append(reply, "v", "ao", 2, group.path.c_str(), radio.c_str());
      },
      {}};
  Service service{name, group.replies};
  auto supplicant = Supplicant::open({});
  REQUIRE(supplicant.has_value());
  CHECK(supplicant.value().interface() == "wlan0");
  REQUIRE(supplicant.value().groups().has_value());
  CHECK(supplicant.value().groups().value().size() == 1);  // so that `leave` leaves it
}

TEST_CASE("a bus that goes away is an error and no endless loop", "[control][p2p]") {
  Supplicant supplicant = without_bus();
  for (int i = 0; i < 2; ++i) {
    const auto lost = supplicant.process([](const Event&) {});
    REQUIRE(lost.has_error());
    CHECK(lost.error().code == ExitCode::io_unavailable);
    CHECK(lost.error().cause == "the connection to the system bus was lost");
  }
}

TEST_CASE("NetworkManager is asked for a device and gets it back", "[control][p2p]") {
  const BusWorld world;
  std::atomic<bool> is_on = true;
  Service service{manager, managing(is_on)};
  auto bus = Bus::open();
  REQUIRE(bus.has_value());
  CHECK(is_managed(bus.value(), "wlan0"));
  is_on = false;
  CHECK_FALSE(is_managed(bus.value(), "wlan0"));
  for (const bool wanted : {false, true}) {
    CHECK(set_managed(bus.value(), "wlan0", wanted).has_value());
    CHECK(service.set == std::map<std::string, bool>{{managed, wanted}});
  }
}

TEST_CASE("a service that does not answer is an error within the limit", "[control][p2p]") {
  const BusWorld world;
  sd_bus* silent = nullptr;
  REQUIRE(sd_bus_open_system(&silent) >= 0);
  REQUIRE(sd_bus_request_name(silent, name.c_str(), 0) >= 0);
  auto bus = Bus::open(100ms);
  REQUIRE(bus.has_value());
  const Bus::Target target{name, root, name};
  const Instant from = monotonic_now();
  CHECK(bus.value().get<Dict>(target, "Interfaces", "ask").error().code == ExitCode::timed_out);
  CHECK(bus.value().call(target, "Find", {}, "ask").error().code == ExitCode::timed_out);
  CHECK(monotonic_now() - from < 10s);  // sd-bus's own limit is 25 s
  sd_bus_flush_close_unref(silent);
}

TEST_CASE(
    "groups that come beside the one that is formed, or in spite of a failure, are removed, "
    "and none that was there before",
    "[control][p2p]") {
  const BusWorld world;
  const std::string old = root + "/Interfaces/1", late = root + "/Interfaces/2",
                    own = root + "/Interfaces/3", group = root + "/Groups/1";
  const bool is_formed = GENERATE(false, true);
  std::atomic<bool> is_late = false;
  auto replies = healthy();
  replies[root + " " + name + ".Interfaces"] = {
      [&](sd_bus_message* reply) {
        if (is_late)
          sd_bus_message_append(reply, "v", "ao", 4, radio.c_str(), old.c_str(), late.c_str(),
                                own.c_str());
        else
          sd_bus_message_append(reply, "v", "ao", 2, radio.c_str(), old.c_str());
      },
      {}};
  for (const std::string& path : {old, late, own}) {
    replies[path + " " + name + ".Interface.Ifname"] = variant("s", "p2p-wlan0-0");
    replies[path + " " + device + ".Role"] = variant("s", path == own ? "GO" : "device");
    replies[path + " " + device + ".Group"] = variant("o", group.c_str());
    replies[path + " " + device + ".Disconnect"] = {};
  }
  replies[radio + " " + device + ".GroupAdd"] = {[&](sd_bus_message*) { is_late = true; }, {}};
  for (const char* method : {".Cancel", ".StopFind"}) replies[radio + " " + device + method] = {};
  std::function<void(sd_bus*)>* emit_now = nullptr;  // Service::emit
  if (is_formed)
    replies[radio + " " + device + ".GroupAdd"] = {
        [&](sd_bus_message*) {
          is_late = true;
          *emit_now = [&](sd_bus* bus) {
            sd_bus_emit_signal(bus, radio.c_str(), device.c_str(), "GroupStarted", "a{sv}", 3,
                               "interface_object", "o", own.c_str(), "role", "s", "GO",
                               "group_object", "o", group.c_str());
          };
        },
        {}};
  Service service{name, replies};
  emit_now = &service.emit;
  auto supplicant = Supplicant::open({});
  REQUIRE(supplicant.has_value());
  // Where GroupStarted never comes, it gives up.
  const Nanos limit = is_formed ? Nanos{10s} : Nanos{100ms};
  const Progress silent{[](const Peer&) {}, [](const std::string&) {}, [](const std::string&) {}};
  const auto formed =
      form_group(supplicant.value(), {.task = Plan::Task::host, .limit = limit}, silent, -1);
  REQUIRE(formed.has_value() == is_formed);
  CHECK(service.calls[own + " " + device + ".Disconnect"] == (is_formed ? 0 : 1));
  CHECK(service.calls[late + " " + device + ".Disconnect"] == 1);
  CHECK(service.calls[old + " " + device + ".Disconnect"] == 0);
}
