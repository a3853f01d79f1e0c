// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// SafeRange by equation: each test feeds steady readings and compares one row of the trace with the
// formula.
#include <catch2/catch.hpp>

#include <cmath>

#include "control/law/safe_range.hpp"

namespace onehop::law {
namespace {

constexpr BytesPerSecond c = mbit_per_s(600);  // payload = wire in these tests
constexpr Nanos d_1 = 4ms;

bool is_near(std::int64_t value, std::int64_t wanted, double part) {
  return std::abs(static_cast<double>(value - wanted)) <=
         part * std::abs(static_cast<double>(wanted));
}

/// Feed gives the law steady readings: all three buffers drain at C and hold what is told.
struct Feed {
  SafeRange law;
  LinkSample sample{};
  BytesPerSecond v_1 = c, v_2 = c, v_3 = c;
  Bytes x_1 = c * 8ms, x_2{}, x_3{};
  Nanos srtt{10ms};
  bool is_busy_2 = false, is_busy_3 = false;
  std::uint64_t turns = 0;

  explicit Feed(const SafeRangeParams& params = {}) : law{params} { sample.at = Instant{1s}; }
  RateGrant run(int steps = 100) {
    RateGrant grant;
    for (int i = 0; i < steps; ++i) {
      sample.at += 1ms;
      PathReport& p = sample.path;
      const Instant at = sample.at;
      const auto drain = [&](QueueTelemetry& q, BytesPerSecond v, Bytes x, QueueScope scope,
                             bool is_busy) {
        q = {.at = at,
             .occupancy = x,
             .drained_total = q.drained_total + v * 1ms,
             .capacity = q.capacity,
             .scope = scope,
             .is_backlogged = is_busy};
      };
      drain(p.tx_queue, v_1, x_1, QueueScope::lower_queue, false);
      drain(p.rx_ring, v_2, x_2, QueueScope::own_ring, is_busy_2);
      drain(p.app_buffer, v_3, x_3, QueueScope::own_ring, is_busy_3);
      p.at = at;
      p.srtt = srtt;
      p.offered = mib(64);
      p.payload_per_frame = p.wire_per_frame = {1500};
      p.counters.turns_total = ++turns * 1000;  // a core that polls: no saw
      grant = law.step(sample);
    }
    return grant;
  }
  [[nodiscard]] const BufferRow& row(std::size_t i) const { return law.trace().buffers[i]; }
};

//= [SMUFF] eq. (4), (6) type=test
TEST_CASE("buffer 1 aims at 2 v d_1 and its term is 3 v - X/d_1", "[control][law]") {
  const Nanos held = GENERATE(Nanos{4ms}, Nanos{8ms}, Nanos{10ms}, Nanos{14ms});
  CAPTURE(held.count());
  Feed f;
  f.x_1 = c * held;
  f.run();
  CHECK(is_near(f.row(0).drain.count, c.count, 0.01));
  CHECK(is_near(f.row(0).target.count, (c * 8ms).count, 0.01));
  const std::int64_t wanted = 3 * c.count - (f.x_1 / d_1).count;
  CHECK(std::abs(static_cast<double>(f.row(0).rate.count - wanted)) <
        0.02 * static_cast<double>(c.count));
}

//= [SMUFF] eq. (5) type=test
TEST_CASE("receiver targets are 0.6 C d and 0.2 C d, terms with empty buffers 1.6 C and 1.2 C",
          "[control][law]") {
  Feed f{{.app_grain = {}, .app_nap = {}, .has_latch = false}};
  f.run();
  CHECK(is_near(f.row(1).target.count, (c * Gain{600} * 10ms).count, 0.02));
  CHECK(is_near(f.row(2).target.count, (c * Gain{200} * 10ms).count, 0.02));
  CHECK(is_near(f.row(1).rate.count, (c * Gain{1600}).count, 0.02));
  CHECK(is_near(f.row(2).rate.count, (c * Gain{1200}).count, 0.02));
}

// X_max,1 = 6.5 C d_1 = 26 ms of C, for 2 C srtt is 20; over = 26 - 4 (3 - 0.5) ms of C. The
// receiver's are their capacities less d (v_up - v_lo).
//= [SMUFF] eq. (2), (3) type=test
TEST_CASE("each row tells its safe range, and no range where the buffer's size is not known",
          "[control][law]") {
  Feed f{{.app_grain = {}, .app_nap = {}, .has_latch = false}};
  f.sample.path.rx_ring.capacity = c * 50ms;
  f.run();
  REQUIRE((f.row(0).under && f.row(0).over && f.row(1).under && f.row(1).over && f.row(2).under));
  CHECK(is_near(f.row(0).under->count, (c * 8ms).count, 0.02));
  CHECK(is_near(f.row(0).over->count, (c * 16ms).count, 0.02));
  CHECK(is_near(f.row(0).occupancy_max.count, (c * 26ms).count, 0.02));
  CHECK(is_near(f.row(1).under->count, (c * 6ms).count, 0.02));
  CHECK(is_near(f.row(1).over->count, (c * 39ms).count, 0.02));
  CHECK(f.row(1).occupancy_max == c * 50ms);
  CHECK(is_near(f.row(2).under->count, (c * 2ms).count, 0.02));
  CHECK_FALSE(f.row(2).over);
  CHECK(f.row(2).occupancy_max == Bytes{0});
}

//= [SMUFF] eq. (6) type=test
TEST_CASE("the grant is the smallest term that takes part, and names its buffer",
          "[control][law]") {
  Feed f{{.has_latch = false}};
  RateGrant grant = f.run();
  REQUIRE(f.row(0).rate < f.row(2).rate);
  CHECK(grant.rate == f.row(0).rate);
  CHECK(f.law.trace().bottleneck == Bottleneck::tx_queue);
  f.x_3 = c * 20ms;
  grant = f.run(1);
  CHECK(grant.rate == std::max(f.row(2).rate, BytesPerSecond{150'000}));
  CHECK(f.law.trace().bottleneck == Bottleneck::app_buffer);
}

// While a receiver holds us back to C/2, v_1 stays C (lower bounds only), and the inflow of buffer
// 2 is C/2.
TEST_CASE("a receiver target counts what flows in, not what the link could carry",
          "[control][law]") {
  Feed f{{.has_latch = false}};
  f.run();
  f.x_1 = {};
  f.v_1 = f.v_2 = f.v_3 = c * Gain{500};
  f.is_busy_2 = f.is_busy_3 = true;
  f.run();
  CHECK(f.row(0).drain >= c * Gain{850});  // one reading while the queue still emptied was exact
  CHECK(is_near(f.row(1).target.count, (c * Gain{300} * 10ms).count, 0.03));
}

TEST_CASE("up to a fifth of foreign bytes counts as ours, more than that does not",
          "[control][law]") {
  Feed f;
  auto& lower = f.sample.facts.lower_queue.emplace();  // an old reading, which only tells of others
  lower.period = 4ms;
  lower.value.foreign = c * 1ms;
  f.x_1 = c * 7ms;
  const RateGrant yielding = f.run();
  CHECK(is_near(f.row(0).rate.count, c.count, 0.02));
  CHECK(is_near(yielding.backlog_max.count, (c * 7ms).count, 0.05));
  lower.value.foreign = c * 4ms;
  f.x_1 = c * 8ms;
  const RateGrant holding = f.run();
  CHECK(is_near(f.row(0).rate.count, c.count, 0.02));
  CHECK(is_near(holding.backlog_max.count, (c * 8ms).count, 0.05));
}

// The application buffer moves by whole blocks: its target is never below four of them, and d_3
// never shorter than they take to drain, or each block would be taken for a backlog.
TEST_CASE("the application buffer is judged in whole blocks", "[control][law]") {
  Feed f{{.has_latch = false}};
  f.srtt = 300us;
  f.run();
  CHECK(f.row(2).target >= Bytes{4 * block_bytes});
  f.x_3 = {2 * block_bytes};
  f.run();
  CHECK(f.row(2).rate.count >= c.count);
}

TEST_CASE("d of the receiver terms is srtt, and at least 2 ms", "[control][law]") {
  Feed f{{.app_grain = {}, .app_nap = {}, .has_latch = false}};
  f.srtt = 300us;
  f.run();
  CHECK(is_near(f.row(2).target.count, (c * Gain{200} * 2ms).count, 0.05));
}

TEST_CASE("a receiver buffer takes part while backlogged and for max(50 ms, 4 srtt) afterwards",
          "[control][law]") {
  Feed f;
  f.srtt = GENERATE(Nanos{2ms}, Nanos{20ms});
  const Nanos latch = std::max<Nanos>(50ms, f.srtt * 4);
  f.run();
  CHECK_FALSE(f.row(2).takes_part);
  f.is_busy_3 = true;
  f.run(1);
  CHECK(f.row(2).takes_part);
  f.is_busy_3 = false;
  f.run(static_cast<int>(latch / 1ms) - 1);
  CHECK(f.row(2).takes_part);
  f.run(3);
  CHECK_FALSE(f.row(2).takes_part);
}

TEST_CASE("a receiver buffer smaller than its target is aimed at half its size", "[control][law]") {
  Feed f{{.has_latch = false}};
  f.sample.path.rx_ring.capacity = kib(64);
  f.run();
  CHECK(f.row(1).target == kib(32));
}

//= [SMUFF] eq. (2), (3) type=test
TEST_CASE("a queue too small for a safe range is reported and held at half at the most",
          "[control][law]") {
  Feed f;
  f.sample.facts.lower_queue.emplace().value.queue = {.capacity = c * 12ms,
                                                      .scope = QueueScope::lower_queue};
  f.x_1 = c * 3ms;
  const RateGrant grant = f.run();
  CHECK(f.law.trace().is_degraded);
  CHECK(f.row(0).target <= c * 6ms);
  CHECK(f.row(0).target >= c * 3ms);
  CHECK(grant.backlog_max <= c * 12ms);
}

TEST_CASE("the middle of the safe range is C srtt - d_1 C / 4 when 2 BDP is the larger X_max",
          "[control][law]") {
  Feed f{{.target = Target::mid}};
  f.srtt = 20ms;
  f.run();
  CHECK(is_near(f.row(0).target.count, (c * 19ms).count, 0.02));
}

TEST_CASE("payload and wire bytes are converted at the sensor and back in the grant",
          "[control][law]") {
  Feed f;
  f.run();
  SafeRange law{{}};
  LinkSample s;
  s.at = Instant{1s};
  RateGrant grant;
  for (int i = 0; i < 100; ++i) {
    s.at += 1ms;
    s.path.at = s.at;
    s.path.tx_queue = {.at = s.at,
                       .occupancy = c * 8ms,
                       .drained_total = s.path.tx_queue.drained_total + c * 1ms,
                       .scope = QueueScope::lower_queue};
    s.path.offered = mib(1);
    s.path.payload_per_frame = {750};
    s.path.wire_per_frame = {1500};
    s.path.counters.turns_total += 1000;
    grant = law.step(s);
  }
  CHECK(is_near(law.trace().buffers[0].drain.count, c.count / 2, 0.01));
  CHECK(is_near(grant.backlog_max.count, (c * 8ms).count, 0.05));
}

TEST_CASE("the initial rate is 100 Mbit/s where the interface claims none", "[control][law]") {
  SafeRange law{{}};
  LinkSample s{.at = Instant{1s}};
  s.path.tx_queue.scope = QueueScope::lower_queue;
  s.path.payload_per_frame = s.path.wire_per_frame = {1500};
  const RateGrant grant = law.step(s);
  CHECK(law.trace().buffers[0].drain == mbit_per_s(100));
  CHECK(grant.backlog_max == kib(32));
}

TEST_CASE("a start that is known goes before the interface's claim, with a backlog for its rate",
          "[control][law]") {
  SafeRange law{{.rate_start = mbit_per_s(480), .is_start_known = true}};
  LinkSample s{.at = Instant{1s}};
  s.path.tx_queue.scope = QueueScope::lower_queue;
  s.path.payload_per_frame = s.path.wire_per_frame = {1500};
  SECTION("no claim") {}
  SECTION("a claim") { s.limits = {.link_rate = mbit_per_s(10'000)}; }
  const RateGrant grant = law.step(s);
  CHECK(law.trace().buffers[0].drain == mbit_per_s(480));
  CHECK(grant.backlog_max == mbit_per_s(480) * 8ms);
}

/// peer_lies: what a hostile receiver may put into its feedback.
QueueTelemetry peer_lie(int kind, Instant at, int i) {
  constexpr std::int64_t huge = std::int64_t{1} << 62;
  switch (kind) {
    case 0:
      return {.at = at,
              .occupancy = {0},
              .drained_total = {i * mib(64).count},
              .capacity = {huge},
              .scope = QueueScope::own_ring,
              .is_backlogged = true};
    case 1:
      return {.at = at,
              .occupancy = {-huge},
              .drained_total = {-huge},
              .capacity = {-huge},
              .scope = QueueScope::own_ring};
    case 2:
      return {.at = at,
              .occupancy = {huge},
              .drained_total = {huge - i},
              .capacity = {0},
              .scope = QueueScope::own_ring,
              .is_backlogged = true};
    case 3:
      return {.at = Instant{},
              .occupancy = {i % 2 == 0 ? huge : 0},
              .drained_total = {i % 2 == 0 ? huge : -huge},
              .capacity = {1},
              .scope = QueueScope::own_ring};
    default:
      return {.at = at - 1s * (i % 7),
              .occupancy = {1},
              .drained_total = {std::int64_t{i} << 40},
              .capacity = {1},
              .scope = QueueScope::own_ring,
              .is_backlogged = true};
  }
}

// Bounds: with an honest own queue the grant is at most what the own term alone gives; never
// negative, never above R_max.
TEST_CASE("N5 I4 no claim of the peer raises the grant above what the own queue allows",
          "[control][law]") {
  const int kind = GENERATE(0, 1, 2, 3, 4);
  CAPTURE(kind);
  Feed honest;
  Feed lied;
  for (int i = 0; i < 500; ++i) {
    const RateGrant honest_grant = honest.run(1);
    const Bytes drained = lied.sample.path.tx_queue.drained_total;
    lied.sample.at += 1ms;
    PathReport& p = lied.sample.path;
    p.at = lied.sample.at;
    p.tx_queue = {.at = p.at,
                  .occupancy = c * 8ms,
                  .drained_total = drained + c * 1ms,
                  .scope = QueueScope::lower_queue};
    p.rx_ring = peer_lie(kind, p.at, i);
    p.app_buffer = peer_lie((kind + 1) % 5, p.at, i);
    p.srtt = 10ms;
    p.offered = mib(64);
    p.payload_per_frame = p.wire_per_frame = {1500};
    p.rate_offer = {std::int64_t{1} << 62};
    p.counters.turns_total += 1000;
    const RateGrant grant = lied.law.step(lied.sample);
    REQUIRE(grant.rate <= honest_grant.rate);
    REQUIRE(grant.backlog_max <= honest_grant.backlog_max);
    REQUIRE(grant.rate >= BytesPerSecond{150'000});
  }
}

TEST_CASE("T1 an old reading moves nothing", "[control][law]") {
  Feed f;
  const RateGrant before = f.run();
  RateGrant after;
  for (int i = 0; i < 1000; ++i) {
    f.sample.at += 1ms;
    after = f.law.step(f.sample);
  }
  CHECK(after.rate == before.rate);
  CHECK(after.backlog_max == before.backlog_max);
}

}  // namespace
}  // namespace onehop::law
