// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Sender: probes, pings, silence, and a link that is gone for a while.
#include <catch2/catch.hpp>

#include "tests/engine/transfer/sender_bench.hpp"

using namespace onehop;
using namespace onehop::transfer;
using wire::Violation;

TEST_CASE("N11 the tail probe waits for our own queue, then doubles its wait up to a second") {
  SenderBench bench;
  bench.lend(0, 5000);
  bench.start();
  REQUIRE(bench.send().size() == 4);
  const auto play = [&](Nanos span, Bytes own_queue) {
    std::vector<Nanos> probes;
    Nanos last{0};
    for (Nanos at{0}; at < span; at += 1ms, bench.now += 1ms) {
      bench.sender.tick(bench.now, own_queue);
      if (bench.send().empty()) continue;
      probes.push_back(at - last);
      last = at;
    }
    return probes;
  };
  CHECK(play(3s, Bytes{1}).empty());
  CHECK(bench.sender.totals().probes == 0);
  const auto waits = play(10s, Bytes{0});
  REQUIRE(waits.size() >= 8);
  CHECK(waits.size() <= 16);
  for (std::size_t i = 1; i < waits.size(); ++i) {
    CHECK(waits[i] >= std::min<Nanos>(waits[i - 1] * 2 - 2ms, 990ms));
    CHECK(waits[i] <= 1010ms);
  }
  CHECK(bench.sender.totals().probes == waits.size());
  CHECK(bench.sender.totals().packets_lost == 0);  // a probe is no loss
}

TEST_CASE("no probe while new data may be sent, while paused, or before the start") {
  SenderBench bench;
  bench.lend(0);
  bench.start();
  REQUIRE(bench.send(4).size() == 4);
  bench.now += 5s;
  bench.sender.tick(bench.now, Bytes{0});
  CHECK(bench.sender.totals().probes == 0);
  (void)bench.send();
  bench.sender.pause();
  bench.now += 5s;
  bench.sender.tick(bench.now, Bytes{0});
  bench.sender.tick(bench.now + 5s, Bytes{0});
  CHECK(bench.sender.totals().probes == 0);
  CHECK(bench.send().empty());
}

TEST_CASE("N11 a window that fills up during a blackhole is repaired after it") {
  // Everything in the window is lost, so that the receiver knows no number of it: only a new one can make it speak.
  SenderBench bench{{.in_flight_max = 64}};
  bench.lend(0);
  bench.sender.end_of_files();
  bench.start();
  const auto first = bench.send(5);
  const std::uint64_t known = first.back().header.packet_number;
  REQUIRE(bench.tell(1, known) == Violation::none);
  for (int i = 0; i < 5000; ++i, bench.now += 1ms) {  // the blackhole
    bench.sender.tick(bench.now, Bytes{0});
    (void)bench.send();
  }
  FramePlan plan;
  bool has_sent = false;
  for (int i = 0; i < 3000 && !has_sent; ++i, bench.now += 1ms) {
    if (i % 100 == 0) REQUIRE(bench.tell(known, known) == Violation::none);
    bench.sender.tick(bench.now, Bytes{0});
    has_sent = bench.sender.next(bench.now, true, plan);
  }
  REQUIRE(has_sent);
  REQUIRE(bench.tell(known, plan.header.packet_number, {{known + 1, plan.header.packet_number - 1}}) == Violation::none);
  CHECK(bench.send().size() > 30);
}

TEST_CASE("a new start of silence: the session is silent only after the limit") {
  SenderBench bench;
  CHECK_FALSE(bench.sender.is_silent(bench.now + 100s));
  bench.start();
  CHECK_FALSE(bench.sender.is_silent(bench.now + 30s));
  CHECK(bench.sender.is_silent(bench.now + 30s + 1ns));
  bench.now += 20s;
  (void)bench.tell(0, 0, {}, false);
  CHECK_FALSE(bench.sender.is_silent(bench.now + 30s));
  bench.sequence = 0;
  bench.now += 20s;
  (void)bench.tell(0, 0, {}, false);  // stale: no sign of life
  CHECK(bench.sender.is_silent(bench.now + 11s));
}

TEST_CASE("N5 absurd PONGs give no round trip") {
  SenderBench bench;
  bench.start();
  FramePlan plan;
  REQUIRE(bench.sender.next(bench.now, false, plan));
  REQUIRE(plan.header.type == wire::FrameType::ping);
  bench.sender.on_pong(bench.now + 1ms, {.id = plan.ping.id + 1});                  // never asked
  bench.sender.on_pong(bench.now + 1ms, {.id = 0});
  CHECK(bench.sender.srtt() == 0ns);
  bench.sender.on_pong(bench.now + 1ms, {.id = plan.ping.id, .hold_ns = wire::hold_ns_max});  // held longer than it took
  CHECK(bench.sender.srtt() == 0ns);
  bench.now += 1s;
  REQUIRE(bench.sender.next(bench.now, false, plan));
  bench.sender.on_pong(bench.now, {.id = plan.ping.id});                            // zero
  CHECK(bench.sender.srtt() == 0ns);
  bench.now += 1s;
  REQUIRE(bench.sender.next(bench.now, false, plan));
  bench.sender.on_pong(bench.now + 3ms, {.id = plan.ping.id, .hold_ns = 1'000'000});
  CHECK(bench.sender.srtt() == 2ms);
  bench.sender.on_pong(bench.now + 9ms, {.id = plan.ping.id});                      // twice
  CHECK(bench.sender.srtt() == 2ms);
}

TEST_CASE("N5 absurd feedback moves nothing but what it may: credit, never the window") {
  SenderBench bench;
  bench.lend(0);
  bench.start();
  bench.credit = wire::counter_max;
  const auto plans = bench.send(10);
  wire::Feedback feedback;
  feedback.sequence = wire::counter_max;
  feedback.has_received = true;
  feedback.from = plans.back().header.packet_number;
  feedback.largest = plans.back().header.packet_number;
  feedback.receive_delay_ns = wire::receive_delay_ns_max;
  feedback.credit_bytes_total = feedback.received_bytes_total = feedback.ce_packets_total = wire::counter_max;
  feedback.rate_offer_bytes_per_s = wire::rate_bytes_per_s_max;
  feedback.rx_ring = feedback.app_buffer = {wire::capacity_bytes_max, wire::counter_max, wire::capacity_bytes_max, true};
  REQUIRE(bench.sender.on_feedback(bench.now, feedback) == Violation::none);
  CHECK(bench.sender.in_flight() == plans.back().header.packet_number - plans.front().header.packet_number + 1 + 1);
  CHECK(bench.sender.srtt() == 0ns);
  const std::size_t rest = bench.send().size();
  CHECK(rest + plans.size() == (block_bytes + bench.sender.frame_payload_bytes() - 1) / bench.sender.frame_payload_bytes());
}

TEST_CASE("unanswered PINGs become rarer") {
  SenderBench bench;
  bench.start();
  int pings = 0;
  for (int i = 0; i < 30'000; ++i, bench.now += 1ms) {
    FramePlan plan;
    if (bench.sender.next(bench.now, false, plan)) ++pings;
  }
  CHECK(pings >= 29);
  CHECK(pings <= 60);
}
