// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// What the laws are made of, each on readings made by hand.
#include <catch2/catch.hpp>

#include "control/law/ack_spacing.hpp"
#include "control/law/aggregate_meter.hpp"
#include "control/law/capacity.hpp"
#include "control/law/loss_brake.hpp"
#include "control/law/queue_view.hpp"
#include "tests/control/law/law_sample.hpp"

namespace onehop::law {
namespace {

using test::fact;
using test::SampleMaker;

TEST_CASE("a fact lives for two periods, one without a period for ever, and absent is not zero", "[control][law][facts]") {
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

TEST_CASE("the port's own bytes go before the MAC's, and the MAC's before a dump", "[control][law][facts]") {
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
  make.sample.lower_queue = {.occupancy = {7000}, .scope = QueueScope::lower_queue};
  CHECK(view_queue(make.sample).sensor == QueueSensor::qdisc);
  make.sample.lower_queue_age = 9ms;
  CHECK(view_queue(make.sample).sensor == QueueSensor::none);
}

/// feed gives `rounds` windows of steps of 300 us to a meter; every second one carries an aggregate. An exchange is 600 us.
Bytes feed(AggregateMeter& meter, Bytes burst, Bytes standing, int rounds, Bytes stood = mib(4)) {
  static Instant at{1s};
  for (int i = 0; i < rounds * 32; ++i) {
    at += 300us;
    meter.add({.at = at, .tx_step = i % 2 == 0 ? burst : Bytes{0}, .tx_step_stood = stood, .tx_step_span = 300us}, standing, 600us);
  }
  return meter.learnt();
}

TEST_CASE("the aggregate limit is the largest burst that left at once", "[control][law][aggregate]") {
  AggregateMeter meter{{}};
  CHECK(meter.learnt() == Bytes{65536});
  CHECK(feed(meter, kib(128), kib(256), 10).count == Approx(128 * 1024).epsilon(0.01));
  CHECK(feed(meter, kib(32), kib(128), 40).count == Approx(32 * 1024).epsilon(0.02));
  CHECK(meter.mean_burst() == kib(32));
}

// Bounds: without this rule L would fall to the floor: a short queue makes short bursts.
TEST_CASE("a burst that took all there was lowers nothing", "[control][law][aggregate]") {
  AggregateMeter meter{{}};
  CHECK(feed(meter, kib(40), kib(48), 40) == Bytes{65536});
}

TEST_CASE("a queue that ran dry between two looks is told of, and only in its window", "[control][law][aggregate]") {
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
  for (int i = 0; i < 2000; ++i) meter.add({.at = at += 300us, .tx_step = {15'140}, .tx_step_stood = kib(128), .tx_step_span = 300us}, kib(128), 1ms);
  CHECK(meter.learnt().count == Approx(16 * 1024).epsilon(0.05));
  CHECK(meter.mean_burst() == Bytes{0});
}

TEST_CASE("a negotiated limit replaces the learnt one, and no aggregate is longer than 5.484 ms", "[control][law][aggregate]") {
  const AggregateMeter meter{{}};
  const Bytes negotiated = mib(1);
  CHECK(meter.limit(&negotiated, nullptr, mbit_per_s(4000)) == mib(1));
  CHECK(meter.limit(&negotiated, nullptr, mbit_per_s(100)) == mbit_per_s(100) * 5'484us);
  CHECK(meter.limit(nullptr, nullptr, mbit_per_s(4000)) == Bytes{65536});
  // Two senders share the air: each drains half of what its aggregates carry.
  const BytesPerSecond phy = mbit_per_s(100);
  CHECK(meter.limit(&negotiated, &phy, mbit_per_s(45)) == mbit_per_s(95) * 5'484us);
}

// Bounds: 3 % more may be two aggregates in one step now and then, and costs at most 1 % where it is not.
TEST_CASE("aggregates that are longer than the negotiated limit correct it", "[control][law][aggregate]") {
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

TEST_CASE("alpha is the step of the physical rate, clamped, and 1 while either is unknown", "[control][law][capacity]") {
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
  CHECK(exchange_time(facts, Instant{1s}, Bytes{65'536}, {}).count() == Approx(647'000).epsilon(0.01));
  facts.exchange = fact(Nanos{430us}, Instant{1s});
  CHECK(exchange_time(facts, Instant{1s}, Bytes{65'536}, {}) == 430us);
}

// Each report takes a turn on the air, and a file is often over before the link has proven itself.
//= [WDTCP] acknowledgement removal type=test
TEST_CASE("on Wi-Fi a report stands for bytes, and what the MAC fails is asked for once", "[control][law][acks]") {
  AckSpacing acks;
  SampleMaker make;
  make.sample.path.srtt = 2ms;
  make.sample.facts.medium = Medium::wifi;
  make.sample.facts.mac = fact(MacCounters{}, make.sample.at, 100ms);
  const auto send = [&](BytesPerSecond rate, Nanos span) {
    AckSpacing::Wish wish;
    for (Nanos t{0}; t < span; t += 10ms) {
      make.step(10ms, rate * 10ms, kib(64));
      make.sample.facts.mac->at = make.sample.at;
      wish = acks.step(make.sample);
    }
    return wish;
  };
  CHECK(send(mbit_per_s(1200), 10ms).interval == 50ms);  // nothing known against it, no rate yet
  CHECK(send(mbit_per_s(1200), 1s).interval == 50ms);    // 47 ms would do
  const Nanos slower = send(mbit_per_s(280), 1s).interval;  // 7 MB: 200 ms
  CHECK(slower > 190ms);
  CHECK(slower < 210ms);
  make.sample.path.rx_ring.capacity = Bytes{25'000'000};
  const Nanos larger = send(mbit_per_s(280), 1s).interval;  // 10 MB: 286 ms
  CHECK(larger > 276ms);
  CHECK(larger < 296ms);
  make.sample.path.rx_ring.capacity = {};
  CHECK(send(mbit_per_s(20), 1s).interval == 400ms);
  make.sample.facts.mac->value.tx_failed_total = 3;
  const auto failed = send(mbit_per_s(1200), 1s);
  CHECK(failed.interval == 50ms);
  CHECK(failed.nack_request_id == 1);
  ++make.sample.path.rx_ring.refused_total;  // the receiver dropped: no MAC knows of that
  CHECK(send(mbit_per_s(1200), 10ms).interval == 0ns);
  CHECK(send(mbit_per_s(1200), 200ms).interval == 50ms);
}

//= [WDTCP] acknowledgement removal type=test
TEST_CASE("feedback is stretched while the MAC fails nothing, and asked for at once when it does", "[control][law][acks]") {
  AckSpacing acks;
  SampleMaker make;
  make.sample.path.srtt = 10ms;
  make.sample.facts.medium = Medium::unknown;
  const auto run = [&](Nanos span) {
    AckSpacing::Wish wish;
    for (Nanos t{0}; t < span; t += 1ms) {
      make.step(1ms, {1514}, kib(64));
      if (make.sample.facts.mac) make.sample.facts.mac->at = make.sample.at;
      wish = acks.step(make.sample);
    }
    return wish;
  };
  CHECK(run(2s).interval == 0ns);  // no counters
  make.sample.facts.mac = fact(MacCounters{}, make.sample.at, 100ms);
  CHECK(run(50ms).interval == 0ns);
  CHECK(run(100ms).interval == 10ms);
  CHECK(run(1s).interval == 20ms);
  make.sample.facts.mac->value.tx_failed_total = 1;
  const auto failed = run(1ms);
  CHECK(failed.interval == 0ns);
  CHECK(failed.nack_request_id == 1);
  CHECK(run(150ms).interval == 10ms);
  ++make.sample.path.rx_ring.refused_total;  // the receiver dropped: no MAC knows of that
  const auto dropped = run(1ms);
  CHECK(dropped.interval == 0ns);
  CHECK(dropped.nack_request_id == 1);
  run(2s);
  make.sample.facts.mac.reset();
  CHECK(run(1ms).interval == 0ns);
}

// Goal:   a report costs a turn on the air whether the driver counts or not, and may where nobody says what the medium is.
// Method: 600 Mbit/s for two seconds without MAC counters, by what is known of the medium and how long the peer's ring is.
TEST_CASE("reports are spaced where they may cost air, counters or not", "[control][law][acks]") {
  const auto [medium, ring, from, to] = GENERATE(table<Medium, Bytes, Nanos, Nanos>({
      {Medium::wifi, Bytes{25'000'000}, 90ms, 140ms},     // 7 to 10 MB
      {Medium::unknown, Bytes{25'000'000}, 25ms, 25ms},
      {Medium::unknown, Bytes{1'500'000}, 3ms, 5ms},      // a fifth of a short ring
      {Medium::unknown, Bytes{}, 0ns, 0ns},               // nobody says how long it is
      {Medium::wired, Bytes{25'000'000}, 0ns, 0ns}}));
  CAPTURE(static_cast<int>(medium), ring.count);
  AckSpacing acks;
  SampleMaker make;
  make.sample.path.srtt = 2ms;
  make.sample.facts.medium = medium;
  make.sample.path.rx_ring.capacity = ring;
  AckSpacing::Wish wish;
  const auto send = [&](Nanos span) {
    for (Nanos t{0}; t < span; t += 10ms) {
      make.step(10ms, mbit_per_s(600) * 10ms, kib(64));
      wish = acks.step(make.sample);
    }
  };
  send(2s);
  CHECK(wish.interval >= from);
  CHECK(wish.interval <= to);
  ++make.sample.path.rx_ring.refused_total;  // the receiver dropped: rare reports would hide why
  send(10ms);
  CHECK(wish.interval == 0ns);
  CHECK(wish.nack_request_id == 0);
}

// Goal:   what an outage lost is nobody's overload.
// Method: full flow at no loss; an outage in which nothing is told for half a second; then one report that tells 1,000 lost.
// Bounds: no cap. The same report without an outage is one.
TEST_CASE("the brake judges nothing that an outage lost", "[control][law][brake]") {
  const bool is_outage = GENERATE(true, false);
  CAPTURE(is_outage);
  LossBrake brake;
  LossReading reading{.at = Instant{1s}, .srtt = 4ms, .wanted = mbit_per_s(600), .rate_min = {150'000}};
  std::optional<BytesPerSecond> cap;
  const auto tell = [&](std::uint64_t told, std::uint64_t lost) {
    reading.at += 4ms;
    reading.packets_told_total += told;
    reading.packets_lost_total += lost;
    cap = brake.step(reading);
  };
  for (int i = 0; i < 100; ++i) tell(1000, 0);
  REQUIRE_FALSE(cap);
  reading.is_outage = is_outage;
  for (int i = 0; i < 125; ++i) tell(0, 0);
  tell(1000, 1000);
  reading.is_outage = false;
  for (int i = 0; i < 3; ++i) tell(300, 0);
  CHECK(cap.has_value() != is_outage);
}

struct BrakeBench {
  LossBrake brake;
  MacCounters mac;
  LossReading reading{.at = Instant{1s}, .srtt = 4ms, .wanted = mbit_per_s(600), .drain = mbit_per_s(600), .rate_min = {150'000}};
  bool has_mac = true;
  std::optional<BytesPerSecond> cap;
  void run(Nanos span, int lost_permille, int failed_permille) {
    for (Nanos t{0}; t < span; t += 4ms) {
      reading.at += 4ms;
      reading.packets_told_total += 1000;
      reading.packets_lost_total += static_cast<std::uint64_t>(lost_permille);
      mac.tx_frames_total += 1000;
      mac.tx_failed_total += static_cast<std::uint64_t>(failed_permille);
      reading.mac = has_mac ? &mac : nullptr;
      cap = brake.step(reading);
    }
  }
};

/// follow sends at the brake's cap, or at 600 Mbit/s where there is none; `lost` tells what share of `packets` is lost.
template <class Lost>
BytesPerSecond follow(BrakeBench& b, Nanos span, Lost lost) {
  constexpr std::int64_t packet_bytes = 1500;
  double carry = 0;
  BytesPerSecond least = mbit_per_s(600);
  for (Nanos t{0}; t < span; t += 4ms) {
    const BytesPerSecond rate = b.cap.value_or(mbit_per_s(600));
    const auto packets = static_cast<std::uint64_t>((rate * 4ms).count / packet_bytes);
    carry += static_cast<double>(packets) * lost(rate);
    const auto whole = static_cast<std::uint64_t>(carry);
    carry -= static_cast<double>(whole);
    b.reading.at += 4ms;
    b.reading.packets_told_total += packets;
    b.reading.packets_lost_total += whole;
    b.cap = b.brake.step(b.reading);
    least = std::min(least, b.cap.value_or(least));
  }
  return least;
}

//= [FWP] loss discrimination type=test
// Goal:   loss that sets in and does not depend on the rate costs a trial of the brake and no more, for as long as it lasts.
// Bounds: 0.85^5 = 0.44 of the rate at the least (four steps, and one for the window that shows it), free within 200 ms.
TEST_CASE("loss that is the same at any rate is the air's, though the MAC tells nothing", "[control][law][loss]") {
  BrakeBench b;
  b.reading.drain = {};
  const double lost = GENERATE(0.2, 0.4, 0.6);
  CAPTURE(lost);
  (void)follow(b, 1s, [](BytesPerSecond) { return 0.01; });
  REQUIRE_FALSE(b.cap);
  const BytesPerSecond least = follow(b, 200ms, [&](BytesPerSecond) { return lost; });
  CHECK(least.count >= (mbit_per_s(600) * Gain{430}).count);
  CHECK_FALSE(b.cap);
  CHECK(follow(b, 30s, [&](BytesPerSecond) { return lost; }) == mbit_per_s(600));
}

//= [FWP] loss discrimination type=test
// Goal:   a trial of the brake is judged from 0.6 of the rate that it began at, neither sooner nor only far below.
// Method: windows of packets by hand, a fifth of each lost whatever the rate; 0.62 and 0.58 of the first window's packets.
// Bounds: four steps of 0.85 are 0.52, three are 0.61: 0.6 lies between them.
TEST_CASE("a trial of the brake is judged at six tenths of its rate and not above", "[control][law][loss]") {
  BrakeBench b;
  b.has_mac = false;
  b.reading.drain = {};
  b.run(400ms, 0, 0);
  const auto window = [&](std::uint64_t packets) {
    b.reading.at += 4ms;
    b.reading.packets_told_total += packets;
    b.reading.packets_lost_total += packets / 5;
    b.cap = b.brake.step(b.reading);
  };
  window(1000);
  REQUIRE(b.cap);
  for (int i = 0; i < 20; ++i) {
    window(620);
    CHECK(b.cap);
  }
  window(580);
  CHECK_FALSE(b.cap);
}

// Goal:   what a channel cannot take is an overload, however the trial ends: the brake holds.
// Bounds: after a second, at most 15 % above the channel: a window has 200 packets, so 1.5 F + 3 sigma is 9 % where F is 2 %, and
//         two releases fit between two verdicts. Measured: 12.1 % at 60 Mbit/s, less at the others.
TEST_CASE("loss that goes away with the rate keeps the brake", "[control][law][loss]") {
  BrakeBench b;
  b.reading.drain = {};
  const std::int64_t channel_mbit = GENERATE(60, 200, 400);
  CAPTURE(channel_mbit);
  (void)follow(b, 1s, [](BytesPerSecond) { return 0.0; });
  const auto beyond = [&](BytesPerSecond rate) {
    return std::max(0.0, 1.0 - static_cast<double>(mbit_per_s(channel_mbit).count) / static_cast<double>(rate.count));
  };
  (void)follow(b, 1s, beyond);
  for (int i = 0; i < 1000; ++i) {
    (void)follow(b, 4ms, beyond);
    REQUIRE(b.cap);
    CHECK(b.cap->count <= (mbit_per_s(channel_mbit) * Gain{1150}).count);
  }
}

// Goal:   a slice that lost little by chance is forgotten with the rest of its ten seconds, at any rate.
TEST_CASE("what the path lost long ago is no measure", "[control][law][loss]") {
  BrakeBench b;
  b.has_mac = false;
  b.reading.drain = {};
  b.run(1004ms, 10, 0);  // to the end of a slice
  b.reading.at += 11s;
  b.run(1s, 300, 0);
  CHECK_FALSE(b.cap);
}

//= [FWP] loss discrimination type=test
TEST_CASE("loss that the MAC explains moves no rate, loss beyond it brakes down to what arrives", "[control][law][loss]") {
  BrakeBench b;
  b.run(1s, 50, 50);
  CHECK_FALSE(b.cap);
  b.run(1s, 250, 50);
  REQUIRE(b.cap);
  CHECK(b.cap->count == Approx(static_cast<double>((mbit_per_s(600) * Gain{750} * Gain{850}).count)).epsilon(0.01));
  b.run(1s, 50, 50);
  CHECK_FALSE(b.cap);  // 2 % per round trip
}

TEST_CASE("without MAC counters the path's own loss is its least of 10 s", "[control][law][loss]") {
  BrakeBench b;
  b.has_mac = false;
  b.run(1s, 100, 0);
  CHECK_FALSE(b.cap);
  b.run(200ms, 400, 0);
  CHECK(b.cap);
}

TEST_CASE("drops in the receiver's kernel brake without a floor", "[control][law][loss]") {
  BrakeBench b;
  b.run(200ms, 0, 0);
  for (int i = 0; i < 30; ++i) {
    ++b.reading.receiver_drops_total;
    b.run(4ms, 0, 0);
  }
  REQUIRE(b.cap);
  CHECK(*b.cap < mbit_per_s(10));
  CHECK(*b.cap >= BytesPerSecond{150'000});
}

}  // namespace
}  // namespace onehop::law
