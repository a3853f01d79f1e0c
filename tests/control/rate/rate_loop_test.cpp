// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// RateLoop on hand-made reports, and its thread for real.
#include <catch2/catch.hpp>

#include <unistd.h>

#include <cstdlib>

#include "control/law/fixed.hpp"
#include "control/rate/rate_loop.hpp"
#include "control/rate/rate_thread.hpp"
#include "engine/base/time.hpp"

namespace onehop::rate {
namespace {

/// Source tells one reading of the lower queue every 4 ms, and a physical rate where the test wants
/// one. It counts what it was asked.
struct Source final : link::FactSource {
  std::optional<QueueTelemetry> reading;
  bool has_rate = false, has_exact = false;
  int reads = 0, backlog_reads = 0;
  [[nodiscard]] std::string_view name() const noexcept override { return "test"; }
  void read(Instant now, law::LinkFacts& facts) override {
    ++reads;
    tell(now, facts);
    if (!has_rate) return;
    facts.phy_rate = law::Fact<BytesPerSecond>{mbit_per_s(1201), now, 20ms};
    facts.medium = law::Medium::wifi;
  }
  void read_backlog(Instant now, law::LinkFacts& facts) override {
    ++backlog_reads;
    tell(now, facts);
  }
  void tell(Instant now, law::LinkFacts& facts) const {
    if (!reading) return facts.exact_queue.reset();
    const bool is_again = facts.lower_queue && now - facts.lower_queue->at < 4ms;
    if (is_again && facts.exact_queue) facts.exact_queue->value.queue = *reading;  // told twice
    if (is_again) return;
    facts.lower_queue = {{.queue = *reading, .sensor = law::QueueSensor::qdisc}, now, 4ms};
    if (has_exact) facts.exact_queue = facts.lower_queue;
  }
};

/// Probe is a law that keeps its last sample and grants 600 Mbit/s.
struct Probe final : law::Controller {
  law::LinkSample seen;
  std::uint32_t raised = 0;
  Bottleneck bottleneck = Bottleneck::tx_queue;
  BytesPerSecond drain = mbit_per_s(600);
  RateGrant step(const law::LinkSample& sample) override {
    seen = sample;
    trace_ = {.bottleneck = bottleneck};
    trace_.buffers[0].drain = drain;
    trace_.notices = raised;
    return {.rate = mbit_per_s(600), .backlog_max = kib(600)};
  }
  [[nodiscard]] std::string_view name() const override { return "probe"; }
};

struct Bench {
  Probe law;
  Source source;
  Latest<PathReport> path;
  Latest<Limits> limits;
  Latest<RateGrant> grant;
  Latest<RateState> state;
  RateLoop loop{law, {path, limits, grant, state}, nullptr};
  Instant now{10s};
  PathReport report;

