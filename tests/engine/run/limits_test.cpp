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

PathUpdate mtu(std::uint16_t bytes) {
  return {.mtu_bytes = bytes, .is_link_up = true, .has_neighbour = true};
}

/// is_failure: an event that ends the session.
bool is_failure(EventKind kind) {
  using enum EventKind;
  return kind == path_dead || kind == feedback_silent || kind == protocol_error ||
         kind == port_failed || kind == stalled;
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

// Goal:   a proof that fails says so because frames were not answered, not because a core was late.
TEST_CASE("a starved core, or a path that loses 40 %, proves its path in the end") {
  const bool is_starved = GENERATE(true, false);
  CAPTURE(is_starved);
  const auto seed = static_cast<std::uint32_t>(GENERATE(range(0, 10)));
  Pair pair{
      {1000},
      1U << 12,
      {.delay = is_starved ? 50us : 50us + 1ms * seed, .loss_ppm = is_starved ? 0U : 400'000U}};
  for (Side* side : {&pair.sender_side, &pair.receiver_side})
    side->command(CommandKind::prove_path);
  bool is_proven = false;
  for (int i = 0; i < 60'000 && !is_proven; ++i) {
    // Starved: the peer's core gets its first turn after 2.5 s, ours one in 400 ms.
    pair.now += 100us;
    pair.link.run_until(pair.now);
    if (!is_starved || i % 4000 == 0) (void)pair.sender->turn(pair.now);
    if (!is_starved || i > 25'000) (void)pair.receiver->turn(pair.now);
    for (const Event& event : pair.sender_side.take_events()) {
      REQUIRE(event.kind != EventKind::path_dead);
      is_proven = is_proven || event.kind == EventKind::path_proven;
    }
  }
  CHECK(is_proven);
}

// Goal:   the session learns that the peer is alive from the data path, once a second, and only as
// long as it is. Method: both ends prove their path for 3 s; then the link swallows everything for
// 3 s.
TEST_CASE("N10 frames of the peer are a word of its life once a second, at both ends") {
  Pair pair{{1000}};
  for (Side* side : {&pair.sender_side, &pair.receiver_side})
    side->command(CommandKind::prove_path);
  const auto words = [&](Nanos span) {
    std::array<int, 2> heard{};
    for (const Instant end = pair.now + span; pair.now < end;) {
      pair.step();
      for (const Event& event : pair.sender_side.take_events())
        heard[0] += event.kind == EventKind::peer_heard ? 1 : 0;
      for (const Event& event : pair.receiver_side.take_events())
        heard[1] += event.kind == EventKind::peer_heard ? 1 : 0;
    }
    return heard;
  };
  for (const int heard : words(3s)) {
    CHECK(heard >= 2);
    CHECK(heard <= 4);
  }
  pair.link.config(0).loss_ppm = pair.link.config(1).loss_ppm = 1'000'000;
  (void)words(2s);  // what was on the way, and told late
  for (const int heard : words(3s)) CHECK(heard == 0);
}

TEST_CASE("a peer that is heard is given ten seconds to answer a full frame, and no more") {
  Pair pair{{1000}};
  pair.link.config(0).hole_bytes = 1400;  // its own PINGs arrive, ours do not
  for (Side* side : {&pair.sender_side, &pair.receiver_side})
    side->command(CommandKind::prove_path);
  const Instant start = pair.now;
  const auto dead_at = play_until(pair, pair.sender_side, EventKind::path_dead, 15s);
  REQUIRE(dead_at);
  CHECK(*dead_at - start >= 10s);
  CHECK(*dead_at - start <= 10s + 10ms);
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
  auto events = pair.sender_side.take_events();
  std::erase_if(events, [](const Event& event) { return event.kind == EventKind::peer_heard; });
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

// Goal:   the receiver fails only while something is owed to it, from when that began.
// Method: one volume arrives whole; a minute of silence follows, and then the next volume.
TEST_CASE("N11 silence between two volumes is no failure, and the limit begins with the next") {
  Pair pair{{1'000'000}};
  pair.start();
  REQUIRE(pair.run_until_arrived());
  for (std::size_t way : {0U, 1U}) pair.link.config(way).loss_ppm = 1'000'000;
  Side& side = pair.receiver_side;
  CHECK_FALSE(play_until(pair, side, EventKind::feedback_silent, 60s));
  const std::vector<std::uint64_t> sizes{1000, file_without_blocks};
  protocol::FileVolume next{1, sizes};
  REQUIRE(side.commands.push({.kind = CommandKind::add_files, .volume = &next}));
  CHECK_FALSE(play_until(pair, side, EventKind::feedback_silent, 29s));
  CHECK(play_until(pair, side, EventKind::feedback_silent, 2s));
}

TEST_CASE("what a port drops as no frame at all is in the report") {
  struct DroppingPort : VirtualPort {
    using VirtualPort::VirtualPort;
    [[nodiscard]] static std::uint64_t malformed_total() noexcept { return 3; }
  };
  PairOver<DroppingPort> pair{{1000}};
  pair.start();
  REQUIRE(pair.run_until_arrived());
  CHECK(pair.sender->counters().malformed_total == 0);
  CHECK(pair.sender_side.report.load().counters.malformed_total == 3);
}

// Goal:   a frame that overtakes the command which adds its volume is lost, and is repaired.
TEST_CASE("data of a volume that the receiver does not know yet is sent again, and arrives") {
  Pair pair{{300'000}};
  pair.sizes.push_back(700'000);  // the sender's: the receiver has made its first volume
  pair.sizes.push_back(5);
  pair.start();
  for (int i = 0; i < 300; ++i) pair.step();
  CHECK(pair.receiver->counters().malformed_total > 0);
  CHECK(pair.checked_bytes == 300'000);
  CHECK(pair.receiver->receiver().is_complete());
  const std::vector<std::uint64_t> sizes{700'000}, last_sizes{5, file_without_blocks};
  protocol::FileVolume next{1, sizes}, last{2, last_sizes};
  for (protocol::FileVolume* volume : {&next, &last})
    REQUIRE(pair.receiver_side.commands.push({.kind = CommandKind::add_files, .volume = volume}));
  REQUIRE(pair.run_until_arrived());
  CHECK(pair.checked_bytes == 1'000'005);
  CHECK(pair.wrong_bytes == 0);
  CHECK(next.is_released());
  CHECK(last.is_released());
  for (Side* side : {&pair.sender_side, &pair.receiver_side})
    for (const Event& event : side->take_events()) CHECK_FALSE(is_failure(event.kind));
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
  const std::uint16_t bytes = GENERATE(std::uint16_t{9000}, std::uint16_t{65535}, std::uint16_t{0},
                                       std::uint16_t{1}, std::uint16_t{68}, std::uint16_t{327});
  CAPTURE(bytes);
  Pair pair{{2'000'000}};
  pair.start();
  REQUIRE(pair.sender_side.commands.push({.kind = CommandKind::path_update, .path = mtu(bytes)}));
  REQUIRE(pair.run_until_arrived());
  CHECK(pair.wrong_bytes == 0);
  CHECK(pair.sender->sender().frame_payload_bytes() > 1400);
}

TEST_CASE(
    "N9 an MTU that falls on the way, unseen by either end, is found by PINGs and the transfer "
    "goes on") {
  const std::size_t new_mtu = GENERATE(std::size_t{1400}, std::size_t{1000}, std::size_t{576});
  CAPTURE(new_mtu);
  Pair pair{{80'000'000}};
  pair.start();
  for (int i = 0; i < 100; ++i) pair.step();
  REQUIRE(pair.checked_bytes > 0);
  pair.link.config(0).hole_bytes = new_mtu;
  const std::size_t room = new_mtu - 28 - wire::overhead_bytes;
  bool has_shrunk = false;
  for (const Instant end = pair.now + 2s; pair.now < end && !has_shrunk;) {
    pair.step();
    has_shrunk = pair.sender->sender().frame_payload_bytes() <= room;
  }
  REQUIRE(has_shrunk);
  CHECK(pair.sender->sender().frame_payload_bytes() + 64 >
        room);  // and not by much more than it had to
  const std::uint64_t arrived = pair.checked_bytes;
  for (int i = 0; i < 500; ++i) pair.step();
  CHECK(pair.checked_bytes > arrived);
  pair.link.config(0).hole_bytes = 0;  // the way is what it was: full frames are tried now and then
  for (int i = 0; i < 110'000 && pair.sender->sender().frame_payload_bytes() < 1400; ++i)
    pair.step();
  CHECK((pair.sender->sender().frame_payload_bytes() > 1400 ||
         pair.sender->sender().is_all_arrived()));
  REQUIRE(pair.run_until_arrived(400'000));
  CHECK(pair.wrong_bytes == 0);
  for (const Event& event : pair.sender_side.take_events()) CHECK_FALSE(is_failure(event.kind));
}

TEST_CASE(
    "I5 a path that carries small frames only ends the session, at both ends, and little is sent "
    "meanwhile") {
  Pair pair{{80'000'000}};
  pair.start();
  for (int i = 0; i < 100; ++i) pair.step();
  REQUIRE(pair.checked_bytes > 0);
  pair.link.config(0).hole_bytes =
      28 + wire::overhead_bytes + 64;            // neither data nor the smallest PING of a search
  for (int i = 0; i < 10'000; ++i) pair.step();  // a second, in which it finds out
  const std::uint64_t sent = pair.sender->counters().frames_sent_total;
  CHECK_FALSE(play_until(pair, pair.sender_side, EventKind::stalled, 28s));
  CHECK(pair.sender->counters().frames_sent_total - sent < 28 * 400);
  CHECK(play_until(pair, pair.sender_side, EventKind::stalled, 3s));
  CHECK(play_until(pair, pair.receiver_side, EventKind::stalled, 91s));
}

TEST_CASE("nothing is sent while the link is down, and what was not sent is not lost") {
  Pair pair{{80'000'000}};
  pair.start();
  for (int i = 0; i < 100; ++i) pair.step();
  const auto set_up = [&](bool is_up) {
    pair.link.set_up(is_up);
    for (Side* side : {&pair.sender_side, &pair.receiver_side})
      REQUIRE(side->commands.push(
          {.kind = CommandKind::path_update,
           .path = {.mtu_bytes = 1500, .is_link_up = is_up, .has_neighbour = true}}));
  };
  set_up(false);
  pair.step();
  const std::uint64_t sent = pair.sender->counters().frames_sent_total,
                      answered = pair.receiver->counters().frames_sent_total;
  for (int i = 0; i < 30'000; ++i) pair.step();
  CHECK(pair.sender->counters().frames_sent_total == sent);
  CHECK(pair.receiver->counters().frames_sent_total == answered);
  set_up(false);  // the same news once more is none
  set_up(true);
  const std::uint64_t arrived = pair.checked_bytes;
  for (int i = 0; i < 1000; ++i) pair.step();
  CHECK(pair.checked_bytes > arrived + 5'000'000);  // 100 ms of 1 Gbit/s are 12.5 MB
  CHECK(pair.sender_side.report.load().link_changes_total == 2);
  REQUIRE(pair.run_until_arrived());
  CHECK(pair.wrong_bytes == 0);
  CHECK(pair.sender->counters().retransmitted_bytes_total < 1'000'000);  // what was on the way
}

TEST_CASE("no data before the start, whatever the grant") {
  Pair pair{{2'000'000}};
  for (int i = 0; i < 1000; ++i) pair.step();
  CHECK(pair.sender->counters().frames_sent_total == 0);  // nor anything else: nothing asked for it
  CHECK(pair.receiver->counters().frames_sent_total == 0);
}

// Goal:   a sender held back by its rate sleeps until a worthwhile part of its backlog limit may be
// sent. Method: 100 Mbit/s over a fast link, so the lower queue is always empty; the loop's own
// rest says when it runs again. Bounds: naps are 500 us then, so 1000 turns in 500 ms; at 200 us
// they would be 2500. Half as many are allowed.
TEST_CASE(
    "a sender that its rate holds back refills in worthwhile bursts, and its report tells what has "
    "left") {
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
