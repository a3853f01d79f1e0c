// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// What the laws are made of, each on readings made by hand.
#include <catch2/catch.hpp>

#include "control/law/estimate/aggregate_meter.hpp"
#include "control/law/estimate/capacity.hpp"
#include "control/law/estimate/queue_view.hpp"
#include "control/law/term/ack_frequency.hpp"
#include "tests/control/law/law_sample.hpp"

namespace onehop::law {
namespace {

using test::fact;
using test::SampleMaker;

TEST_CASE("a fact lives for two periods, one without a period for ever, and absent is not zero",
          "[control][law][facts]") {
  const Instant at{5s};
  MaybeFact<Bytes> reading;
  CHECK(fresh(reading, at) == nullptr);
  reading = fact(Bytes{0}, at, 20ms);
  REQUIRE(fresh(reading, at + 40ms) != nullptr);
  CHECK(*fresh(reading, at + 40ms) == Bytes{0});
  CHECK(fresh(reading, at + 41ms) == nullptr);
  reading->period = 0ns;
  CHECK(fresh(reading, at + 1h) != nullptr);
}

TEST_CASE("the port's own bytes go before the MAC's, and the MAC's before a dump",
          "[control][law][facts]") {
  SampleMaker make;
  make.step(1ms, {0}, {9000});
  CHECK(view_queue(make.sample).sensor == QueueSensor::port);
  CHECK_FALSE(view_queue(make.sample).is_exact);
  make.know({4000});
  CHECK(view_queue(make.sample).is_exact);
  CHECK(view_queue(make.sample).sensor == QueueSensor::mac);
  CHECK(view_queue(make.sample).queue.occupancy == Bytes{9000});
  make.sample.path.tx_queue.scope = QueueScope::own_ring;
  make.sample.facts.exact_queue->value.foreign = {1000};
  CHECK(view_queue(make.sample).queue.occupancy == Bytes{3000});
  CHECK_FALSE(view_queue(make.sample).has_push_back);
  make.sample.at += 3ms;  // two periods and more
  CHECK(view_queue(make.sample).queue.scope == QueueScope::none);
  make.sample.facts.lower_queue = {
      {.queue = {.occupancy = {7000}, .scope = QueueScope::lower_queue},
       .sensor = QueueSensor::qdisc},
      make.sample.at,
      4ms};
  CHECK(view_queue(make.sample).sensor == QueueSensor::qdisc);
  make.sample.at += 9ms;
  CHECK(view_queue(make.sample).sensor == QueueSensor::none);
}

/// feed gives `rounds` windows of steps of 300 us to a meter; every second one carries an
/// aggregate. An exchange is 600 us.
Bytes feed(AggregateMeter& meter, Bytes burst, Bytes standing, int rounds, Bytes stood = mib(4)) {
  static Instant at{1s};
  for (int i = 0; i < rounds * 32; ++i) {
    at += 300us;
    meter.add({.at = at,
               .tx_step = i % 2 == 0 ? burst : Bytes{0},
               .tx_step_backlog = stood,
               .tx_step_span = 300us},
              standing, 600us);
  }
  return meter.limit(nullptr, nullptr, {});
}

TEST_CASE("the aggregate limit is the largest burst that left at once",
          "[control][law][aggregate]") {
  AggregateMeter meter{{}};
  CHECK(meter.limit(nullptr, nullptr, {}) == Bytes{65536});
  CHECK(feed(meter, kib(128), kib(256), 10).count == Approx(128 * 1024).epsilon(0.01));
  CHECK(feed(meter, kib(32), kib(128), 40).count == Approx(32 * 1024).epsilon(0.02));
  CHECK(meter.mean_burst() == kib(32));
}

// Bounds: without this rule L would fall to the floor: a short queue makes short bursts.
TEST_CASE("a burst that took all there was lowers nothing", "[control][law][aggregate]") {
  AggregateMeter meter{{}};
  CHECK(feed(meter, kib(40), kib(48), 40) == Bytes{65536});
}

TEST_CASE("a queue that ran dry between two looks is told of, and only in its window",
          "[control][law][aggregate]") {
  AggregateMeter meter{{}};
  (void)feed(meter, kib(64), kib(64), 1, kib(65));
  CHECK_FALSE(meter.has_run_dry());
  (void)feed(meter, kib(64), kib(64), 1, kib(64));
  CHECK(meter.has_run_dry());
  CHECK(meter.mean_burst() == kib(64));
  (void)feed(meter, kib(64), kib(64), 1, kib(65));
  CHECK_FALSE(meter.has_run_dry());
}

TEST_CASE("a link that sends frame by frame has no aggregates", "[control][law][aggregate]") {
  AggregateMeter meter{{}};
  Instant at{1s};
  for (int i = 0; i < 2000; ++i)
    meter.add({.at = at += 300us,
               .tx_step = {15'140},
               .tx_step_backlog = kib(128),
               .tx_step_span = 300us},
              kib(128), 1ms);
  CHECK(meter.limit(nullptr, nullptr, {}).count == Approx(16 * 1024).epsilon(0.05));
  CHECK(meter.mean_burst() == Bytes{0});
}

TEST_CASE("a negotiated limit replaces the learnt one, and no aggregate is longer than 5.484 ms",
          "[control][law][aggregate]") {
  const AggregateMeter meter{{}};
  const Bytes negotiated = mib(1);
  CHECK(meter.limit(&negotiated, nullptr, mbit_per_s(4000)) == mib(1));
  CHECK(meter.limit(&negotiated, nullptr, mbit_per_s(100)) == mbit_per_s(100) * 5'484us);
  CHECK(meter.limit(nullptr, nullptr, mbit_per_s(4000)) == Bytes{65536});
  // Two senders share the air: each drains half of what its aggregates carry.
  const BytesPerSecond phy = mbit_per_s(100);
  CHECK(meter.limit(&negotiated, &phy, mbit_per_s(45)) == mbit_per_s(95) * 5'484us);
}

// Bounds: 3 % more may be two aggregates in one step now and then, and costs at most 1 % where it
// is not.
TEST_CASE("aggregates that are longer than the negotiated limit correct it",
          "[control][law][aggregate]") {
  AggregateMeter meter{{}};
  const Bytes told = kib(128);
  (void)feed(meter, kib(132), mib(1), 10);
  CHECK(meter.limit(&told, nullptr, mbit_per_s(4000)) == told);
  (void)feed(meter, kib(250), mib(1), 6);
  CHECK(meter.limit(&told, nullptr, mbit_per_s(4000)).count == Approx(250 * 1024).epsilon(0.03));
  (void)feed(meter, kib(100), kib(110), 40);  // a short queue makes short bursts
  CHECK(meter.limit(&told, nullptr, mbit_per_s(4000)).count == Approx(250 * 1024).epsilon(0.03));
  (void)feed(meter, kib(100), kib(400), 60);  // the link's own doing
  CHECK(meter.limit(&told, nullptr, mbit_per_s(4000)) == told);
}

TEST_CASE("alpha is the step of the physical rate, clamped, and 1 while either is unknown",
          "[control][law][capacity]") {
  CapacityStep step{{}};
  const BytesPerSecond slow = mbit_per_s(100), fast = mbit_per_s(1000);
  CHECK(step.step(nullptr) == Gain{1000});
  CHECK(step.step(&slow) == Gain{1000});
  CHECK(step.step(&fast) == Gain{4000});
  CHECK(step.step(&fast) == Gain{1000});
  CHECK(step.step(nullptr) == Gain{1000});
  CHECK(step.step(&slow) == Gain{1000});
  CapacityStep wide{{.threshold_permille = 200}};
  const BytesPerSecond a = mbit_per_s(1000), b = mbit_per_s(850), c = mbit_per_s(750);
  CHECK(wide.step(&a) == Gain{1000});
  CHECK(wide.step(&b) == Gain{1000});
  CHECK(wide.step(&c) == Gain{750});  // small changes add up
}

TEST_CASE("an exchange is the fixed part and an aggregate's air", "[control][law][capacity]") {
  LinkFacts facts;
  CHECK(exchange_time(facts, Instant{1s}, Bytes{65'536}, {}) == exchange_overhead);
  facts.phy_rate = fact(mbit_per_s(1201), Instant{1s});
  CHECK(exchange_time(facts, Instant{1s}, Bytes{65'536}, {}).count() ==
        Approx(647'000).epsilon(0.01));
  facts.exchange = fact(Nanos{430us}, Instant{1s});
  CHECK(exchange_time(facts, Instant{1s}, Bytes{65'536}, {}) == 430us);
}

// Each report takes a turn on the air, and a file is often over before the link has proven itself.
//= [WDTCP] acknowledgement removal type=test
TEST_CASE("on Wi-Fi a report stands for bytes, and what the MAC fails is asked for once",
          "[control][law][acks]") {
  AckFrequency acks;
  Bottleneck bottleneck = Bottleneck::tx_queue;
  SampleMaker make;
  make.sample.path.srtt = 2ms;
  make.sample.facts.medium = Medium::wifi;
  make.sample.facts.mac = fact(MacCounters{}, make.sample.at, 100ms);
  const auto send = [&](BytesPerSecond rate, Nanos span) {
    Nanos interval{0};
    for (Nanos t{0}; t < span; t += 10ms) {
      make.step(10ms, rate * 10ms, kib(64));
      make.sample.facts.mac->at = make.sample.at;
      interval = acks.step(make.sample, bottleneck);
    }
    return interval;
  };
  CHECK(send(mbit_per_s(1200), 10ms) == 50ms);     // nothing known against it, no rate yet
  CHECK(send(mbit_per_s(1200), 1s) == 50ms);       // 47 ms would do
  const Nanos slower = send(mbit_per_s(280), 1s);  // 7 MB: 200 ms
  CHECK(slower > 190ms);
  CHECK(slower < 210ms);
  make.sample.path.rx_ring.capacity = Bytes{25'000'000};
  const Nanos larger = send(mbit_per_s(280), 1s);  // 10 MB: 286 ms
  CHECK(larger > 276ms);
  CHECK(larger < 296ms);
  make.sample.path.rx_ring.capacity = {};
  CHECK(send(mbit_per_s(20), 1s) == 400ms);
  make.sample.facts.mac->value.tx_failed_total = 3;
  CHECK(send(mbit_per_s(1200), 1s) == 50ms);
  CHECK(acks.requests_total() == 1);
  ++make.sample.path.rx_ring.refused_total;  // the receiver dropped: no MAC knows of that
  CHECK(send(mbit_per_s(1200), 10ms) == 0ns);
  CHECK(send(mbit_per_s(1200), 200ms) == 50ms);
}

// Goal:   a buffer of the receiver that holds the rate is steered by fresh reports, on any medium;
// the air is not what is short then.
TEST_CASE(
    "reports come at the default while the receiver's buffers hold the rate, and for a while after",
    "[control][law][acks]") {
  const Medium medium = GENERATE(Medium::wifi, Medium::unknown);
  const Bottleneck holds = GENERATE(Bottleneck::rx_ring, Bottleneck::app_buffer);
  AckFrequency acks;
  Bottleneck bottleneck = Bottleneck::tx_queue;
  SampleMaker make;
  make.sample.path.srtt = 2ms;
  make.sample.facts.medium = medium;
  make.sample.path.rx_ring.capacity = Bytes{25'000'000};
  const auto send = [&](Nanos span) {
    Nanos interval{0};
    for (Nanos t{0}; t < span; t += 10ms) {
      make.step(10ms, mbit_per_s(600) * 10ms, kib(64));
      interval = acks.step(make.sample, bottleneck);
    }
    return interval;
  };
  CHECK(send(2s) > 50ms);
  bottleneck = holds;
  CHECK(send(500ms) == 0ns);
  bottleneck = Bottleneck::tx_queue;
  CHECK(send(90ms) == 0ns);
  CHECK(send(100ms) > 50ms);
}

//= [WDTCP] acknowledgement removal type=test
TEST_CASE("feedback is stretched while the MAC fails nothing, and asked for at once when it does",
          "[control][law][acks]") {
  AckFrequency acks;
  Bottleneck bottleneck = Bottleneck::tx_queue;
  SampleMaker make;
  make.sample.path.srtt = 10ms;
  make.sample.facts.medium = Medium::unknown;
  const auto run = [&](Nanos span) {
    Nanos interval{0};
    for (Nanos t{0}; t < span; t += 1ms) {
      make.step(1ms, {1514}, kib(64));
      if (make.sample.facts.mac) make.sample.facts.mac->at = make.sample.at;
      interval = acks.step(make.sample, bottleneck);
    }
    return interval;
  };
  CHECK(run(2s) == 0ns);  // no counters
  make.sample.facts.mac = fact(MacCounters{}, make.sample.at, 100ms);
  CHECK(run(50ms) == 0ns);
  CHECK(run(100ms) == 10ms);
  CHECK(run(1s) == 20ms);
  make.sample.facts.mac->value.tx_failed_total = 1;
  CHECK(run(1ms) == 0ns);
  CHECK(acks.requests_total() == 1);
  CHECK(run(150ms) == 10ms);
  ++make.sample.path.rx_ring.refused_total;  // the receiver dropped: no MAC knows of that
  CHECK(run(1ms) == 0ns);
  CHECK(acks.requests_total() == 1);
  run(2s);
  make.sample.facts.mac.reset();
  CHECK(run(1ms) == 0ns);
}

// Goal:   where nobody tells the medium, loss is repaired by reports: one a round trip, until it is
// over. Wi-Fi asks for what it failed.
TEST_CASE("a loss brings a report a round trip where nobody tells the medium",
          "[control][law][acks]") {
  const bool is_wifi = GENERATE(false, true);
  AckFrequency acks;
  SampleMaker make;
  make.sample.path.srtt = 12ms;
  make.sample.facts.medium = is_wifi ? Medium::wifi : Medium::unknown;
  make.sample.path.rx_ring.capacity = Bytes{75'000'000};
  const auto send = [&](Nanos span) {
    Nanos interval{0};
    for (Nanos t{0}; t < span; t += 10ms) {
      make.step(10ms, mbit_per_s(600) * 10ms, kib(64));
      interval = acks.step(make.sample, Bottleneck::tx_queue);
    }
    return interval;
  };
  const Nanos quiet = send(2s);
  CHECK(quiet >= 100ms);
  ++make.sample.path.packets_lost_total;
  CHECK(send(10ms) == (is_wifi ? quiet : 12ms));
  CHECK(send(80ms) == (is_wifi ? quiet : 12ms));
  CHECK(send(20ms) == quiet);
}

// Goal:   a report costs a turn on the air whether the driver counts or not, and may where nobody
// says what the medium is. Method: 600 Mbit/s for two seconds without MAC counters, by what is
// known of the medium, whether a queue is seen, and how long the
//         peer's ring is.
TEST_CASE("reports are spaced where they may cost air, counters or not", "[control][law][acks]") {
  constexpr QueueScope seen = QueueScope::lower_queue, blind = QueueScope::none;
  const auto [medium, scope, ring, from, to] =
      GENERATE_COPY(table<Medium, QueueScope, Bytes, Nanos, Nanos>(
          {{Medium::wifi, seen, Bytes{25'000'000}, 90ms, 140ms},    // 7 to 10 MB
           {Medium::wifi, blind, Bytes{25'000'000}, 25ms, 25ms},    // the only sensor
           {Medium::unknown, seen, Bytes{25'000'000}, 60ms, 70ms},  // a fifth of the ring
           {Medium::unknown, seen, Bytes{75'000'000}, 100ms, 100ms},
           {Medium::unknown, seen, Bytes{1'500'000}, 3ms, 5ms},
           {Medium::unknown, blind, Bytes{25'000'000}, 25ms, 25ms},
           {Medium::unknown, seen, Bytes{}, 0ns, 0ns},  // nobody says how long it is
           {Medium::wired, seen, Bytes{25'000'000}, 0ns, 0ns}}));
  CAPTURE(static_cast<int>(medium), static_cast<int>(scope), ring.count);
  AckFrequency acks;
  Bottleneck bottleneck = Bottleneck::tx_queue;
  SampleMaker make;
  make.sample.path.srtt = 2ms;
  make.sample.facts.medium = medium;
  make.sample.path.tx_queue.scope = scope;
  make.sample.path.rx_ring.capacity = ring;
  Nanos interval{0};
  const auto send = [&](Nanos span) {
    for (Nanos t{0}; t < span; t += 10ms) {
      make.step(10ms, mbit_per_s(600) * 10ms, kib(64));
      interval = acks.step(make.sample, bottleneck);
    }
  };
  send(2s);
  CHECK(interval >= from);
  CHECK(interval <= to);
  ++make.sample.path.rx_ring.refused_total;  // the receiver dropped: rare reports would hide why
  send(10ms);
  CHECK(interval == 0ns);
  CHECK(acks.requests_total() == 0);
}

}  // namespace
}  // namespace onehop::law
