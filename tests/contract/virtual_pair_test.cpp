// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// The port contract in virtual time: on two virtual ports, and on AF_XDP's rings: what `onehop
// stress rings` drives keeps the rules of the real ports.
#include <algorithm>
#include <cstdint>

#include "tools/labs/world/ring_port.hpp"
#include "tools/labs/world/virtual_port.hpp"

namespace onehop::test {
struct VirtualPair;
template <std::uint32_t chunk_bytes>
struct RingPair;
}  // namespace onehop::test
#define ONEHOP_RING_PAIRS       \
  onehop::test::RingPair<2048>, \
      onehop::test::RingPair<512>  // frames in one chunk, and in up to six
#define ONEHOP_PORT_PAIRS onehop::test::VirtualPair, ONEHOP_RING_PAIRS
#include "tests/contract/port_suite.hpp"

namespace onehop::test {

template <class P>
struct VirtualTime {
  static constexpr Abilities abilities{
      .is_shaped = true, .can_mark = true, .can_change = true, .is_virtual = true};
  static const char* skip_reason() { return nullptr; }
  template <class... Shape>
  explicit VirtualTime(const Shape&... shape) : a_{link_, 0, shape...}, b_{link_, 1, shape...} {}

  P& a() { return a_; }
  P& b() { return b_; }
  Instant now() const { return link_.now(); }
  void pass(Nanos span) { run_until(now() + span); }
  Instant wait(P& port, Instant deadline, bool is_rx_wanted) {
    (void)port.wait(deadline, is_rx_wanted);
    while (port.ready_at() > now()) run_until(std::min(port.ready_at(), link_.next_event()));
    return now();
  }
  void set_slow(bool is_slow) { link_.set_rate(0, mbit_per_s(is_slow ? 20 : 1000)); }
  void set_dropping() {
    link_.config(0).is_drop_tail = true;
    link_.config(0).queue_capacity = kib(8);
    set_slow(true);
  }
  void mark_ce() { link_.config(0).ce_threshold = Bytes{1}; }
  void set_mtu(std::size_t bytes) { link_.set_mtu(0, bytes); }
  void set_up(bool is_up) { link_.set_up(is_up); }

 private:
  void run_until(Instant at) {
    link_.run_until(at);
    if constexpr (requires { a_.play(); }) {
      a_.play();
      b_.play();
    }
  }
  VirtualLink link_{VirtualLink::Options{}};
  P a_, b_;
};

struct VirtualPair : VirtualTime<VirtualPort> {};

template <std::uint32_t chunk_bytes>
struct RingPair : VirtualTime<scenario::RingPort> {
  RingPair()
      : VirtualTime{scenario::RingShape{.tx_frames = 512 * 2048 / chunk_bytes,
                                        .rx_frames = 1024 * 2048 / chunk_bytes,
                                        .chunk_bytes = chunk_bytes,
                                        .index_start = ~0U - 100,
                                        .is_at_edge = true}} {}
};

// The other way round, that it sees each slip, is what tests/stress/bugs shows.
TEMPLATE_TEST_CASE("the rings' kernel finds nothing wrong with a port that keeps the rules",
                   "[contract][port][rings]", ONEHOP_RING_PAIRS) {
  TestType pair;
  Exchange<TestType> exchange{pair};
  for (int i = 0; i < 3000; ++i) {
    if (!exchange.offer(1400)) pair.pass(100us);
    if (i % 16 == 15) exchange.account();
    if (i % 500 == 499) {
      (void)pair.a().flush(pair.now());
      pair.a().rebind();
    }
    while (exchange.take() > 0) {
    }
    pair.b().audit();
  }
  CHECK(pair.a().complaint().empty());
  CHECK(pair.b().complaint().empty());
}

TEMPLATE_TEST_CASE("withheld completions and a starved fill ring are what the telemetry shows",
                   "[contract][port][rings]", ONEHOP_RING_PAIRS) {
  TestType pair;
  Exchange<TestType> exchange{pair};
  pair.a().faults().are_completions_withheld = true;
  for (int i = 0; i < 10; ++i) REQUIRE(exchange.offer(1400));
  (void)pair.a().flush(pair.now());
  pair.pass(10ms);
  CHECK(pair.a().tx_queue(pair.now()).drained_total == Bytes{0});
  pair.a().faults().are_completions_withheld = false;
  CHECK(pair.a().tx_queue(pair.now()).occupancy == Bytes{0});
  CHECK(pair.b().rx_ring(pair.now()).refused_total == 0);
  pair.b().faults().is_fill_starved = true;
  for (int i = 0; i < 10; ++i) REQUIRE(exchange.offer(1400));
  (void)pair.a().flush(pair.now());
  pair.pass(10ms);
  CHECK(pair.b().rx_ring(pair.now()).refused_total == 10);
}

}  // namespace onehop::test
