// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Sender: silence, absurd answers, and a link that is gone for a while.
#include <catch2/catch.hpp>

#include "tests/engine/protocol/rules_bench.hpp"

using namespace onehop;
using namespace onehop::protocol;
using wire::Violation;

TEST_CASE("no probe while new data may be sent, while paused, or before the start") {
  RulesBench bench;
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
  // Everything in the window is lost, so that the receiver knows no number of it: only a new one
  // can make it speak.
  RulesBench bench{{.in_flight_max = 128}};
  bench.lend(0);
  bench.sender.end_of_files();
  bench.start();
  bench.answer_pings(2ms);
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
  REQUIRE(plan.header.type == wire::FrameType::ping);
  bench.sender.on_pong(
      bench.now, {.id = plan.ping.id, .received_bytes = plan.body_bytes + wire::overhead_bytes});
  REQUIRE(bench.tell(known, plan.header.packet_number,
                     {{known + 1, plan.header.packet_number - 1}}) == Violation::none);
  CHECK(bench.send().size() > 60);
}

TEST_CASE("a new start of silence: the session is silent only after the limit") {
  RulesBench bench;
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
  RulesBench bench;
  bench.start();
  FramePlan plan;
  REQUIRE(bench.sender.next(bench.now, false, plan));
  REQUIRE(plan.header.type == wire::FrameType::ping);
  bench.sender.on_pong(bench.now + 1ms, {.id = plan.ping.id + 1});  // never asked
  bench.sender.on_pong(bench.now + 1ms, {.id = 0});
  CHECK(bench.sender.srtt() == 0ns);
  bench.sender.on_pong(
      bench.now + 1ms,
      {.id = plan.ping.id, .hold_ns = wire::hold_ns_max});  // held longer than it took
  CHECK(bench.sender.srtt() == 0ns);
  bench.now += 1s;
  REQUIRE(bench.sender.next(bench.now, false, plan));
  bench.sender.on_pong(bench.now, {.id = plan.ping.id});  // zero
  CHECK(bench.sender.srtt() == 0ns);
  bench.now += 1s;
  REQUIRE(bench.sender.next(bench.now, false, plan));
  bench.sender.on_pong(bench.now + 3ms, {.id = plan.ping.id, .hold_ns = 1'000'000});
  CHECK(bench.sender.srtt() == 2ms);
  bench.sender.on_pong(bench.now + 9ms, {.id = plan.ping.id});  // twice
  CHECK(bench.sender.srtt() == 2ms);
}

TEST_CASE("unanswered PINGs become rarer") {
  RulesBench bench;
  bench.start();
  int pings = 0;
  for (int i = 0; i < 30'000; ++i, bench.now += 1ms) {
    FramePlan plan;
    if (bench.sender.next(bench.now, false, plan)) ++pings;
  }
  CHECK(pings >= 29);
  CHECK(pings <= 60);
}
