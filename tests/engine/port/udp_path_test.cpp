// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Goal:   while the path takes nothing, because the link is down or a rule of this host refuses our
// frames, the UDP port keeps
//         what it has accepted, asks the kernel seldom, and goes on when that is over.
// Method: a veth pair in a network namespace of this process alone. The rule is an XFRM block,
// which refuses sendmsg() with the
//         EPERM of a netfilter drop and needs no other tool than ip(8). Needs root and ip(8), else
//         exits 77.
#include <unistd.h>

#include <catch2/catch.hpp>
#include <net/if.h>

#include <cstdlib>
#include <cstring>

#include "engine/base/time.hpp"
#include "engine/port/udp_port.hpp"
#include "tests/support/net_namespace.hpp"

using namespace onehop;

namespace {

constexpr std::size_t frame_bytes = 1000;

Endpoint address(const char* text, std::uint16_t port) { return {*IpAddress::parse(text), port}; }

int ip(const std::string& arguments) { return std::system(("ip " + arguments).c_str()); }

void enter_namespace() {
  test::enter_own_namespace(
      "ip link add left0 type veth peer name right0 && ip addr add 10.78.0.1/24 dev left0 && "
      "ip link set right0 up && ip link set left0 up && "
      "ip neigh replace 10.78.0.2 lladdr 02:00:00:00:00:02 dev left0 nud permanent");
}

/// The kernel notes a carrier that has come or gone up to a second later (net/core/link_watch.c).
void wait_for_carrier(bool is_wanted = true) {
  const auto is_up = [] { return ip("link show dev left0 | grep -q 'state UP'") == 0; };
  for (int i = 0; i < 500 && is_up() != is_wanted; ++i) ::usleep(10'000);
  REQUIRE(is_up() == is_wanted);
}

/// Bench: a port that sends to nobody, and a count of what left by left0.
struct Bench {
  Bench() {
    auto opened = UdpPort::open({.local = address("10.78.0.1", 0)});
    REQUIRE(opened);
    port = std::move(opened).value();
    REQUIRE(port->connect(address("10.78.0.2", 7411)));
  }
  /// send commits `frames` frames and flushes; it returns what the port still holds.
  std::size_t send(std::size_t frames) {
    for (std::size_t i = 0; i < frames; ++i) {
      const auto slot = port->lend(frame_bytes);
      REQUIRE(slot.size() == frame_bytes);
      std::memset(slot.data(), 1, frame_bytes);
      port->commit(frame_bytes);
    }
    return port->flush(now);
  }
  std::size_t flush_after(Nanos span) {
    now += span;
    return port->flush(now);
  }
  std::unique_ptr<UdpPort> port;
  Instant now{1h};
};

}  // namespace

TEST_CASE("frames that a rule refuses are kept, and leave when the rule goes", "[port][udp]") {
  enter_namespace();
  Bench bench;
  REQUIRE(bench.send(4) == 0);
  if (ip("xfrm policy add src 10.78.0.1 dst 10.78.0.2 proto udp dir out action block "
         "2>/dev/null") != 0) {
    WARN("skipped: this kernel has no XFRM");
    return;
  }
  // A rule may be meant for some frames only: the first refusals are losses.
  for (std::uint32_t i = 1; i < UdpTx::policy_refusals_max; ++i) CHECK(bench.send(1) == 0);
  CHECK(bench.send(5) == 5);
  CHECK(bench.port->last_error() == EPERM);
  CHECK(is_passing_error(bench.port->last_error()));
  const std::uint64_t calls = bench.port->syscalls_total();
  CHECK(bench.flush_after(1ms) == 5);
  CHECK(bench.port->syscalls_total() == calls);  // it asks again some time later
  const Instant began = monotonic_now();
  (void)bench.port->wait(began + 20ms, false);
  CHECK(monotonic_now() - began >= 20ms);  // a socket with room is no reason to wake up
  CHECK(bench.flush_after(UdpTx::blocked_retry_interval) == 5);
  REQUIRE(ip("xfrm policy flush") == 0);
  CHECK(bench.flush_after(UdpTx::blocked_retry_interval) == 0);
  CHECK(bench.port->last_error() == 0);
  CHECK(bench.port->tx_queue(bench.now).refused_total == UdpTx::policy_refusals_max - 1);
}

TEST_CASE(
    "frames for a link that is down are kept, and leave at once when the session says that it is "
    "up",
    "[port][udp]") {
  enter_namespace();
  Bench bench;
  REQUIRE(bench.send(4) == 0);
  REQUIRE(ip("link set left0 down") == 0);
  CHECK(bench.send(5) == 5);
  CHECK(is_passing_error(bench.port->last_error()));
  CHECK(bench.port->last_error() != 0);
  REQUIRE(ip("link set left0 up") == 0);
  CHECK(bench.flush_after(1us) == 5);
  bench.port->update_path({.is_link_up = true});
  CHECK(bench.flush_after(1us) == 0);
  CHECK(bench.port->tx_queue(bench.now).refused_total == 0);
}

// Goal:   no frame makes the kernel ask for the neighbour on a link without a carrier, where its
// next question comes a second later;
//         and a driver that never tells of its carrier holds nothing up for long.
// Method: the other end of the veth goes down: the carrier falls, and the kernel's entry with it,
// while route and address stay.
TEST_CASE("N10 frames wait from the moment when the carrier is gone", "[port][udp]") {
  enter_namespace();
  const auto has_entry = [] {
    return ip("neigh show nud all dev left0 to 10.78.0.2 | grep -q .") == 0;
  };
  wait_for_carrier();
  Bench bench;
  REQUIRE(ip("neigh replace 10.78.0.2 lladdr 02:00:00:00:00:02 dev left0 nud reachable") == 0);
  bench.port->update_path(
      {.ifindex = static_cast<int>(::if_nametoindex("left0")), .is_link_up = true});
  REQUIRE(bench.send(4) == 0);
  REQUIRE(ip("link set right0 down") == 0);
  for (int i = 0; i < 500 && has_entry(); ++i) ::usleep(10'000);
  REQUIRE_FALSE(has_entry());
  bench.now += UdpTx::link_check_interval;
  CHECK(bench.send(5) == 5);
  CHECK(bench.flush_after(UdpTx::blocked_retry_interval) == 5);
  CHECK_FALSE(has_entry());
  CHECK(bench.port->tx_queue(bench.now).refused_total == 0);
  REQUIRE(ip("link set right0 up") == 0);
  wait_for_carrier();
  REQUIRE(ip("neigh replace 10.78.0.2 lladdr 02:00:00:00:00:02 dev left0 nud permanent") == 0);
  bench.port->update_path(
      {.ifindex = static_cast<int>(::if_nametoindex("left0")), .is_link_up = true});
  CHECK(bench.flush_after(UdpTx::link_check_interval) == 0);

  REQUIRE(ip("link set right0 down") == 0);
  wait_for_carrier(false);
  CHECK(bench.send(1) == 0);  // it asks once in a while only
  CHECK(bench.flush_after(UdpTx::link_check_interval) == 0);
  CHECK(bench.send(1) == 1);
  CHECK(bench.flush_after(UdpTx::link_distrust_span) == 0);
  REQUIRE(ip("link set right0 up") == 0);
}
