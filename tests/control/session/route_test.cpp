// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Goal:   a way that leads around the peer's own subnet is found, and one that does not is none.
// Method: a network namespace of this process alone, with two interfaces and policy rules. Needs
//         root and ip(8), else exits 77.
#include "control/session/channel/route.hpp"

#include <sys/socket.h>

#include <catch2/catch.hpp>

#include <cstdlib>

#include "engine/base/fd.hpp"
#include "tests/support/net_namespace.hpp"

using namespace onehop;
using namespace onehop::session;

namespace {

void ip(const char* arguments) {
  REQUIRE(std::system((std::string{"ip "} + arguments).c_str()) == 0);
}

void enter_namespace() {
  test::enter_own_namespace(
      "ip link add name lan0 type veth peer name lan1 && "
      "ip link add name wg0 type veth peer name wg1 && "
      "ip addr add 10.5.0.1/24 dev lan0 && ip addr add 10.99.0.2/16 dev wg0 && "
      "ip -6 addr add fd05::1/64 dev lan0 nodad && ip link set lo up && ip link set lan0 up && "
      "ip link set lan1 up && ip link set wg0 up && ip link set wg1 up");
}

RouteInfo route_to(const char* peer, const char* interface = "") {
  const auto route = find_route(*IpAddress::parse(peer), interface);
  REQUIRE(route);
  return route.value();
}

}  // namespace

TEST_CASE("the route that policy rules make is named with its table, and so is the near way",
          "[control][session]") {
  enter_namespace();
  CHECK(route_text(route_to("10.5.0.2")) == "over lan0 (table main)");
  for (const char* peer : {"10.5.0.2", "10.5.0.1", "fd05::2", "10.99.0.9"})
    CHECK_FALSE(detour_warning(*IpAddress::parse(peer), route_to(peer)));

  ip("route add default dev wg0 table 51820");
  ip("-6 route add default dev wg0 table 51820");
  ip("rule add not fwmark 51820 table 51820 priority 100");
  ip("-6 rule add not fwmark 51820 table 51820 priority 100");
  const RouteInfo taken = route_to("10.5.0.2");
  CHECK(route_text(taken) == "over wg0 (table 51820)");
  const auto near = find_nearer(*IpAddress::parse("10.5.0.2"), taken);
  REQUIRE(near);
  CHECK(near->interface == "lan0");
  CHECK(near->subnet == "10.5.0.0/24");
  const auto warning = detour_warning(*IpAddress::parse("fd05::2"), route_to("fd05::2"));
  REQUIRE(warning);
  CHECK(warning->find("fd05::/64") != std::string::npos);
  CHECK(warning->find("--iface lan0") != std::string::npos);
  // Of another network, and of the tunnel's own.
  CHECK_FALSE(find_nearer(*IpAddress::parse("192.0.2.1"), route_to("192.0.2.1")));
  CHECK_FALSE(find_nearer(*IpAddress::parse("10.99.0.9"), route_to("10.99.0.9")));
  // An interface that is named is the one.
  CHECK(route_to("10.5.0.2", "lan0").link.name == "lan0");
  ip("route add 10.5.0.7/32 via 10.99.0.1 table 51820");
  CHECK(route_text(route_to("10.5.0.7")) == "over wg0 through the gateway 10.99.0.1 (table 51820)");
}

TEST_CASE("a socket is bound to an interface without privilege, and to none that is not there",
          "[control][session]") {
  enter_namespace();
  const Fd socket{::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
  const auto missing = bind_to_device(socket.get(), "nosuch0");
  REQUIRE_FALSE(missing);
  CHECK(missing.error().code == ExitCode::io_unavailable);
  CHECK(missing.error().attempt.find("nosuch0") != std::string::npos);
  REQUIRE(::seteuid(65534) == 0);
  const auto bound = bind_to_device(socket.get(), "lan0");
  REQUIRE(::seteuid(0) == 0);
  CHECK(bound);
}
