// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// The contract of every Port. A file per pair of ports defines ONEHOP_PORT_PAIRS (one or more pair
// types) and includes this one; the cases are then compiled for each pair.
//
// A pair has: a() and b(), the two ports; now(); pass(span), which lets time go by; wait(port,
// deadline, is_rx_wanted), which calls the port's wait and says when it returned; static const
// char* skip_reason(), nullptr where it can run; static constexpr Abilities abilities. Where
// abilities say so: set_slow(bool) makes the link from a to b carry about 20 Mbit/s (with room
// below it for what the port accepts); set_dropping() gives it a queue that throws away what is not
// sent at once; mark_ce() makes a's frames arrive CE-marked; set_mtu(bytes) sets the MTU at both
// ends; set_up(bool) sets a's link.
#pragma once

#include <catch2/catch.hpp>

#include <array>
#include <cstring>
#include <map>
#include <vector>

#include "engine/port/port.hpp"

namespace onehop::test {

struct Abilities {
  bool is_shaped = false;   ///< set_slow, set_dropping
  bool can_mark = false;    ///< mark_ce
  bool can_change = false;  ///< set_mtu, set_up
  bool is_virtual = false;  ///< its clock is not the machine's
};

// Frames carry their number and a pattern of it, so that a frame is known to be whole, and which
// one it is.
inline constexpr std::size_t test_frame_bytes_min = 8;

inline void fill(std::span<std::byte> frame, std::uint32_t number) {
  const auto length = static_cast<std::uint32_t>(frame.size());
  for (std::size_t i = 0; i < frame.size(); ++i)
    frame[i] = static_cast<std::byte>(number * 31 + i * 7 + (i >> 8));
  std::memcpy(frame.data(), &number, sizeof number);
  std::memcpy(frame.data() + sizeof number, &length, sizeof length);
}

inline bool is_whole(const RxFrame& view, std::uint32_t& number) {
  if (view.length < test_frame_bytes_min) return false;
  std::memcpy(&number, view.data, sizeof number);
  std::vector<std::byte> expected(view.bytes().size()), got(expected.size());
  fill(expected, number);
  view.bytes().copy_to(got.data(), 0, got.size());
  return expected == got;
}

// Exchange drives a pair from a to b and keeps the accounts that the port must agree with.
template <class Pair>
struct Exchange {
  Pair& pair;
  Bytes accepted{};
  Bytes drained_before{};
  std::uint32_t sent_frames = 0;
  std::uint64_t broken_frames = 0;
  std::uint64_t ce_frames = 0;
  Bytes taken{};                                     // wire bytes that arrived
  std::map<std::uint32_t, std::uint32_t> arrived{};  // number -> times
  std::map<std::uint32_t, std::size_t> lengths{};

  bool offer(std::size_t length) {
    const std::span<std::byte> slot = pair.a().lend(length);
    if (slot.empty()) return false;
    REQUIRE(slot.size() >= length);
    fill(slot.first(length), sent_frames);
    pair.a().commit(length);
    lengths[sent_frames] = length;
    sent_frames += 1;
    accepted += Bytes{static_cast<std::int64_t>(length)} + pair.a().info().wire_overhead;
    return true;
  }

  // accepted = drained + occupancy, at every step, and what drained stays drained.
  QueueTelemetry account() {
    const QueueTelemetry queue = pair.a().tx_queue(pair.now());
    CHECK(queue.drained_total + queue.occupancy == accepted);
    CHECK(queue.occupancy >= Bytes{0});
    CHECK(queue.drained_total >= drained_before);
    drained_before = queue.drained_total;
    return queue;
  }

  std::size_t take() {
    std::array<RxFrame, rx_batch_max> views;
    const std::size_t count = pair.b().receive(views);
    REQUIRE(count <= views.size());
    for (std::size_t i = 0; i < count; ++i) {
      std::uint32_t number = 0;
      if (is_whole(views[i], number) && lengths[number] == views[i].bytes().size()) {
        arrived[number] += 1;
      } else {
        broken_frames += 1;
      }
      ce_frames += views[i].is_ce ? 1 : 0;
      taken +=
          Bytes{static_cast<std::int64_t>(views[i].bytes().size())} + pair.a().info().wire_overhead;
    }
    pair.b().release();
    return count;
  }

