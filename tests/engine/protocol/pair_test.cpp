// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Both halves of the protocol back to back over a bad link, in virtual time. Every case prints the
// seed it played; ONEHOP_SEED plays one alone, ONEHOP_FRAMES sets the length of the long run
// (default 10'000'000).
#include <catch2/catch.hpp>
#include <cstdlib>
#include <string>

#include "tests/engine/protocol/pair.hpp"

namespace onehop::protocol {
namespace {

std::vector<std::uint64_t> seeds(std::uint64_t count) {
  if (const char* one = std::getenv("ONEHOP_SEED")) return {std::stoull(one)};
  std::vector<std::uint64_t> list;
  for (std::uint64_t i = 1; i <= count; ++i) list.push_back(i);
  return list;
}

void check_whole(Pair& pair, Nanos span) {
  const bool is_whole = pair.run_until_whole(span);
  CAPTURE(pair.frames_sent, pair.sender->in_flight(), pair.sender->offered().count,
          pair.blocks_written);
  REQUIRE(is_whole);
  CHECK(pair.wrong_bytes == 0);
  CHECK(pair.violations == 0);
}

}  // namespace

// Goal:   repair converges at any loss, with whatever else a link does to frames, and no byte is
// wrong. Bounds: 0..40 % loss both ways; the data sent stays below the bytes over (1 - loss), with
// 60 % slack for what
//         lost feedback and reordering repeat.
TEST_CASE("N11 N1 N2 repair converges at 0 to 40 % loss with reordering and duplication",
          "[transfer]") {
  const auto loss_percent = GENERATE(0U, 1U, 5U, 20U, 40U);
  for (const std::uint64_t seed : seeds(8)) {
    CAPTURE(seed, loss_percent);
    PairConfig config{.seed = seed};
    config.forward = config.backward = {.loss_ppm = loss_percent * 10'000,
                                        .duplicate_ppm = 20'000,
                                        .reorder_ppm = 20'000,
                                        .delay = 500us * static_cast<int>(1 + seed % 5)};
    config.sender.skip_seed = seed;
    Pair pair{config};
    check_whole(pair, 60s);
    const std::uint64_t sent = pair.sender->totals().data_bytes_sent;
    CHECK(sent <= 3'000'000 * 100 / (100 - loss_percent) * 16 / 10);
  }
}

// Goal:   frames that two receive queues hand over in another order are not taken for lost, and
// what is lost beside them is repaired as soon. Method: every other frame comes 0.3 ms late; round
// trips of 0.2, 2 and 40 ms; with and without loss. Bounds: 0.1 % beyond what is lost; before,
// 0.5, 2.8 and 6.4 %. Measured: 0.002 %.
TEST_CASE("N2 reordering across receive queues is not loss", "[transfer]") {
  const Nanos delay = GENERATE(Nanos{100us}, Nanos{1ms}, Nanos{20ms});
  const auto loss_percent = GENERATE(0U, 1U, 5U);
  std::uint64_t sent = 0, lost = 0;
  for (const std::uint64_t seed : seeds(4)) {
    PairConfig config{.seed = seed, .file_sizes = {8'000'000}};
    config.forward = {.loss_ppm = loss_percent * 10'000,
                      .reorder_ppm = 500'000,
                      .delay = delay,
                      .reorder_delay = 300us};
    config.backward = {.loss_ppm = loss_percent * 10'000, .delay = delay};
    Pair pair{config};
    check_whole(pair, 60s);
    sent += pair.sender->totals().packets_sent;
    lost += pair.sender->totals().packets_lost;
  }
  CAPTURE(delay / 1us, loss_percent, sent, lost);
  CHECK(lost * 1000 <= sent * (loss_percent * 12 + 1));
}

TEST_CASE("a clean link carries each byte once", "[transfer]") {
  Pair pair{{}};
  check_whole(pair, 5s);
  CHECK(pair.sender->totals().data_bytes_sent == 3'000'000);
  CHECK(pair.sender->totals().retransmitted_bytes == 0);
  CHECK(pair.sender->totals().probes == 0);
  CHECK(pair.receiver->totals().duplicate_bytes == 0);
}

// Goal:   ranges are cut anew after every change of the MTU, and the partial overlaps that follow
// always dissolve. Method: the link's MTU and the Sender's body size walk at random between 300 and
// 9000 bytes every 3 ms, out of step
//         with each other, at 20 % loss with reordering and duplication.
TEST_CASE("N9 re-cut ranges converge under MTU changes, loss, reordering and duplication",
          "[transfer]") {
  for (const std::uint64_t seed : seeds(40)) {
    CAPTURE(seed);
    PairConfig config{.seed = seed, .file_sizes = {1'500'000, 0, 77}};
    config.forward = {
        .loss_ppm = 200'000, .duplicate_ppm = 50'000, .reorder_ppm = 100'000, .reorder_delay = 8ms};
    config.backward = {.loss_ppm = 200'000, .duplicate_ppm = 50'000, .reorder_ppm = 100'000};
    Pair pair{config};
    std::mt19937_64 draw{seed};
    const auto size = [&] { return static_cast<std::size_t>(300 + draw() % 8700); };
    for (int change = 0; change < 200 && !pair.sender->is_all_arrived(); ++change) {
      const std::size_t body = size();
      pair.sender->set_body_max(body);
      pair.run(1ms);
      pair.config.forward.body_bytes_max = change % 4 == 0 ? body : std::max(body, size());
      pair.run(2ms);
    }
    pair.config.forward.body_bytes_max = 1U << 20;
    check_whole(pair, 60s);
  }
}

// Goal:   a block of many small frames with more holes than a RangeSet holds is still completed.
TEST_CASE("N9 N11 small frames at 40 % loss never lock a block", "[transfer]") {
  for (const std::uint64_t seed : seeds(6)) {
    CAPTURE(seed);
    PairConfig config{.seed = seed, .file_sizes = {700'000}};
    config.sender.body_bytes_max = 256;
    config.rate = mbit_per_s(200);
    config.forward = config.backward = {.loss_ppm = 400'000};
    Pair pair{config};
    check_whole(pair, 60s);
  }
}

TEST_CASE("N11 a blackhole of either way or both is survived", "[transfer]") {
  const auto way = GENERATE(0, 1, 2);  // 2: both
  CAPTURE(way);
  PairConfig config{.file_sizes = {20'000'000}};
  Pair pair{config};
  pair.run(100ms);
  REQUIRE_FALSE(pair.sender->is_all_arrived());
  if (way != 1) pair.config.forward.loss_ppm = 1'000'000;
  if (way != 0) pair.config.backward.loss_ppm = 1'000'000;
  pair.run(1s);
  const std::uint64_t before = pair.frames_sent;
  pair.run(20s);
  // No spin: probes and PINGs back off to one per second each, beside PINGs every 100 ms while
  // feedback flows.
  CHECK(pair.frames_sent - before <= (way == 0 ? 300 : 80));
  pair.config.forward.loss_ppm = pair.config.backward.loss_ppm = 0;
  check_whole(pair, 20s);
}

// Goal:   when everything that is in flight is lost and no number is left for data, PING still
// asks, and the answer
//         frees the window.
TEST_CASE("N11 a full window that is lost whole is not a deadlock", "[transfer]") {
  PairConfig config{.file_sizes = {20'000'000}};
  config.sender.in_flight_max = 256;
  Pair pair{config};
  pair.run(50ms);
  pair.config.forward.loss_ppm = 1'000'000;
  pair.run(12s);
  pair.config.forward.loss_ppm = 0;
  check_whole(pair, 60s);
}

TEST_CASE("a window of the smallest size makes progress at 20 % loss", "[transfer]") {
  for (const std::uint64_t seed : seeds(4)) {
    CAPTURE(seed);
    PairConfig config{.seed = seed, .file_sizes = {1'000'000}};
    config.sender.in_flight_max = 64;
    config.forward = config.backward = {.loss_ppm = 200'000};
    Pair pair{config};
    check_whole(pair, 120s);
    CHECK(pair.in_flight_max_seen <= 64);
  }
}

TEST_CASE("T2 packet numbers pass 2^32, 2^61 and 2^63 without a wrong byte", "[transfer]") {
  const auto bit = GENERATE(32U, 61U, 63U);
  const std::uint64_t first = (std::uint64_t{1} << bit) - 700;
  for (const std::uint64_t seed : seeds(3)) {
    CAPTURE(seed, first);
    PairConfig config{.seed = seed};
    config.sender.first_packet_number = first;
    config.forward =
        config.backward = {.loss_ppm = 50'000, .duplicate_ppm = 20'000, .reorder_ppm = 20'000};
    Pair pair{config};
    check_whole(pair, 30s);
  }
}

TEST_CASE("T1 a clock that stands still, or jumps far ahead, is no harm", "[transfer]") {
  PairConfig config{};
  config.forward = config.backward = {.loss_ppm = 50'000};
  Pair pair{config};
  pair.run(10ms);
  pair.config.step = 0ns;
  const std::uint64_t before = pair.frames_sent;
  for (int i = 0; i < 10'000; ++i) pair.step();
  CHECK(pair.frames_sent - before <= 100);  // what was allowed already, and at most one PING
  pair.config.step = 100us;
  pair.run(5ms);
  pair.now += 3600s;  // a suspend
  pair.config.step = 100us;
  check_whole(pair, 20s);
}

// Goal:   the file side decides: blocks that do not come back stop the sender, and it goes on when
// they do. Bounds: never more bytes than there are buffers; nothing refused; nothing sent twice.
TEST_CASE("credit stops a sender whose blocks are not given back", "[transfer]") {
  PairConfig config{.file_sizes = {12 * block_bytes}, .receiver_slots = 4};
  Pair pair{config};
  pair.is_disk_stalled = true;
  pair.run(3s);
  CHECK(pair.sender->totals().new_bytes_started == 4 * block_bytes);
  CHECK(pair.sender->is_credit_limited());
  CHECK_FALSE(pair.sender->has_data());
  const QueueTelemetry buffer = pair.receiver->app_buffer(pair.now);
  CHECK(buffer.occupancy == buffer.capacity);
  CHECK(buffer.is_backlogged);
  pair.is_disk_stalled = false;
  check_whole(pair, 5s);
  CHECK(pair.receiver->totals().no_room == 0);
  CHECK(pair.sender->totals().retransmitted_bytes == 0);
  const QueueTelemetry after = pair.receiver->app_buffer(pair.now);
  CHECK(after.occupancy == Bytes{0});
  CHECK(after.drained_total == Bytes{12 * block_bytes});
}

// Goal:   a file far smaller than a block costs a whole block of credit, and a receive ring smaller
// than a block must
//         not make that unaffordable.
TEST_CASE("C4 many small files arrive through a small receive ring and few buffers", "[transfer]") {
  const auto ring_kib = GENERATE(0, 32, 96, 4096);
  for (const std::uint64_t seed : seeds(3)) {
    CAPTURE(seed, ring_kib);
    PairConfig config{
        .seed = seed, .file_sizes = {}, .receiver_slots = 3, .ring_capacity = kib(ring_kib)};
    std::mt19937_64 draw{seed};
    for (int i = 0; i < 60; ++i)
      config.file_sizes.push_back(i % 5 == 0 ? 0 : draw() % (i % 7 == 0 ? 600'000 : 5'000));
    config.forward = config.backward = {.loss_ppm = 50'000};
    Pair pair{config};
    check_whole(pair, 60s);
    CHECK(pair.receiver->totals().no_room == 0);
  }
}

// Goal:   the last frames of a file are lost, or the last reports are; both ends still come to
// know.
TEST_CASE("a lost tail is repaired, and a lost completion is told again", "[transfer]") {
  const auto is_forward = GENERATE(true, false);
  CAPTURE(is_forward);
  PairConfig config{.file_sizes = {300'000}};
  Pair pair{config};
  WayConfig& way = is_forward ? pair.config.forward : pair.config.backward;
  while (pair.sender->totals().new_bytes_started < 280'000) pair.step();
  way.loss_ppm = 1'000'000;
  pair.run(200ms);
  REQUIRE_FALSE(pair.sender->is_all_arrived());
  CHECK(pair.receiver->is_complete() == !is_forward);
  way.loss_ppm = 0;
  check_whole(pair, 2s);
}

// Goal:   what both ends remember of missing numbers stays within two round trips of packets,
// however long a transfer. Bounds: 5 % loss at 50'000 frames/s over a round trip of 4 ms: 200
// frames and 10 losses a round trip. Two
//         round trips are 404 frames and 20 losses; we allow 420 in flight and 40 ranges in a
//         report. Measured 300, 19.
TEST_CASE("settled keeps both gap lists short over millions of frames at 5 % loss", "[transfer]") {
  const char* asked = std::getenv("ONEHOP_FRAMES");
  const std::uint64_t frames = asked != nullptr ? std::stoull(asked) : 10'000'000;
  PairConfig config{.seed = 99, .file_sizes = {frames * 1400}, .is_checking_bytes = false};
  config.forward = {.loss_ppm = 50'000, .delay = 2ms};
  config.backward = {.loss_ppm = 50'000, .delay = 2ms};
  config.sender.block_slots = config.receiver_slots = 64;
  config.ring_capacity = mib(16);
  Pair pair{config};
  const bool is_whole = pair.run_until_whole(3600s);
  CAPTURE(pair.in_flight_max_seen, pair.ranges_reported_max, pair.frames_sent);
  REQUIRE(is_whole);
  CHECK(pair.frames_sent >= frames);
  CHECK(pair.violations == 0);
  CHECK(pair.ranges_reported_max <= 40);
  CHECK(pair.in_flight_max_seen <= 420);
  CHECK(pair.sender->totals().retransmitted_bytes <= frames * 1400 * 7 / 100);
}

}  // namespace onehop::protocol
