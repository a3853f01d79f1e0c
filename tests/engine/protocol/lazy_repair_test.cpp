// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// The rules of lazy repair, one by one. Whole transfers are in tests/scenario/repair_test.cpp.
#include <catch2/catch.hpp>

#include <vector>

#include "engine/protocol/receiver.hpp"
#include "engine/protocol/reports.hpp"
#include "engine/protocol/skip_schedule.hpp"
#include "tests/engine/protocol/sender_bench.hpp"

namespace onehop::protocol {
namespace {

/// LazyReceiver: a Receiver of one large file, and frames by number: frame n carries bytes [1000 n,
/// 1000 n + 1000).
struct LazyReceiver {
  explicit LazyReceiver(std::size_t slots)
      : memory(slots * block_bytes),
        receiver{{.block_slots = slots,
                  .body_bytes_max = 1000,
                  .file_sizes = sizes,
                  .is_repair_lazy = true}} {
    for (std::uint32_t i = 0; i < slots; ++i)
      receiver.add_free({.data = memory.data() + i * block_bytes, .slot = i});
  }
  void frame(std::uint64_t number, bool is_asking = false, bool round = false) {
    const std::uint64_t first =
        number % 200 * 1000 +
        number / 200 * block_bytes;  // 200 frames in each block, none crosses one
    const wire::FrameHeader header{.type = wire::FrameType::data,
                                   .is_nack_requested = is_asking,
                                   .nack_round = round,
                                   .packet_number = number,
                                   .settled = settled,
                                   .offset = first};
    const Placement placement = receiver.place(header, 1000);
    REQUIRE(placement.verdict == Placement::Verdict::fresh);
    receiver.accept(now, header, 1000, placement, false);
  }
  /// report: the frames of what is due now.
  std::vector<wire::Feedback> report() {
    std::vector<wire::Feedback> frames;
    wire::Feedback frame;
    if (!receiver.tick(now)) return frames;
    while (receiver.next_feedback(now, frame)) frames.push_back(frame);
    return frames;
  }
  std::vector<std::uint64_t> sizes{std::uint64_t{1} << 30};
  std::vector<std::byte> memory;
  Receiver receiver;
  Instant now{1s};
  std::uint64_t settled = 0;
};

/// seed_without_skips: with it no number of [first, last] is skipped on purpose, so that ranges may
/// be written by hand.
std::uint64_t seed_without_skips(std::uint64_t first, std::uint64_t last) {
  for (std::uint64_t seed = 1;; ++seed) {
    SkipSchedule skips{seed, first};
    bool is_clean = true;
    for (std::uint64_t number = first; number <= last; ++number)
      is_clean = !skips.take(number) && is_clean;
    if (is_clean) return seed;
  }
}

}  // namespace

TEST_CASE("a lazy window is half of the blocks, and 64 MB at most", "[transfer][repair]") {
  for (const auto& [slots, bytes] : {std::pair<std::size_t, std::uint64_t>{128, 64 * block_bytes},
                                     {4096, 64'000'000},
                                     {1, block_bytes}}) {
    CHECK_FALSE(ListTiming{slots}.is_window_over(Instant{}, bytes - 1));
    CHECK(ListTiming{slots}.is_window_over(Instant{}, bytes));
  }
}

TEST_CASE("between lists a lazy report counts what is missing and speaks below the first gap",
          "[transfer][repair]") {
  LazyReceiver bench{8};
  for (const std::uint64_t number : {0U, 1U, 2U, 5U, 6U, 9U, 20U}) bench.frame(number);
  const auto frames = bench.report();
  REQUIRE(frames.size() == 1);
  CHECK_FALSE(frames[0].is_list);
  CHECK(frames[0].range_count == 0);
  CHECK(frames[0].from == 0);
  CHECK(frames[0].largest == 2);
  CHECK(frames[0].missing_packets_total == 2 + 2 + 10);
  // A gap at the very beginning: nothing can be said, and the counters still travel.
  bench.settled = 3;
  bench.frame(21);
  bench.now += 100ms;
  const auto empty = bench.report();
  REQUIRE(empty.size() == 1);
  CHECK_FALSE(empty[0].has_received);
  CHECK(empty[0].missing_packets_total == 14);
  CHECK(empty[0].received_bytes_total == 8000);
}

TEST_CASE(
    "a request is answered once with the whole list, oldest first, in as many frames as it takes",
    "[transfer][repair]") {
  LazyReceiver bench{16};
  for (std::uint64_t number = 0; number < 2400; number += 2) bench.frame(number);  // 1199 gaps
  bench.frame(2401, true);
  const auto frames = bench.report();
  REQUIRE(frames.size() > wire::frames_per_report_max);
  std::uint64_t next = 1, ranges = 0;
  for (std::size_t i = 0; i < frames.size(); ++i) {
    CHECK(frames[i].is_list);
    CHECK(frames[i].has_more == (i + 1 < frames.size()));
    for (std::uint32_t k = 0; k < frames[i].range_count; ++k, ++ranges, next += 2)
      CHECK(frames[i].missing[k].first == next);
  }
  CHECK(ranges == 1200);
  CHECK(bench.receiver.totals().lists == 1);
  // What was sent before the sender read the list asks again; it is not answered again until that
  // list seems lost, even where `settled` has moved on: a window's repairs settle while the next
  // window's losses wait.
  bench.now += 1ms;
  bench.settled = 2;
  bench.frame(2403, true);
  CHECK(bench.report().empty());
  bench.now += ListTiming::answer_min;
  bench.frame(2405, true);
  CHECK(bench.report().size() == frames.size());
  // The sender has read it and asks in its next round, whose answer is due at once.
  bench.now += 1ms;
  bench.settled = 2401;
  bench.frame(2407, true, true);
  const auto next_round = bench.report();
  REQUIRE(next_round.size() == 1);
  CHECK(next_round[0].is_list);
  CHECK(next_round[0].range_count == 3);
}

TEST_CASE("a window of bytes or of a second makes a list due where something is missing",
          "[transfer][repair]") {
  const bool has_gap = GENERATE(true, false);
  LazyReceiver bench{8};  // 4 blocks are a window: 1049 frames of 1000 bytes
  std::uint64_t number = 0;
  const auto is_list = [&] {
    const auto frames = bench.report();
    return !frames.empty() && frames[0].is_list;
  };
  bench.frame(number);
  CHECK_FALSE(is_list());
  number += has_gap ? 2 : 1;
  std::uint64_t frames = 0;
  while (frames < 1100) {
    bench.frame(number++);
    ++frames;
    bench.now += 10us;
    if (is_list()) break;
  }
  CHECK((frames == 4 * block_bytes / 1000 + 1) == has_gap);
  bench.now += 990ms;
  CHECK_FALSE(is_list());
  bench.now += 20ms;
  CHECK(is_list() == has_gap);
}

TEST_CASE("what is missing does not hold a lazy sender back at the receive ring",
          "[transfer][repair]") {
  LazyReceiver bench{64};
  bench.frame(0);
  const std::uint64_t before = bench.report().at(0).credit_bytes_total;
  bench.frame(1001);  // 1000 frames are lost
  bench.now += 100ms;
  CHECK(bench.report().at(0).credit_bytes_total == before + 1000 * 1000 + 1000);
}

TEST_CASE("a lazy sender repairs from lists alone, and asks at the end of each round",
          "[transfer][repair]") {
  SenderBench bench{{.body_bytes_max = 1400,
                     .block_slots = 8,
                     .skip_seed = seed_without_skips(1, 200),
                     .is_repair_lazy = true}};
  bench.grant(plenty);
  bench.add();
  bench.add();
  const auto first = bench.send_data(100);
  for (const auto& plan : first) CHECK_FALSE(plan.header.is_nack_requested);
  // Counters and the numbers below the first gap: nothing to repair, however old.
  bench.now += 1s;
  bench.feedback.missing_packets_total = 30;
  REQUIRE(bench.hear(1, 10) == wire::Violation::none);
  CHECK(bench.sender.totals().packets_lost == 30);
  CHECK(bench.sender.offered() ==
        Bytes{static_cast<std::int64_t>(2 * block_bytes) -
              100 * static_cast<std::int64_t>(bench.sender.frame_payload_bytes())});
  // The list: two ranges, five packets.
  bench.feedback.is_list = true;
  REQUIRE(bench.hear(1, 90, {{20, 21}, {40, 42}}) == wire::Violation::none);
  auto repairs = bench.send_data(5);
  REQUIRE(repairs.size() == 5);
  for (std::size_t i = 0; i < 5; ++i) {
    CHECK(repairs[i].is_retransmission);
    CHECK(repairs[i].header.is_nack_requested == (i == 4));
  }
  // Until a list answers, each frame asks, first copies of the next window too.
  const auto more = bench.send_data(10);
  for (const auto& plan : more) CHECK((plan.header.is_nack_requested && !plan.is_retransmission));
  // The next list: one repair is lost, and a first copy of the next window, which waits for its
  // turn.
  bench.now += 1s;
  const std::uint64_t lost_repair = number_of(repairs[2]), lost_new = number_of(more[3]);
  REQUIRE(bench.hear(91, number_of(more[9]), {{lost_repair, lost_repair}, {lost_new, lost_new}}) ==
          wire::Violation::none);
  repairs = bench.send_data(2);
  CHECK(repairs[0].is_retransmission);
  const auto number_40 = std::ranges::find(first, 40U, number_of);
  CHECK(repairs[0].header.offset == number_40->header.offset);
  CHECK(repairs[0].header.is_nack_requested);
  CHECK_FALSE(repairs[1].is_retransmission);
  // The round after finds the repair arrived: the window is done, and the next list opens the next
  // one.
  bench.now += 1s;
  REQUIRE(bench.hear(number_of(more[9]) + 1, number_of(repairs[1])) == wire::Violation::none);
  REQUIRE(bench.hear(lost_new, number_of(repairs[1]), {{lost_new, lost_new}}) ==
          wire::Violation::none);
  const auto late = bench.send_data(1);
  CHECK(late[0].is_retransmission);
  CHECK(late[0].header.offset == more[3].header.offset);
}

// A loss ratio over a stretch that ends within a list would have the losses of all its frames
// against what the first speak for.
TEST_CASE("what a list of several frames counts is taken with its last frame",
          "[transfer][repair]") {
  SenderBench bench{{.body_bytes_max = 1400,
                     .block_slots = 8,
                     .skip_seed = seed_without_skips(1, 200),
                     .is_repair_lazy = true}};
  bench.grant(plenty);
  bench.add();
  (void)bench.send_data(100);
  const auto told_and_lost = [&] {
    return std::pair{bench.sender.totals().packets_reported, bench.sender.totals().packets_lost};
  };
  bench.feedback.is_list = bench.feedback.has_more = true;
  bench.feedback.missing_packets_total = 40;
  const auto before = told_and_lost();
  REQUIRE(bench.hear(1, 30, {{10, 20}}) == wire::Violation::none);
  CHECK(told_and_lost() == before);
  bench.feedback.has_more = false;
  REQUIRE(bench.hear(31, 80, {{40, 68}}) == wire::Violation::none);
  CHECK(told_and_lost() == std::pair{std::uint64_t{80}, std::uint64_t{40}});
}

TEST_CASE("a lazy sender that can send nothing more asks, and a probe asks again",
          "[transfer][repair]") {
  SenderBench bench{{.body_bytes_max = 1400, .block_slots = 8, .is_repair_lazy = true}};
  bench.grant(plenty);
  bench.add();
  bench.sender.end_of_files();
  const auto plans = bench.send_data(1000);
  for (std::size_t i = 0; i < plans.size(); ++i)
    CHECK(plans[i].header.is_nack_requested == (i + 1 == plans.size()));
  // All but the first were lost, the request too.
  REQUIRE(bench.hear(1, 1) == wire::Violation::none);
  std::vector<FramePlan> probes;
  for (int i = 0; i < 1000 && probes.empty(); ++i) {
    bench.now += 1ms;
    bench.sender.tick(bench.now, Bytes{0});
    probes = bench.send_data(10);
  }
  REQUIRE(probes.size() == 1);
  CHECK(probes[0].header.is_nack_requested);
  CHECK(probes[0].is_retransmission);
}

}  // namespace onehop::protocol
