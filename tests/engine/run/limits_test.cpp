// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// The loops' limits in time, and a path that changes.
#include <catch2/catch.hpp>

#include <optional>

#include "tests/engine/run/loop_bench.hpp"

using namespace onehop;
using namespace onehop::run;

namespace {

/// play steps both loops for `span` and tells when each kind of event came, as seen by `side`.
std::optional<Instant> play_until(Pair& pair, Side& side, EventKind kind, Nanos span) {
  for (const Instant end = pair.now + span; pair.now < end;) {
    pair.step();
    for (const Event& event : side.take_events())
      if (event.kind == kind) return pair.now;
  }
  return std::nullopt;
}

PathUpdate mtu(std::uint16_t bytes) { return {.mtu_bytes = bytes, .is_link_up = true, .has_neighbour = true}; }

/// is_failure: an event that ends the session.
bool is_failure(EventKind kind) {
  using enum EventKind;
  return kind == path_dead || kind == feedback_silent || kind == protocol_error || kind == port_failed;
}

}  // namespace

TEST_CASE("a path that answers nothing is dead after two seconds, at both ends, and told once") {
  Pair pair{{1000}, 1U << 12, {.loss_ppm = 1'000'000}};
  Side& side = GENERATE(true, false) ? pair.sender_side : pair.receiver_side;
  side.command(CommandKind::prove_path);
  const Instant start = pair.now;
  const auto dead_at = play_until(pair, side, EventKind::path_dead, 10s);
  REQUIRE(dead_at);
  CHECK(*dead_at - start >= 2s);
  CHECK(*dead_at - start <= 2s + 10ms);
  CHECK_FALSE(play_until(pair, side, EventKind::path_dead, 3s));
}

TEST_CASE("a path that only carries small frames is not proven") {
  Pair pair{{1000}, 1U << 12, {.mtu_bytes = 1400}};
  pair.sender_side.command(CommandKind::prove_path);
  bool is_dead = false;
  for (int i = 0; i < 25'000; ++i) {
    pair.step();
    for (const Event& event : pair.sender_side.take_events()) {
      CHECK(event.kind != EventKind::path_proven);
      is_dead = is_dead || event.kind == EventKind::path_dead;
    }
  }
  CHECK(is_dead);
}

TEST_CASE("the proof tells the frame size that arrived") {
  Pair pair{{1000}};
  pair.sender_side.command(CommandKind::prove_path);
  for (int i = 0; i < 100; ++i) pair.step();
  const auto events = pair.sender_side.take_events();
  REQUIRE(events.size() == 1);
  CHECK(events[0].kind == EventKind::path_proven);
  CHECK(events[0].value == bench_frame_bytes);
}

