// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Goal:   route, neighbour, MTU and link state become a PathUpdate, and each change of them becomes
//         a new one.
// Method: a network namespace of this process alone, which ends with it. Needs root and ip(8), else
//         exits 77.
#include <netinet/if_ether.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include <array>
#include <cstdlib>

#include "control/session/channel/path_follower.hpp"
#include "engine/base/fd.hpp"
#include "engine/base/time.hpp"
#include "engine/wire/l2_l4.hpp"
#include "tests/support/net_namespace.hpp"

using namespace onehop;
using namespace onehop::session;

namespace {

PathOptions options_for(const char* local, const char* peer) {
  return {.local = {*IpAddress::parse(local), 7411}, .peer = {*IpAddress::parse(peer), 7412}};
}

// A namespace with a veth pair, of which `left0` is ours.
void enter_namespace() {
  test::enter_own_namespace(
      "ip link set lo up && ip link add left0 type veth peer name right0 && "
      "ip addr add 10.77.0.1/24 dev left0 && ip link set left0 address 02:00:00:00:00:01 && "
      "ip -6 addr add fd77::1/64 dev left0 nodad && ip link set left0 up && "
      "ip link set right0 up && "
      "ip neigh replace 10.77.0.2 lladdr 02:00:00:00:00:02 dev left0 nud permanent && "
      "ip -6 neigh replace fd77::2 lladdr 02:00:00:00:00:06 dev left0 nud permanent");
}
void ip(const char* arguments) {
  REQUIRE(std::system((std::string{"ip "} + arguments).c_str()) == 0);
}

// The kernel's work after a link change may trail the command by a moment.
std::optional<PathUpdate> poll_until(PathFollower& follower, bool (*is_wanted)(const PathUpdate&)) {
  const Instant end = monotonic_now() + 5s;
  while (monotonic_now() < end) {
    const auto update = follower.poll(monotonic_now());
    if (update && is_wanted(*update)) return update;
    ::usleep(2000);
  }
  return std::nullopt;
}

}  // namespace

TEST_CASE("a route over a link gives MTU, addresses and a header template", "[control][session]") {
  enter_namespace();
  auto follower = PathFollower::open(options_for("10.77.0.1", "10.77.0.2"));
  REQUIRE(follower);
  const RouteInfo& route = follower.value().route();
  CHECK(route.link.name == "left0");
  CHECK(route.link.kind == "veth");
  CHECK(route.source == *IpAddress::parse("10.77.0.1"));
  const PathUpdate update = follower.value().update();
  CHECK(update.mtu_bytes == 1500);
  CHECK(update.is_link_up);
  CHECK(update.has_neighbour);
  REQUIRE(update.header_bytes == 42);
  const wire::HeaderTemplate header{std::span{update.header}.first(update.header_bytes)};
  std::array<std::byte, 42 + 50> frame{};
  header.write(frame.data(), std::span{frame}.subspan(42));
  const auto parsed = wire::parse_udp_frame(frame);
  REQUIRE(parsed);
  CHECK(parsed->source_mac == MacAddress{std::byte{2}, {}, {}, {}, {}, std::byte{1}});
  CHECK(frame[5] == std::byte{2});
  CHECK(parsed->source_port == 7411);
  CHECK(parsed->target_port == 7412);

  auto v6 = PathFollower::open(options_for("fd77::1", "fd77::2"));
  REQUIRE(v6);
  CHECK(v6.value().update().header_bytes == 62);
  CHECK(v6.value().update().has_neighbour);
  CHECK(v6.value().update().header[5] == std::byte{6});
}

TEST_CASE("N8 N9 N10 changes of MTU, neighbour and link are followed", "[control][session]") {
  enter_namespace();
  auto opened = PathFollower::open(options_for("10.77.0.1", "10.77.0.2"));
  REQUIRE(opened);
  PathFollower& follower = opened.value();
  while (follower.poll(monotonic_now())) {
  }
  CHECK_FALSE(follower.poll(monotonic_now()));  // no news, no update

  ip("link set left0 mtu 1000");
  CHECK(poll_until(follower, [](const PathUpdate& update) { return update.mtu_bytes == 1000; }));
  ip("link set left0 mtu 1500");
  CHECK(poll_until(follower, [](const PathUpdate& update) { return update.mtu_bytes == 1500; }));
  ip("neigh change 10.77.0.2 lladdr 02:00:00:00:00:09 dev left0 nud permanent");
  CHECK(poll_until(follower,
                   [](const PathUpdate& update) { return update.header[5] == std::byte{9}; }));
  ip("neigh del 10.77.0.2 dev left0");
  CHECK(poll_until(follower, [](const PathUpdate& update) { return !update.has_neighbour; }));
  ip("neigh replace 10.77.0.2 lladdr 02:00:00:00:00:02 dev left0 nud permanent");
  CHECK(poll_until(follower, [](const PathUpdate& update) { return update.has_neighbour; }));
  ip("link set right0 down");  // the carrier goes, the route stays
  CHECK(poll_until(follower, [](const PathUpdate& update) { return !update.is_link_up; }));
  ip("link set right0 up");
  CHECK(poll_until(follower, [](const PathUpdate& update) { return update.is_link_up; }));
  ip("link set left0 down");  // the route goes as well
  CHECK(poll_until(follower, [](const PathUpdate& update) { return !update.is_link_up; }));
  ip("link set left0 up");
  ip("neigh replace 10.77.0.2 lladdr 02:00:00:00:00:02 dev left0 nud permanent");
  CHECK(poll_until(follower, [](const PathUpdate& update) {
    return update.is_link_up && update.has_neighbour;
  }));
}