  // Takes frames until `frames` distinct ones have arrived or `span` has gone by.
  void take_until(std::size_t frames, Nanos span) {
    const Instant end = pair.now() + span;
    while (arrived.size() < frames && pair.now() < end) {
      (void)pair.a().flush(pair.now());
      if (take() == 0) pair.pass(1ms);
    }
  }
};

template <class Pair>
bool is_skipped() {
  if (const char* const reason = Pair::skip_reason()) {
    WARN("skipped: " << reason);
    return true;
  }
  return false;
}

// Goal:   every frame of every size arrives whole, once, and the accounts agree at each step.
// Method: mixed sizes in small batches, taken as they come; order is not asked for. Exact bounds.
TEMPLATE_TEST_CASE("frames of all sizes arrive whole and are accounted for", "[contract][port]",
                   ONEHOP_PORT_PAIRS) {
  if (is_skipped<TestType>()) return;
  TestType pair;
  Exchange<TestType> exchange{pair};
  const std::size_t full = std::min<std::size_t>(1472 - 20, pair.a().info().frame_bytes_max);
  const std::array<std::size_t, 8> sizes{full, full, full, 44, full, 700, 701, 8};
  for (std::size_t round = 0; round < 100; ++round) {
    for (std::size_t i = 0; i < 16; ++i) {
      if (!exchange.offer(sizes[(round + i) % sizes.size()])) break;
      exchange.account();
    }
    (void)pair.a().flush(pair.now());
    exchange.account();
    exchange.take_until(exchange.sent_frames, 100ms);
  }
  exchange.take_until(exchange.sent_frames, 5s);
  CHECK(exchange.sent_frames >= 800);
  for (std::uint32_t number = 0; number < exchange.sent_frames; ++number) {
    if (!exchange.arrived.contains(number)) UNSCOPED_INFO("missing: frame " << number);
  }
  CHECK(exchange.arrived.size() == exchange.sent_frames);
  CHECK(exchange.broken_frames == 0);
  for (const auto& [number, times] : exchange.arrived) REQUIRE(times == 1);
  CHECK(pair.a().tx_queue(pair.now()).refused_total == 0);
  CHECK(exchange.account().occupancy == Bytes{0});
  CHECK(pair.b().rx_ring(pair.now()).refused_total == 0);
}

TEMPLATE_TEST_CASE("received views stay valid until release", "[contract][port]",
                   ONEHOP_PORT_PAIRS) {
  if (is_skipped<TestType>()) return;
  TestType pair;
  Exchange<TestType> exchange{pair};
  for (std::size_t i = 0; i < 8; ++i) REQUIRE(exchange.offer(1000));
  (void)pair.a().flush(pair.now());
  pair.pass(20ms);
  std::array<RxFrame, rx_batch_max> views;
  std::size_t count = 0;
  for (int i = 0; i < 100 && count == 0; ++i) {
    count = pair.b().receive(views);
    if (count == 0) pair.pass(10ms);
  }
  REQUIRE(count > 0);
  for (int round = 0; round < 20; ++round) {
    for (std::size_t i = 0; i < 8; ++i) (void)exchange.offer(1000);
    (void)pair.a().flush(pair.now());
    (void)pair.b().rx_ring(pair.now());
    pair.pass(1ms);
  }
  for (std::size_t i = 0; i < count; ++i) {
    std::uint32_t number = ~0U;
    CHECK(is_whole(views[i], number));
    CHECK(number < 8);
  }
  pair.b().release();
}

TEMPLATE_TEST_CASE("wait honours its deadline, and wakes for a frame and for wake",
                   "[contract][port]", ONEHOP_PORT_PAIRS) {
  if (is_skipped<TestType>()) return;
  TestType pair;
  Exchange<TestType> exchange{pair};
  const Instant start = pair.now();
  // Nothing comes: not before the deadline. A deadline in the past: no sleep.
  CHECK(pair.wait(pair.b(), start + 20ms, true) >= start + 20ms);
  CHECK(pair.b().wait(start, true) <= 1);

  // A frame ends a wait that wants it, long before the deadline, and only that one.
  REQUIRE(exchange.offer(100));
  (void)pair.a().flush(pair.now());
  const Instant nap = pair.now();
  CHECK(pair.wait(pair.b(), nap + 20ms, false) >= nap + 20ms);
  CHECK(pair.wait(pair.b(), pair.now() + 60s, true) < nap + 60s);
  exchange.take_until(1, 5s);
  CHECK(exchange.arrived.size() == 1);

  // wake() ends the wait that follows, wanted frames or not.
  pair.b().wake();
  const Instant before = pair.now();
  CHECK(pair.wait(pair.b(), before + 60s, false) < before + 60s);
}

// Goal:   the queue of a slow link is seen, pushes back, and empties.
// Method: fill until lend() refuses; half a second of a 20 Mbit/s link is 1.25 MB at most.
// Bounds: the link holds next to nothing itself, so what was accepted and has not arrived is in the
// queue. It is taken
//         before and after each reading, and the reading lies between, within one batch of 64 KiB.
//         Measured on veth with TBF: exact where super-packets are queued whole, 4.2 KB off where
//         TBF segments them. No clock is in it.
TEMPLATE_TEST_CASE("a slow link fills the queue, pushes back and drains to nothing",
                   "[contract][port]", ONEHOP_PORT_PAIRS) {
  if (is_skipped<TestType>() || !TestType::abilities.is_shaped) return;
  if constexpr (TestType::abilities.is_shaped) {
    TestType pair;
    pair.set_slow(true);
    Exchange<TestType> exchange{pair};
    bool is_full = false;
    Bytes peak{};
    for (std::size_t i = 0; i < 20'000 && !is_full; ++i) {
      is_full = !exchange.offer(1400);
      if (i % 40 == 39 || is_full) (void)pair.a().flush(pair.now());
      if (i % 40 == 39 || is_full) peak = std::max(peak, exchange.account().occupancy);
    }
    CHECK(is_full);
    CHECK(peak >= exchange.accepted / 4);
    const Bytes slack = kib(64);
    for (int i = 0; i < 3000; ++i) {
      (void)pair.a().flush(pair.now());
      while (exchange.take() > 0) {
      }
      const Bytes before = exchange.accepted - exchange.taken;
      const Bytes occupancy = exchange.account().occupancy;
      while (exchange.take() > 0) {
      }
      const Bytes after = exchange.accepted - exchange.taken;
      REQUIRE(occupancy <= before + slack);
      REQUIRE(occupancy + slack >= after);
      if (occupancy == Bytes{0}) break;
      pair.pass(2ms);
    }
    CHECK(exchange.account().occupancy == Bytes{0});
    exchange.take_until(exchange.sent_frames, 5s);
    CHECK(exchange.arrived.size() == exchange.sent_frames);
    CHECK(pair.a().tx_queue(pair.now()).refused_total == 0);
    CHECK(exchange.offer(1400));
  }
}

TEMPLATE_TEST_CASE("N12 frames that the lower queue drops are counted refused",
                   "[contract][port][N12]", ONEHOP_PORT_PAIRS) {
  if (is_skipped<TestType>() || !TestType::abilities.is_shaped) return;
  if constexpr (TestType::abilities.is_shaped) {
    TestType pair;
    pair.set_dropping();
    Exchange<TestType> exchange{pair};
    for (std::size_t i = 0; i < 2000; ++i) {
      if (!exchange.offer(1400)) pair.pass(1ms);
      if (i % 4 == 3) (void)pair.a().flush(pair.now());
      if (i % 4 == 3) exchange.account();
    }
    exchange.take_until(exchange.sent_frames, 1s);
    const QueueTelemetry queue = pair.a().tx_queue(pair.now());
    CHECK(queue.refused_total > 0);
    CHECK(exchange.arrived.size() < exchange.sent_frames);
    CHECK(exchange.broken_frames == 0);
    CHECK(pair.a().last_error() == 0);
  }
}

TEMPLATE_TEST_CASE("a queue's reading is of when it was made, not of when the turn began",
                   "[contract][port]", ONEHOP_PORT_PAIRS) {
  if (is_skipped<TestType>() || TestType::abilities.is_virtual) return;
  TestType pair;
  const Instant now = pair.now();
  CHECK(pair.a().tx_queue(now - 1s).at >= now);
}

TEMPLATE_TEST_CASE("a CE mark is reported with the frame", "[contract][port]", ONEHOP_PORT_PAIRS) {
  if (is_skipped<TestType>() || !TestType::abilities.can_mark) return;
  if constexpr (TestType::abilities.can_mark) {
    TestType pair;
    Exchange<TestType> exchange{pair};
    for (int i = 0; i < 20; ++i) REQUIRE(exchange.offer(1000));
    exchange.take_until(20, 5s);
    CHECK(exchange.arrived.size() == 20);
    CHECK(exchange.ce_frames == 0);
    pair.mark_ce();
    for (int i = 0; i < 20; ++i) REQUIRE(exchange.offer(1000));
    exchange.take_until(40, 5s);
    CHECK(exchange.arrived.size() == 40);
    CHECK(exchange.ce_frames >= 10);
  }
}

TEMPLATE_TEST_CASE("N9 frames above a lowered MTU are refused and smaller ones go on",
                   "[contract][port][N9]", ONEHOP_PORT_PAIRS) {
  if (is_skipped<TestType>() || !TestType::abilities.can_change) return;
  if constexpr (TestType::abilities.can_change) {
    TestType pair;
    Exchange<TestType> exchange{pair};
    for (int i = 0; i < 20; ++i) REQUIRE(exchange.offer(1400));
    exchange.take_until(20, 5s);
    REQUIRE(exchange.arrived.size() == 20);
    pair.set_mtu(1280);
    for (int i = 0; i < 20; ++i) REQUIRE(exchange.offer(1400));
    CHECK(pair.a().flush(pair.now()) == 0);
    CHECK(exchange.account().refused_total == 20);
    CHECK(pair.a().last_error() != 0);
    for (int i = 0; i < 20; ++i) REQUIRE(exchange.offer(1200));
    exchange.take_until(40, 5s);
    CHECK(exchange.arrived.size() == 40);
    CHECK(pair.a().last_error() == 0);
    CHECK(exchange.broken_frames == 0);
  }
}

TEMPLATE_TEST_CASE("N10 a link that goes down and comes up carries frames again",
                   "[contract][port][N10]", ONEHOP_PORT_PAIRS) {
  if (is_skipped<TestType>() || !TestType::abilities.can_change) return;
  if constexpr (TestType::abilities.can_change) {
    TestType pair;
    Exchange<TestType> exchange{pair};
    REQUIRE(exchange.offer(1000));
    exchange.take_until(1, 5s);
    REQUIRE(exchange.arrived.size() == 1);
    pair.set_up(false);
    for (int i = 0; i < 20; ++i) REQUIRE(exchange.offer(1000));
    // Each is refused and counted, or the port holds it until the link is back.
    const std::size_t held = pair.a().flush(pair.now());
    CHECK(exchange.account().refused_total + held == 20);
    CHECK(pair.a().last_error() != 0);
    pair.set_up(true);
    const std::uint32_t before = exchange.sent_frames;
    for (int i = 0; i < 500 && !exchange.arrived.contains(exchange.sent_frames - 1); ++i) {
      REQUIRE(exchange.offer(1000));
      (void)pair.a().flush(pair.now());
      pair.pass(10ms);
      while (exchange.take() > 0) {
      }
    }
    CHECK(exchange.arrived.rbegin()->first >= before);
    CHECK(pair.a().last_error() == 0);
    exchange.account();
  }
}

}  // namespace onehop::test
