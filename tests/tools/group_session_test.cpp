// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Goal:   a sender comes to a group whose receiver it can reach, also where the first group ends at
//         once, nobody may ask, or others answer as well; an interrupt is never swallowed.
// Method: a real dbus-daemon, a service on it that forms groups as a wpa_supplicant does, and a
//         veth pair in a network namespace as the group's link. Needs root.
// Bounds: exact; forming is given 60 s.
#include "tools/onehop/p2p/group_session.hpp"

#include <csignal>

#include "tests/control/p2p/services.hpp"
#include "tests/support/bare_test.hpp"
#include "tests/support/net_namespace.hpp"

using namespace onehop;
using namespace onehop::p2p;
using onehop::test::NetNamespace;

namespace {

constexpr const char* link_name = "p2p-wlan0-1";

/// SupplicantService has one peer, "box", and forms the groups of `names` with it, in their order.
class SupplicantService {
 public:
  explicit SupplicantService(std::vector<std::string> names)
      : names_{std::move(names)}, service_{name, replies()} {}

  /// SIGINT comes with the second look at a group, which is the last thing that form() asks for.
  bool is_interrupting = false;
  [[nodiscard]] int count(std::size_t group, const char* method) {
    return service_.calls[path_of(group) + " " + device + method];
  }

 private:
  static std::string path_of(std::size_t group) {
    return root + "/Interfaces/" + std::to_string(group + 1);
  }
  std::map<std::string, Service::Reply> replies() {
    auto all = healthy();
    all[root + " " + name + ".Interfaces"] = {[this](sd_bus_message* reply) { list(reply); }, {}};
    all[radio + " " + device + ".Find"] = {[this](sd_bus_message*) { service_.emit = show_box; },
                                           {}};
    all[radio + " " + device + ".Connect"] = {[this](sd_bus_message*) { start(); }, {}};
    for (const char* method : {".Cancel", ".StopFind"}) all[radio + " " + device + method] = {};
    for (std::size_t i = 0; i < names_.size(); ++i) {
      const std::string path = path_of(i), object = path + "/Groups/1";
      all[path + " " + name + ".Interface.Ifname"] = variant("s", names_[i]);
      all[path + " " + device + ".Role"] = variant("s", "client");
      all[path + " " + device + ".Group"] = variant("o", object);
      all[path + " " + device + ".Disconnect"] = {};
      all[object + " " + name + ".Group.BSSID"] = {
          [this](sd_bus_message* reply) { answer_bssid(reply); }, {}};
    }
    return all;
  }
  void list(sd_bus_message* reply) const {
    sd_bus_message_open_container(reply, 'v', "ao");
    sd_bus_message_open_container(reply, 'a', "o");
    sd_bus_message_append(reply, "o", radio.c_str());
    for (std::size_t i = 0; i < started_; ++i)
      sd_bus_message_append(reply, "o", path_of(i).c_str());
    sd_bus_message_close_container(reply);
    sd_bus_message_close_container(reply);
  }
  void answer_bssid(sd_bus_message* reply) {
    if (++looks_ == 2 && is_interrupting) ::kill(::getpid(), SIGINT);
    sd_bus_message_append(reply, "v", "ay", 6, 2, 0, 0, 0, 1, 0);
  }
  static void show_box(sd_bus* bus) {
    sd_bus_emit_signal(bus, radio.c_str(), device.c_str(), "DeviceFoundProperties", "oa{sv}",
                       (radio + "/Peers/1").c_str(), 1, "DeviceName", "s", "box");
  }
  void start() {
    const std::string path = path_of(started_++);
    service_.emit = [path](sd_bus* bus) {
      sd_bus_emit_signal(bus, radio.c_str(), device.c_str(), "GroupStarted", "a{sv}", 3,
                         "interface_object", "o", path.c_str(), "role", "s", "client",
                         "group_object", "o", (path + "/Groups/1").c_str());
    };
  }

  const std::vector<std::string> names_;
  std::atomic<std::size_t> started_ = 0;
  int looks_ = 0;
  Service service_;
};

Result<GroupSession> form(NetNamespace& world) {
  const tool::Reporter reporter{{}, "send"};
  return world.inside([&] {
    return GroupSession::form({.is_sending = true, .interface = "wlan0", .peer = "box"}, reporter);
  });
}

void a_group_that_ends_at_once_is_formed_again(NetNamespace& world) {
  const BusWorld bus;
  SupplicantService supplicant{{"p2p-wlan0-0", link_name}};  // the first has no interface
  {
    const auto session = form(world);
    EXPECT(session.has_value());
    if (session.has_error()) return;
    EXPECT(session.value().interface() == link_name);
    // By its address on the air: nobody answers for it here.
    EXPECT(session.value().peer_address() == "[fe80::ff:fe00:100%p2p-wlan0-1]");
  }
  EXPECT(supplicant.count(0, ".Disconnect") >= 1);
  EXPECT(supplicant.count(1, ".Disconnect") == 1);  // by the keeper
}

void an_interrupt_in_the_last_moment_ends_it(NetNamespace& world) {
  world.run("sysctl -qw net.ipv6.conf.far.disable_ipv6=0");  // it answers
  const BusWorld bus;
  SupplicantService supplicant{{link_name}};
  supplicant.is_interrupting = true;
  const auto session = form(world);
  EXPECT(session.has_error() && session.error().code == ExitCode::interrupted);
  EXPECT(supplicant.count(0, ".Disconnect") >= 1);
}

void the_receiver_is_the_owner_where_it_is_known() {
  const std::string owner = "fe80::1", other = "fe80::2";
  using Members = Result<std::vector<std::string>>;
  const auto refused = [](ExitCode code) { return Members{Error{code, "ask", "refused"}}; };
  EXPECT(receiver_of(Members{std::vector{other}}, "").value() == other);
  EXPECT(receiver_of(Members{std::vector{other, owner}}, owner).value() == owner);
  EXPECT(receiver_of(Members{std::vector{other, owner}}, "").error().code == ExitCode::usage);
  for (const ExitCode code : {ExitCode::privilege_missing, ExitCode::timed_out}) {
    EXPECT(receiver_of(refused(code), owner).value() == owner);
    EXPECT(receiver_of(refused(code), "").error().code == code);
  }
  EXPECT(receiver_of(refused(ExitCode::interrupted), owner).has_error());
}

}  // namespace

int main() {
  // The services' threads inherit it: an interrupt is for who looks at it.
  sigset_t interrupt;
  ::sigemptyset(&interrupt);
  ::sigaddset(&interrupt, SIGINT);
  ::pthread_sigmask(SIG_BLOCK, &interrupt, nullptr);
  the_receiver_is_the_owner_where_it_is_known();
  if (::geteuid() != 0) test::skip("network namespaces need root");
  NetNamespace world;
  world.run(
      "ip link add p2p-wlan0-1 type veth peer name far && ip link set p2p-wlan0-1 up && "
      "ip link set far up");
  world.run("sysctl -qw net.ipv6.conf.far.disable_ipv6=1");
  a_group_that_ends_at_once_is_formed_again(world);
  an_interrupt_in_the_last_moment_ends_it(world);
  if (test::failures == 0) std::printf("all as expected\n");
  return test::failures > 0;
}
