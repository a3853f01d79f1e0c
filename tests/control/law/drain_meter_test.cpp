// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// DrainMeter by its rules, one at a time, on hand-made readings.
#include <catch2/catch.hpp>

#include "control/law/drain_meter.hpp"

namespace onehop::law {
namespace {

constexpr BytesPerSecond link = mbit_per_s(600);
constexpr Bytes quantum{2800};

struct Feeder {
  DrainMeter meter{{.has_stall_rule = true}};
  Instant at{1s};
  Bytes drained{};

  void step(Nanos span, BytesPerSecond rate, Bytes occupancy) {
    at += span;
    drained += rate * span;
    meter.add({.at = at, .drained_total = drained, .occupancy = occupancy}, quantum);
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

TEST_CASE("draining exactly what stood there is no proof that the queue never ran empty", "[control][law]") {
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

// Bounds: frozen for 8 d_1 = 32 ms, then halved each 32 ms; the first whole sample afterwards restores the rate.
TEST_CASE("a blackout freezes the drain rate and its end restores it at once", "[control][law]") {
  Feeder f;
  f.run(12, link, kib(600));
  for (int i = 0; i < 30; ++i) {
    f.step(1ms, {}, kib(600));
    f.meter.tick(f.at);
  }
  CHECK(f.meter.is_stalled());
  CHECK(f.meter.drain() == link);
  for (int i = 0; i < 100; ++i) {
    f.step(1ms, {}, kib(600));
    f.meter.tick(f.at);
  }
  CHECK(f.meter.drain() <= link * Gain{250});
  CHECK(f.meter.drain() > BytesPerSecond{0});
  f.run(2, link, kib(600));
  CHECK(f.meter.drain() == link);
  CHECK_FALSE(f.meter.is_stalled());
}

TEST_CASE("T2 N5 counters that go back or leap are dropped and do not move the drain rate", "[control][law]") {
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