TEST_CASE("N11 silence of 30 seconds ends the session, at both ends, and less does not") {
  Pair pair{{200'000'000}};
  pair.start();
  for (int i = 0; i < 200; ++i) pair.step();
  REQUIRE(pair.checked_bytes > 0);
  for (std::size_t way : {0U, 1U}) pair.link.config(way).loss_ppm = 1'000'000;
  for (Side* side : {&pair.sender_side, &pair.receiver_side}) (void)side->take_events();
  for (int i = 0; i < 290'000; ++i) pair.step();  // 29 s
  for (Side* side : {&pair.sender_side, &pair.receiver_side})
    for (const Event& event : side->take_events()) CHECK_FALSE(is_failure(event.kind));
  Side& side = GENERATE(true, false) ? pair.sender_side : pair.receiver_side;
  CHECK(play_until(pair, side, EventKind::feedback_silent, 2s));
  CHECK_FALSE(play_until(pair, side, EventKind::feedback_silent, 2s));
}

TEST_CASE("N9 a lower MTU is a loss until the path update, not the end of the session") {
  const std::uint16_t new_mtu = GENERATE(std::uint16_t{1000}, std::uint16_t{600});
  CAPTURE(new_mtu);
  Pair pair{{8'000'000}};
  pair.start();
  for (int i = 0; i < 100; ++i) pair.step();
  CHECK(pair.checked_bytes > 0);
  for (std::size_t way : {0U, 1U}) pair.link.set_mtu(way, new_mtu);
  for (int i = 0; i < 50; ++i) pair.step();  // frames are refused meanwhile
  REQUIRE(pair.sender_side.commands.push({.kind = CommandKind::path_update, .path = mtu(new_mtu)}));
  REQUIRE(pair.run_until_arrived());
  CHECK(pair.wrong_bytes == 0);
  for (const Event& event : pair.sender_side.take_events()) CHECK_FALSE(is_failure(event.kind));
}

TEST_CASE("N9 the MTU changes while the path is being proven") {
  Pair pair{{8'000'000}, 1U << 12, {.mtu_bytes = 1000}};
  pair.sender_side.command(CommandKind::prove_path);
  for (int i = 0; i < 1000; ++i) pair.step();
  REQUIRE(pair.sender_side.commands.push({.kind = CommandKind::path_update, .path = mtu(1000)}));
  std::uint64_t proven = 0;
  for (int i = 0; i < 2000; ++i) {
    pair.step();
    for (const Event& event : pair.sender_side.take_events()) {
      CHECK_FALSE(is_failure(event.kind));
      if (event.kind == EventKind::path_proven) proven = event.value;
    }
  }
  CHECK(proven == 1000 - 28);
}

TEST_CASE("N9 frames never exceed the agreed size, nor follow an absurd MTU") {
  const std::uint16_t bytes = GENERATE(std::uint16_t{9000}, std::uint16_t{65535}, std::uint16_t{0}, std::uint16_t{1},
                                       std::uint16_t{68}, std::uint16_t{327});
  CAPTURE(bytes);
  Pair pair{{2'000'000}};
  pair.start();
  REQUIRE(pair.sender_side.commands.push({.kind = CommandKind::path_update, .path = mtu(bytes)}));
  REQUIRE(pair.run_until_arrived());
  CHECK(pair.wrong_bytes == 0);
  CHECK(pair.sender->sender().frame_payload_bytes() > 1400);
}

TEST_CASE("no data before the start, whatever the grant") {
  Pair pair{{2'000'000}};
  for (int i = 0; i < 1000; ++i) pair.step();
  CHECK(pair.sender->counters().frames_sent_total == 0);  // nor anything else: nothing asked for it
  CHECK(pair.receiver->counters().frames_sent_total == 0);
}

// Goal:   a sender held back by its rate sleeps until a worthwhile part of its backlog limit may be sent.
// Method: 100 Mbit/s over a fast link, so the lower queue is always empty; the loop's own rest says when it runs again.
// Bounds: naps are 500 us then, so 1000 turns in 500 ms; at 200 us they would be 2500. Half as many are allowed.
TEST_CASE("a sender that its rate holds back refills in worthwhile bursts, and its report tells what has left") {
  Pair pair{{64 * block_bytes}, 1U << 12, {.rate = mbit_per_s(10'000)}};
  pair.sender_side.grant.store({.rate = mbit_per_s(100), .backlog_max = kib(32)});
  pair.start();
  for (int i = 0; i < 50; ++i) pair.step();
  Instant due = pair.now;
  int turns = 0;
  Bytes left{};
  const Instant end = pair.now + 500ms;
  const Bytes before = pair.sender_side.report.load().tx_queue.drained_total;
  while (pair.now < end) {
    pair.feed();
    pair.now += 50us;
    pair.link.run_until(pair.now);
    if (pair.now >= due) {
      ++turns;
      due = pair.sender->turn(pair.now).deadline;
      const PathReport report = pair.sender_side.report.load();
      left += report.tx_step;
      CHECK(report.tx_step_span > Nanos{0});
    }
    (void)pair.receiver->turn(pair.now);
    pair.drain();
  }
  const PathReport report = pair.sender_side.report.load();
  CHECK(turns <= 1250);
  CHECK(left == report.tx_queue.drained_total - before);
  CHECK(left.count >= (mbit_per_s(95) * 500ms).count);
}

TEST_CASE("I4 the sender keeps to its grant whatever credit it has") {
  Pair pair{{50'000'000}};
  pair.sender_side.grant.store({.rate = mbit_per_s(80), .backlog_max = kib(64)});
  pair.start();
  for (int i = 0; i < 10'000; ++i) {  // one second
    pair.step();
    if (pair.link.lower_queue(0).occupancy > kib(64) + Bytes{1514})
      FAIL("more than the backlog limit stands in the lower queue");
  }
  const auto sent = pair.sender_side.report.load().sent_total;
  CHECK(sent <= Bytes{10'000'000} + kib(64) + Bytes{20'000});  // pings and pongs are exempt
  CHECK(sent >= Bytes{9'500'000});
}
