// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// The rules of the Sender that time and limits make: probes, PINGs, silence, exhaustion, absurd
// feedback. What both halves do together is in pair_test.cpp.
#include "tests/engine/protocol/sender_bench.hpp"

namespace onehop::protocol {

TEST_CASE("a tail probe resends the newest frame, and never over our own queue",
          "[transfer][sender]") {
  SenderBench bench;
  bench.grant(plenty);
  bench.add(5000);
  const auto sent = bench.send_data(100);
  REQUIRE(sent.size() == 4);
  bench.now += 20ms;
  bench.answer_ping();
  bench.sender.tick(bench.now, {0});
  CHECK(bench.sender.totals().probes == 0);
  for (int i = 0; i < 300; ++i) {
    bench.now += 10ms;
    bench.sender.tick(bench.now, {1});
  }
  CHECK(bench.sender.totals().probes == 0);
  CHECK(bench.sender.totals().retransmitted_bytes == 0);
  bench.sender.tick(bench.now, {0});
  bench.now += 20ms;
  bench.sender.tick(bench.now, {0});
  CHECK(bench.sender.totals().probes == 0);
  bench.now += 25ms;
  bench.sender.tick(bench.now, {0});
  CHECK(bench.sender.totals().probes == 1);
  const auto again = bench.send_data(100);
  REQUIRE(again.size() == 1);
  CHECK(again[0].is_retransmission);
  CHECK(again[0].header.offset == sent.back().header.offset);
  // The answer shows the rest of the tail; all of it is repaired, and nothing is left to probe for.
  bench.now += 20ms;
  std::vector<wire::PacketRange> missing{{number_of(sent[0]), number_of(again[0]) - 1}};
  bench.now += 50ms;
  REQUIRE(bench.hear(1, number_of(again[0]), missing) == wire::Violation::none);
  CHECK(bench.send_data(100).size() == 3);
}

TEST_CASE("N11 a dead path is not fed: probes and PINGs back off", "[transfer][sender]") {
  SenderBench bench;
  bench.grant(plenty);
  bench.add(5000);
  (void)bench.send_data(100);
  const std::uint64_t before = bench.sender.totals().packets_sent;
  FramePlan plan;
  Instant deadline{};
  std::size_t turns = 0;
  for (const Instant end = bench.now + 30s; bench.now < end; ++turns) {
    bench.sender.tick(bench.now, {0});
    while (bench.sender.next(bench.now, true, plan)) {
    }
    bench.sender.tick(bench.now, {0});
    deadline = bench.sender.next_deadline();
    REQUIRE(deadline > bench.now);  // no spin
    REQUIRE(deadline <= bench.now + 1s);
    bench.now = deadline;
  }
  CHECK(turns < 100);
  CHECK(bench.sender.totals().packets_sent - before < 100);
  CHECK(bench.sender.is_silent(bench.now + 1s));
}

// A source that pauses leaves frames unacknowledged until the next report, which may be 50 ms away:
// nothing is lost.
TEST_CASE("a tail probe waits for the report that was asked to be rare, but not at the end",
          "[transfer][sender]") {
  const bool is_end = GENERATE(false, true);
  CAPTURE(is_end);
  SenderBench bench;
  bench.grant(plenty);
  bench.add(5000);
  bench.sender.ask_feedback(bench.now, 50ms, 0);
  if (is_end) bench.sender.end_of_files();
  REQUIRE(bench.send_data(100).size() == 4);
  bench.now += 1ms;
  bench.answer_ping();
  for (int i = 0; i < 90; ++i, bench.now += 1ms) bench.sender.tick(bench.now, {0});
  CHECK((bench.sender.totals().probes > 0) == is_end);
  for (int i = 0; i < 30; ++i, bench.now += 1ms) bench.sender.tick(bench.now, {0});
  CHECK(bench.sender.totals().probes > 0);
}

// The grant's wishes travel in PINGs and in the next frame; the frames that end a transfer ask by
// themselves.
TEST_CASE("the sender asks for rare reports, for missing ranges, and for the last report at once",
          "[transfer][sender]") {
  SenderBench bench;
  bench.grant(plenty);
  bench.add(20'000);
  bench.sender.ask_feedback(bench.now, 50ms, 1);
  const auto first = bench.send_data(3);
  REQUIRE(bench.pings.size() == 1);
  CHECK(bench.pings[0].ping.feedback_interval_us == 50'000);
  CHECK(bench.pings[0]
            .header.is_nack_requested);  // the first frame after a change of the request, once
  for (const auto& plan : first) CHECK_FALSE(plan.header.is_nack_requested);
  bench.answer_ping();
  bench.now += 49ms;
  (void)bench.send_data(1);
  CHECK(bench.pings.size() == 1);
  bench.sender.ask_feedback(bench.now, 0ms, 1);  // wished for more often: said at once
  const auto second = bench.send_data(1);
  CHECK(bench.pings.size() == 2);
  CHECK_FALSE(second[0].header.is_nack_requested);
  bench.sender.ask_feedback(bench.now, 0ms, 2);
  CHECK(bench.send_data(1)[0].header.is_nack_requested);
  bench.sender.end_of_files();
  const auto rest = bench.send_data(1000);
  for (std::size_t i = 0; i < rest.size(); ++i)
    REQUIRE(rest[i].header.is_nack_requested == (i + 1 == rest.size()));
  REQUIRE(bench.hear(1, number_of(rest.back()), {{number_of(rest[4]), number_of(rest[5])}}) ==
          wire::Violation::none);
  const auto repairs = bench.send_data(10);
  REQUIRE(repairs.size() == 2);
  CHECK_FALSE(repairs[0].header.is_nack_requested);
  CHECK(repairs[1].header.is_nack_requested);
}

TEST_CASE("a pause stops data and repairs, and PING goes on", "[transfer][sender]") {
  SenderBench bench;
  bench.grant(plenty);
  bench.add();
  const auto sent = bench.send_data(10);
  REQUIRE(bench.hear(1, number_of(sent[9]), {{number_of(sent[0]), number_of(sent[0])}}) ==
          wire::Violation::none);
  bench.sender.pause();
  CHECK_FALSE(bench.sender.has_data());
  bench.now += 1s;
  CHECK(bench.send_data(10).empty());
  CHECK(bench.pings.size() == 2);
}

TEST_CASE("N11 N5 numbers run out for data first, then for repairs, and last for PING",
          "[transfer][sender]") {
  SenderBench bench{{.body_bytes_max = 1400, .block_slots = 8, .in_flight_max = 256}};
  bench.grant(plenty);
  for (int i = 0; i < 8; ++i) bench.add();
  (void)bench.send_data(10'000);
  CHECK_FALSE(bench.sender.has_data());
  CHECK(bench.sender.can_number());
  std::size_t answered = 0;
  while (bench.sender.can_number()) (void)bench.sender.take_pong_header(bench.now), ++answered;
  CHECK(answered >= 16);
  CHECK(bench.sender.in_flight() <= 256);
  bench.now += 10s;
  FramePlan plan;
  CHECK_FALSE(bench.sender.next(bench.now, true, plan));
}

// Goal:   the largest report that decodes, and absurd but legal numbers, cost one bounded walk and
// break nothing.
TEST_CASE("N5 absurd feedback is bounded", "[transfer][sender]") {
  SenderBench bench;
  bench.grant(plenty);
  bench.add();
  const auto sent = bench.send_data(100);
  bench.feedback.app_buffer = {.occupancy = {1}, .drained_total = {1}, .capacity = {1}};
  bench.feedback.rx_ring = bench.feedback.app_buffer;
  bench.feedback.received_bytes_total = bench.feedback.rx_ring.refused_total =
      (std::uint64_t{1} << 62) - 1;
  const std::uint64_t last = number_of(sent.back());
  CHECK(bench.hear(0, last, {{0, last}}) ==
        wire::Violation::none);                            // all missing, from before the first
  CHECK(bench.sender.totals().packets_lost == 0);          // none received behind them
  CHECK(bench.hear(last, last) == wire::Violation::none);  // speaks for one only
  CHECK(bench.sender.in_flight() > 0);
  CHECK(bench.hear(last, last, {{last, last}}) == wire::Violation::none);  // takes its word back
  std::vector<wire::PacketRange> comb;
  for (std::uint64_t n = 1; n + 1 < last; n += 2) comb.push_back({n, n});
  CHECK(bench.hear(0, 0) == wire::Violation::none);
  const std::uint64_t lost = bench.sender.totals().packets_lost;
  (void)bench.hear(1, last, comb);
  CHECK(bench.sender.totals().packets_lost <= lost + comb.size());
}

TEST_CASE("the path is proven by a full-size PING every 50 ms until one is answered",
          "[transfer][sender]") {
  Sender sender{{.body_bytes_max = 1400, .block_slots = 2}};
  FramePlan plan;
  CHECK_FALSE(sender.next(Instant{1s}, false, plan));
  sender.prove_path(1400);
  Instant now{1s};
  for (int i = 0; i < 3; ++i, now += 50ms) {
    REQUIRE(sender.next(now, false, plan));
    CHECK(plan.header.type == wire::FrameType::ping);
    CHECK(plan.body_bytes == 1400);
    CHECK_FALSE(sender.next(now + 49ms, false, plan));
  }
  sender.on_pong(now, {.id = 2, .received_bytes = 1444});
  CHECK(sender.pings().is_proven());
  CHECK(sender.pings().proven_frame_bytes() == 1444);
  CHECK(sender.srtt() == 100ms);
}

}  // namespace onehop::protocol
