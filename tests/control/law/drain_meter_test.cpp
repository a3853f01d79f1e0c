// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// DrainMeter by its rules, one at a time, on hand-made readings.
#include <catch2/catch.hpp>

#include "control/law/estimate/drain_meter.hpp"

namespace onehop::law {
namespace {

constexpr BytesPerSecond link = mbit_per_s(600);
constexpr Bytes quantum{2800};

struct Feeder {
  DrainMeter meter{{.has_stall_rule = true}};
  Instant at{1s};
  Bytes drained{};

  void move(Nanos span, Bytes out, Bytes occupancy) {
    at += span;
    drained += out;
    meter.add({.at = at, .drained_total = drained, .occupancy = occupancy}, quantum);
  }
  void step(Nanos span, BytesPerSecond rate, Bytes occupancy) {
    move(span, rate * span, occupancy);
  }
  void run(int steps, BytesPerSecond rate, Bytes occupancy) {
    for (int i = 0; i < steps; ++i) step(1ms, rate, occupancy);
  }
};

TEST_CASE("one millisecond of a queue that never ran empty measures the link", "[control][law]") {
  Feeder f;
  f.step(1ms, {}, kib(600));
  f.step(1ms, link, kib(500));
  REQUIRE(f.meter.has_exact());
  CHECK(f.meter.drain() == link);
}

TEST_CASE("a queue that ran empty can raise the drain rate and never lowers it", "[control][law]") {
  Feeder f;
  f.run(12, link, kib(600));
  REQUIRE(f.meter.drain() == link);
  f.step(10ms, link, Bytes{0});
  f.run(20, link * Gain{100}, Bytes{0});
  CHECK(f.meter.drain() == link);
  CHECK(f.meter.flow() < link * Gain{110});
  f.run(8, link * Gain{1500}, Bytes{0});
  CHECK(f.meter.drain() > link * Gain{1490});
}

TEST_CASE("probes that go alone measure nothing; the first flow does", "[control][law]") {
  Feeder f;
  for (int i = 0; i < 20; ++i) {
    f.drained += Bytes{1400};  // one frame every 8 ms, always gone before the next reading
    f.run(8, {}, Bytes{0});
  }
  CHECK_FALSE(f.meter.has_drain());
  f.run(4, link, Bytes{0});
  REQUIRE(f.meter.has_drain());
  CHECK(f.meter.drain() > link * Gain{900});
}

TEST_CASE("draining exactly what stood there is no proof that the queue never ran empty",
          "[control][law]") {
  Feeder f;
  f.run(12, link, kib(600));
  const BytesPerSecond slow = link * Gain{200};
  f.step(10ms, link, slow * 1ms);
  f.run(20, slow, slow * 1ms);
  CHECK(f.meter.drain() == link);
}

TEST_CASE("a slower link is followed within three windows", "[control][law]") {
  Feeder f;
  f.run(12, link, kib(600));
  f.run(12, link * Gain{500}, kib(600));
  CHECK(f.meter.drain() < link * Gain{600});
  CHECK(f.meter.drain() > link * Gain{490});
}

// Bounds: frozen for 8 d_1 = 32 ms, then halved each 32 ms; the first whole sample afterwards
// restores the rate.
TEST_CASE("a blackout freezes the drain rate and its end restores it at once", "[control][law]") {
  Feeder f;
  f.run(12, link, kib(600));
  f.run(30, {}, kib(600));
  CHECK(f.meter.is_stalled());
  CHECK(f.meter.drain() == link);
  f.run(100, {}, kib(600));
  CHECK(f.meter.drain() <= link * Gain{250});
  CHECK(f.meter.drain() > BytesPerSecond{0});
  f.run(2, link, kib(600));
  CHECK(f.meter.drain() == link);
  CHECK_FALSE(f.meter.is_stalled());
}

// Goal:   what a core that came late finds drained is no stall, however long it was away.
// Method: a core that reads every millisecond is away for 20, 120 and 500 ms, again and again;
// meanwhile the queue drains. Bounds: the drain rate stays to the last bit: such a reading is a
// lower bound, and nothing else.
TEST_CASE("a core that is away is not taken for a stalled link", "[control][law]") {
  const Nanos away = GENERATE(Nanos{20ms}, Nanos{120ms}, Nanos{500ms});
  const bool is_refilled = GENERATE(true, false);
  CAPTURE(away.count(), is_refilled);
  Feeder f;
  f.run(12, link, kib(600));
  for (int i = 0; i < 50; ++i) {
    // All of 600 KB has left within 8 ms of the time away, and the core has refilled before it
    // reports, or not yet.
    f.move(away, kib(600), is_refilled ? kib(600) : Bytes{0});
    CHECK_FALSE(f.meter.is_stalled());
    f.run(2, is_refilled ? link : BytesPerSecond{}, is_refilled ? kib(600) : Bytes{0});
  }
  CHECK_FALSE(f.meter.is_stalled());
  CHECK(f.meter.drain() == link);
}

// Goal:   a source that gives little leaves the link's rate as it was.
// Method: after full flow, a source of 1 MB/s in frames or in GSO batches, and one PING of 98 bytes
// each 20 ms, for 20 s; read each
//         millisecond, by a core that sees the frame in the queue or has seen it leave.
// Bounds: the drain rate stays to the last bit.
TEST_CASE("a source that gives little is not taken for a stalled link", "[control][law]") {
  struct Source {
    Nanos period;
    Bytes piece;
  };
  const auto source =
      GENERATE(Source{20ms, {98}}, Source{1514us, {1514}}, Source{66'616us, {66'616}});
  const bool is_seen_in_queue = GENERATE(true, false);
  CAPTURE(source.period.count(), source.piece.count, is_seen_in_queue);
  Feeder f;
  f.run(12, link, kib(600));
  f.move(20ms, kib(600), {0});
  Nanos since{0};
  for (int i = 0; i < 20'000; ++i) {
    since += 1ms;
    const bool is_due = since >= source.period;
    if (is_due) since -= source.period;
    if (is_due && is_seen_in_queue) {
      f.move(10us, {}, source.piece);
      f.move(990us, source.piece, {0});
    } else {
      f.move(1ms, is_due ? source.piece : Bytes{}, {0});
    }
    REQUIRE_FALSE(f.meter.is_stalled());
  }
  CHECK(f.meter.drain() >= link * Gain{999});
  CHECK(f.meter.drain() <= link * Gain{1001});
}

// Goal:   what was read last says nothing of the time since.
// Method: a link that has stalled and is read no more, for 10 s; then a reading that finds it
// draining. Bounds: one halving for the stall that was read; the first whole sample gives the rate
// back.
TEST_CASE("no estimate decays on readings that are old", "[control][law]") {
  Feeder f;
  f.run(12, link, kib(600));
  f.run(45, {}, kib(600));
  CHECK(f.meter.is_stalled());
  CHECK(f.meter.drain() == link * Gain{500});
  f.step(10s, {}, kib(600));
  CHECK(f.meter.drain() == link * Gain{250});
  f.run(3, link, kib(600));
  CHECK(f.meter.drain() == link);
}

TEST_CASE("T2 N5 counters that go back or leap are dropped and do not move the drain rate",
          "[control][law]") {
  Feeder f;
  f.run(12, link, kib(600));
  SECTION("backwards") { f.drained = {}; }
  SECTION("leap") { f.drained += Bytes{std::int64_t{1} << 40}; }
  SECTION("clock backwards") { f.at -= 1s; }
  f.step(1ms, link, kib(600));
  CHECK(f.meter.drain() == link);
  f.run(12, link, kib(600));
  CHECK(f.meter.drain() == link);
}

}  // namespace
}  // namespace onehop::law