// Goal:   of news that the kernel could not keep for us the path's own may be lost, so everything
//         is looked at again.
// Method: a socket with the least room, filled by notifications of other neighbours; what follows
//         them is dropped (ENOBUFS).
TEST_CASE("news that the socket had no room for are not missed", "[control][session]") {
  enter_namespace();
  auto opened = PathFollower::open(options_for("10.77.0.1", "10.77.0.2"));
  REQUIRE(opened);
  PathFollower& follower = opened.value();
  while (follower.poll(monotonic_now())) {
  }
  const int least_bytes = 1;
  REQUIRE(::setsockopt(follower.fd(), SOL_SOCKET, SO_RCVBUF, &least_bytes, sizeof least_bytes) ==
          0);
  REQUIRE(std::system("for i in $(seq 100 160); do ip neigh replace 10.77.0.$i lladdr "
                      "02:00:00:00:01:00 dev left0 nud permanent || exit 1; done") == 0);
  ip("neigh change 10.77.0.2 lladdr 02:00:00:00:00:07 dev left0 nud permanent");
  CHECK(poll_until(follower,
                   [](const PathUpdate& update) { return update.header[5] == std::byte{7}; }));
  ip("neigh change 10.77.0.2 lladdr 02:00:00:00:00:02 dev left0 nud permanent");
}

// Goal:   nobody sends on a link without a carrier for longer than it takes to read one
//         notification, the MAC that was known outlives the fall, a link that came up takes frames
//         when its queue is open, and the kernel is asked for the neighbour then.
// Method: the other end of the veth goes and comes, and with it the kernel's entry, which is no
//         permanent one.
TEST_CASE("N10 a fall of the link is told first, and a raw port keeps its neighbour",
          "[control][session]") {
  enter_namespace();
  ip("neigh replace 10.77.0.2 lladdr 02:00:00:00:00:02 dev left0 nud reachable");
  auto follower = PathFollower::open(options_for("10.77.0.1", "10.77.0.2"));
  REQUIRE(follower);
  ip("link set right0 down");
  const auto fallen = poll_until(follower.value(), [](const PathUpdate&) { return true; });
  REQUIRE(fallen);
  CHECK_FALSE(fallen->is_link_up);
  CHECK(fallen->has_neighbour);
  CHECK(fallen->header[5] == std::byte{2});
  CHECK(std::system("! ip neigh show nud all dev left0 to 10.77.0.2 | grep -q .") == 0);
  while (follower.value().poll(monotonic_now())) {
  }

  CHECK(follower.value().due_in(monotonic_now()) == Nanos::max());
  const Instant asked_at = monotonic_now();
  ip("link set right0 up");
  while (follower.value().due_in(monotonic_now()) == Nanos::max())
    CHECK_FALSE(follower.value().poll(monotonic_now()));
  CHECK(follower.value().due_in(monotonic_now()) <= 30ms);
  const auto back =
      poll_until(follower.value(), [](const PathUpdate& update) { return update.is_link_up; });
  REQUIRE(back);
  CHECK(monotonic_now() - asked_at >= 30ms);
  CHECK(back->has_neighbour);
  CHECK(back->header[5] == std::byte{2});
  CHECK(std::system("ip neigh show nud all dev left0 to 10.77.0.2 | grep -q .") == 0);

  // An entry that somebody's packet made while the carrier was gone has its next question a second
  // later. It is made anew, and the peer's interface sees a question at the return.
  const Fd asked{::socket(AF_PACKET, SOCK_DGRAM | SOCK_NONBLOCK, htons(ETH_P_ARP))};
  const auto questions = [&asked] {
    int count = 0;
    for (std::array<char, 64> question{};
         ::recv(asked.get(), question.data(), question.size(), 0) > 0;)
      ++count;
    return count;
  };
  ip("link set right0 down");
  REQUIRE(
      poll_until(follower.value(), [](const PathUpdate& update) { return !update.is_link_up; }));
  while (follower.value().poll(monotonic_now())) {
  }
  CHECK(std::system("ping -c 1 -W 0.3 10.77.0.2 >/dev/null") != 0);
  CHECK(std::system("ip neigh show dev left0 to 10.77.0.2 | grep -q INCOMPLETE") == 0);
  ip("link set right0 up");
  (void)questions();
  REQUIRE(poll_until(follower.value(), [](const PathUpdate& update) { return update.is_link_up; }));
  for (int i = 0; i < 50 && questions() == 0; ++i) {
    REQUIRE(i < 20);  // 0.2 s
    ::usleep(10'000);
  }
  ip("neigh replace 10.77.0.2 lladdr 02:00:00:00:00:09 dev left0 nud permanent");
  CHECK(poll_until(follower.value(),
                   [](const PathUpdate& update) { return update.header[5] == std::byte{9}; }));
  ip("neigh replace 10.77.0.2 lladdr 02:00:00:00:00:02 dev left0 nud permanent");
}

TEST_CASE("a gateway is seen, and its MAC is the one that frames go to", "[control][session]") {
  enter_namespace();
  ip("route replace 10.88.0.0/24 via 10.77.0.2 dev left0");
  auto follower = PathFollower::open(options_for("10.77.0.1", "10.88.0.5"));
  REQUIRE(follower);
  REQUIRE(follower.value().route().gateway.has_value());
  CHECK(follower.value().route().gateway->text() == "10.77.0.2");
  CHECK(follower.value().update().header[5] == std::byte{2});
}

TEST_CASE("no route is exit 3", "[control][session]") {
  enter_namespace();
  const auto route = find_route(*IpAddress::parse("192.0.2.1"));
  REQUIRE_FALSE(route);
  CHECK(route.error().code == ExitCode::peer_unreachable);
}