  Bench() {
    report.tx_queue = {.occupancy = kib(400), .scope = QueueScope::lower_queue};
    report.offered = mib(1);
    report.payload_per_frame = {1400};
    report.wire_per_frame = {1514};
    report.srtt = 20ms;
    loop.set_source(&source);
  }
  void run(Nanos span, bool has_feedback = true) {
    for (const Instant end = now + span; now < end;) {
      now += loop.next_tick_in();
      report.at = report.tx_queue.at = now;
      report.sent_total += kib(10);
      if (has_feedback) report.feedback_at = now;
      path.store(report);
      loop.tick(now);
    }
  }
};

// Bounds: 170 ticks a second in the steady state, 250 where its queue is no bottleneck, 500 on
// Wi-Fi, 100 in the first 50 ms, 1000 while the drain moves, 50 idle.
TEST_CASE(
    "the loop ticks fast at the start and while the drain moves, else every 6 ms, or 4 where its "
    "queue does not decide, and slowly when idle",
    "[control][rate]") {
  Bench b;
  b.run(10ms);
  CHECK(b.loop.next_tick_in() == 500us);
  b.run(300ms);
  CHECK(b.loop.next_tick_in() == 6ms);
  b.law.bottleneck = Bottleneck::rx_ring;
  b.run(6ms);
  CHECK(b.loop.next_tick_in() == 4ms);
  b.law.bottleneck = Bottleneck::tx_queue;
  for (const auto& [mbit, tick] : {std::pair{719, 6ms}, {721, 1ms}, {576, 1ms}, {690, 6ms}}) {
    CAPTURE(mbit);
    b.law.drain = mbit_per_s(mbit);
    b.run(5ms);
    CHECK(b.loop.next_tick_in() == tick);
    b.run(110ms);
  }
  b.report.offered = {};
  b.path.store(b.report);
  for (int i = 0; i < 1000; ++i) {
    b.now += 2ms;
    b.loop.tick(b.now);
  }
  CHECK(b.loop.next_tick_in() == 20ms);
}

// Bounds: 100 ticks a second where the law is constant and slow; all others as ever.
TEST_CASE(
    "a slow law that is constant is asked seldom, a faster one or one under a cap as often as any",
    "[control][rate]") {
  const auto steady_tick = [](law::Controller& law, BytesPerSecond cap) {
    Bench b;
    b.limits.store({.rate_max = cap});
    RateLoop loop{law, {b.path, b.limits, b.grant, b.state}, nullptr};
    for (int i = 0; i < 500; ++i) {
      b.now += 1ms;
      b.report.at = b.report.tx_queue.at = b.report.feedback_at = b.now;
      b.report.sent_total += kib(1);
      b.path.store(b.report);
      loop.tick(b.now);
    }
    CHECK(b.grant.load().is_rate_final == (law.is_constant() || cap > BytesPerSecond{0}));
    return loop.next_tick_in();
  };
  law::Fixed slow{mbit_per_s(5)}, fast{mbit_per_s(100)};
  Probe moving;
  CHECK(steady_tick(slow, {}) == 10ms);
  CHECK(steady_tick(fast, {}) == 4ms);
  CHECK((steady_tick(moving, {}) == 6ms && steady_tick(moving, mbit_per_s(5)) == 4ms));
}

// A data frame that finds the law idle goes at the start rate until the next tick.
TEST_CASE("the loop ticks fast while the first data is awaited, and gives up after a second",
          "[control][rate]") {
  Bench b;
  b.report = {};
  b.loop.tick(b.now);
  CHECK(b.loop.next_tick_in() == 500us);
  b.now += 999ms;
  b.loop.tick(b.now);
  CHECK(b.loop.next_tick_in() == 500us);
  b.now += 2ms;
  b.loop.tick(b.now);
  CHECK(b.loop.next_tick_in() == 20ms);
}

TEST_CASE(
    "the source is asked while data flows, for the backlog while that drains, and then no more",
    "[control][rate]") {
  Bench b;
  b.source.reading = QueueTelemetry{.occupancy = kib(400), .capacity = mib(1)};
  b.run(400ms);
  CHECK((b.source.reads > 100 && b.source.backlog_reads == 0));
  CHECK(b.law.seen.facts.lower_queue->value.queue.capacity == mib(1));
  b.report.offered = {};
  b.path.store(b.report);
  const int flowing = b.source.reads;
  for (int i = 0; i < 100; ++i) b.loop.tick(b.now += 2ms);
  CHECK((b.source.reads <= flowing + 1 && b.source.backlog_reads >= 99));
  CHECK(b.now - b.law.seen.facts.lower_queue->at <= 4ms);
  b.report.tx_queue.occupancy = {};
  b.path.store(b.report);
  b.loop.tick(b.now += 2ms);
  const int draining = b.source.backlog_reads;
  for (int i = 0; i < 40; ++i) b.loop.tick(b.now += 2ms);
  CHECK(b.source.backlog_reads == draining);
  CHECK(b.law.seen.facts.lower_queue);
  for (int i = 0; i < 11; ++i) b.loop.tick(b.now += 2ms);
  CHECK_FALSE(b.law.seen.facts.lower_queue);  // 100 ms old
}

TEST_CASE("foreign bytes are the least excess of the last readings", "[control][rate]") {
  Bench b;
  b.source.reading = QueueTelemetry{.occupancy = kib(500)};
  const auto foreign = [&] { return b.law.seen.facts.lower_queue->value.foreign; };
  b.run(30ms);
  CHECK(foreign() == Bytes{0});  // not before 16 readings
  b.run(170ms);
  CHECK(foreign() == kib(100));
  b.source.reading->occupancy = kib(390);
  b.run(10ms);
  CHECK(foreign() == Bytes{0});
}

TEST_CASE("another link's source starts without what the last one told", "[control][rate]") {
  Bench b;
  b.source.reading = QueueTelemetry{.occupancy = kib(500)};
  b.run(200ms);
  Source other;
  b.loop.set_source(&other);
  b.run(10ms);
  CHECK_FALSE(b.law.seen.facts.lower_queue);
  other.reading = QueueTelemetry{.occupancy = kib(500)};
  b.run(30ms);
  CHECK(b.law.seen.facts.lower_queue->value.foreign == Bytes{0});
}

// Goal: what a queue refused before we read it is no refusal of now. Method: both queues, with old
// drops at first, after a gap in the readings, as another link's, and made anew. Bounds: exact.
TEST_CASE("a queue's refusals count between our readings of it", "[control][rate]") {
  Bench b;
  Source other;
  const auto refused = [&](Source& source, std::uint64_t counter) {
    source.has_exact = true;
    source.reading = QueueTelemetry{.occupancy = kib(400), .refused_total = counter};
    b.run(20ms);
    const std::uint64_t lower = b.law.seen.facts.lower_queue->value.queue.refused_total;
    CHECK(b.law.seen.facts.exact_queue->value.queue.refused_total == lower);
    return lower;
  };
  b.run(20ms);
  CHECK((refused(b.source, 1000) == 0 && refused(b.source, 1003) == 3));
  b.source.reading.reset();
  b.run(200ms);
  CHECK(refused(b.source, 2000) == 3);
  b.loop.set_source(&other);
  CHECK((refused(other, 5000) == 3 && refused(other, 4000) == 3 && refused(other, 4002) == 5));
}

TEST_CASE("a cap binds rate and burst, and is named", "[control][rate]") {
  Bench b;
  b.limits.store({.rate_max = mbit_per_s(100)});
  b.run(100ms);
  CHECK(b.grant.load().rate == mbit_per_s(100));
  CHECK(b.grant.load().backlog_max == mbit_per_s(100) * 18ms);
  CHECK(b.state.load().bottleneck == Bottleneck::cap);
}

// Bounds: nothing happens for max(4 srtt, 200 ms); then one halving per srtt of 20 ms; the first
// feedback restores all.
TEST_CASE("without feedback the rate is halved every round trip, and feedback gives it back",
          "[control][rate]") {
  Bench b;
  b.run(500ms);
  b.run(195ms, false);
  CHECK(b.grant.load().rate == mbit_per_s(600));
  b.run(60ms, false);
  CHECK(b.grant.load().rate <= mbit_per_s(600) * Gain{125});
  b.run(1s, false);
  CHECK(b.grant.load().rate == BytesPerSecond{150'000});
  b.run(2ms);
  CHECK(b.grant.load().rate == mbit_per_s(600));
}

TEST_CASE("an idle pause is not silence", "[control][rate]") {
  Bench b;
  b.run(500ms);
  b.report.offered = {};
  b.path.store(b.report);
  for (int i = 0; i < 1000; ++i) b.loop.tick(b.now += 2ms);
  b.report.offered = mib(1);
  b.run(100ms, false);
  CHECK(b.grant.load().rate == mbit_per_s(600));
}

// Bounds: 1 s at 400 KiB, then 1 s empty: the mean is 200 KiB, and the empty second is underflow.
// One tick of slack.
TEST_CASE("statistics are weighted by time and underflow needs data, credit and an empty queue",
          "[control][rate]") {
  Bench b;
  b.run(1s);
  b.report.tx_queue.occupancy = {};
  b.run(1s);
  b.loop.publish_state(b.now);
  const RateState s = b.state.load();
  CHECK(std::abs(s.tx_queue_mean.count - kib(200).count) < kib(2).count);
  CHECK(s.tx_queue.max == kib(400));
  CHECK(std::abs((s.tx_queue.underflow - 1s).count()) < Nanos{5ms}.count());
  b.report.is_credit_limited = true;
  b.run(1s);
  b.loop.publish_state(b.now);
  CHECK(b.state.load().tx_queue.underflow - s.tx_queue.underflow < 5ms);
  b.report.app_buffer = {.at = b.now, .scope = QueueScope::own_ring};
  b.run(1s);
  b.loop.publish_state(b.now);
  CHECK(std::abs((b.state.load().app_buffer.underflow - 1s).count()) < Nanos{5ms}.count());
}

// Bounds: each 4 ms a report of the top of the saw, 400 KiB, 1 ms before a tick; 600 Mbit/s of
// payload are 81 wire bytes per us. The ticks see 1 and 3 ms after the top, whose mean is the saw's
// own: 2 ms of drain below the top.
TEST_CASE("the mean of the lower queue is that of the saw, not of the tops that are reported",
          "[control][rate]") {
  Bench b;
  for (int i = 0; i < 1000; ++i) {
    b.now += 2ms;
    if (i % 2 == 0) {
      b.report.at = b.report.tx_queue.at = b.report.feedback_at = b.now - 1ms;
      b.report.sent_total += kib(10);
      b.path.store(b.report);
    }
    b.loop.tick(b.now);
  }
  b.loop.publish_state(b.now);
  const Bytes mean = kib(400) - mbit_per_s(600) * 2ms * Gain{1514 * 1000 / 1400};
  CHECK(std::abs((b.state.load().tx_queue_mean - mean).count) < kib(3).count);
}

// Bounds: in each 6 ms the disk holds 5 and the link 1, so 833 and 167 permille; 2.1 s after the
// last of it nothing of it is left. One state interval (20 ms) of slack: 10 permille.
TEST_CASE("the share of the last 2 s says what the bottleneck is, where single ticks differ",
          "[control][rate]") {
  Bench b;
  const auto share = [&](Bottleneck bottleneck) {
    return b.state.load().bottleneck_permille[static_cast<std::size_t>(bottleneck)];
  };
  CHECK(share(Bottleneck::tx_queue) == 0);
  for (int i = 0; i < 6000; ++i) {
    b.law.bottleneck = i % 6 == 5 ? Bottleneck::tx_queue : Bottleneck::app_buffer;
    b.report.sent_total += kib(1);
    b.report.at = b.report.tx_queue.at = b.report.feedback_at = b.now += 1ms;
    b.path.store(b.report);
    b.loop.tick(b.now);
  }
  CHECK(std::abs(share(Bottleneck::app_buffer) - 833) <= 10);
  CHECK(std::abs(share(Bottleneck::tx_queue) - 167) <= 10);
  b.law.bottleneck = Bottleneck::tx_queue;
  b.run(2100ms);
  CHECK(share(Bottleneck::tx_queue) == 1000);
  CHECK(share(Bottleneck::app_buffer) == 0);
}

TEST_CASE("the state holds what observers read, as often as 40 times a second, without a trace",
          "[control][rate]") {
  Bench b;
  b.source.has_rate = true;
  int states = 0;
  for (Instant end = b.now + 1s, seen{}; b.now < end;) {
    b.run(b.loop.next_tick_in());
    states += b.state.load().at != seen ? 1 : 0;
    seen = b.state.load().at;
  }
  CHECK(states >= 40);
  const RateState state = b.state.load();
  CHECK(state.grant.rate == b.grant.load().rate);
  CHECK(state.law.buffers[0].drain == mbit_per_s(600));
  CHECK(state.path.srtt == 20ms);
  CHECK(law::fresh(state.facts.phy_rate, state.at) != nullptr);
}

TEST_CASE("facts reach the law while data flows and grow old when it does not", "[control][rate]") {
  Bench b;
  b.source.has_rate = true;
  b.run(300ms);
  CHECK((b.source.reads > 0 &&
         b.loop.next_tick_in() == 2ms));  // on Wi-Fi the rate moves from frame to frame
  REQUIRE(law::fresh(b.law.seen.facts.phy_rate, b.now) != nullptr);
  b.report.offered = {};
  b.report.tx_queue.occupancy = {};
  b.path.store(b.report);
  b.loop.tick(b.now += 2ms);
  const int before = b.source.reads;
  for (int i = 0; i < 50; ++i) b.loop.tick(b.now += 2ms);
  CHECK(b.source.reads == before);
  CHECK(law::fresh(b.law.seen.facts.phy_rate, b.now) == nullptr);
}

TEST_CASE("a law's notice reaches the state and stays", "[control][rate]") {
  Bench b;
  b.law.raised = 4;
  b.run(50ms);
  b.law.raised = 0;
  b.run(50ms);
  b.loop.publish_state(b.now);
  CHECK(b.state.load().notices == 4);
}

TEST_CASE("the control thread ticks, and ends with a last state", "[control][rate]") {
  Bench b;
  RateLoop loop{b.law, {b.path, b.limits, b.grant, b.state}, nullptr};
  auto thread = start_rate_thread(loop);
  REQUIRE(thread);
  b.path.store(b.report);
  const Instant began = monotonic_now();
  while (b.grant.load().rate != mbit_per_s(600) && monotonic_now() - began < 20s) ::usleep(1000);
  CHECK(b.grant.load().rate == mbit_per_s(600));
  thread.value().request_stop();
  thread.value().join();
  CHECK(b.state.load().grant.rate == mbit_per_s(600));
  CHECK(b.state.load().path.offered == mib(1));
}

}  // namespace
}  // namespace onehop::rate
