// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// The rules of the Sender, one by one, against hand-made feedback. What both halves do together is in pair_test.cpp.
#include <catch2/catch.hpp>

#include <algorithm>
#include <vector>

#include "engine/transfer/sender.hpp"

namespace onehop::transfer {
namespace {

/// Bench: a Sender, its blocks, and what it sent. Feedback is made by hand.
struct Bench {
  explicit Bench(SenderParams params = {.body_bytes_max = 1400, .block_slots = 8}) : sender{params} {
    memory.resize(params.block_slots * block_bytes);
    slots = params.block_slots;
    for (std::uint32_t i = 0; i < slots; ++i) free.push_back(static_cast<std::uint32_t>(slots - 1) - i);
    sender.start(now);
  }
  void add(std::uint32_t length = block_bytes) {
    sender.add_block({.data = memory.data() + std::size_t{free.back()} * block_bytes, .file = file++, .length = length,
                      .slot = free.back()});
    free.pop_back();
  }
  /// send_data sends up to `count` data frames (PINGs beside) and returns their plans.
  std::vector<FramePlan> send_data(std::size_t count) {
    std::vector<FramePlan> plans;
    FramePlan plan;
    while (plans.size() < count && sender.next(now, true, plan)) {
      next_number = plan.header.packet_number + 1;
      if (plan.header.type == wire::FrameType::data) plans.push_back(plan);
      else pings.push_back(plan);
    }
    return plans;
  }
  wire::Violation hear(std::uint64_t from, std::uint64_t largest, std::vector<wire::PacketRange> missing = {}) {
    feedback.sequence = ++sequence;
    feedback.has_received = true;
    feedback.from = from;
    feedback.largest = largest;
    feedback.credit_bytes_total = credit;
    feedback.range_count = static_cast<std::uint32_t>(missing.size());
    std::copy(missing.begin(), missing.end(), feedback.missing.begin());
    return sender.on_feedback(now, feedback);
  }
  void grant(std::uint64_t bytes) {
    feedback = {};
    feedback.sequence = ++sequence;
    feedback.credit_bytes_total = credit = bytes;
    REQUIRE(sender.on_feedback(now, feedback) == wire::Violation::none);
  }
  void answer_ping() {
    sender.on_pong(now, {.id = pings.back().ping.id});
  }
  Sender sender;
  std::vector<std::byte> memory;
  std::size_t slots = 0;
  std::vector<std::uint32_t> free;
  std::vector<FramePlan> pings;
  wire::Feedback feedback;
  Instant now{1s};
  std::uint64_t sequence = 0, credit = 0, next_number = 1;
  std::uint32_t file = 0;
};

std::uint64_t number_of(const FramePlan& plan) { return plan.header.packet_number; }

constexpr std::uint64_t plenty = std::uint64_t{1} << 40;

}  // namespace

TEST_CASE("N4 an acknowledgement of what was never sent ends the session", "[transfer][sender]") {
  Bench bench;
  bench.grant(plenty);
  bench.add();
  const auto sent = bench.send_data(10);
  CHECK(bench.hear(1, number_of(sent.back()) + 1) == wire::Violation::acked_unsent);
  CHECK(bench.hear(1, ~std::uint64_t{0}) == wire::Violation::acked_unsent);
}

// Goal:   one number in ever longer stretches is left out, and only who received nothing would acknowledge it.
TEST_CASE("N4 an acknowledgement of a number that was left out ends the session", "[transfer][sender]") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    Bench bench{{.body_bytes_max = 512, .block_slots = 8, .skip_seed = seed}};
    bench.grant(plenty);
    bench.add();
    const auto sent = bench.send_data(400);
    REQUIRE(bench.sender.totals().packets_skipped >= 1);
    std::uint64_t skipped = bench.pings.front().header.packet_number + 1;
    std::vector<std::uint64_t> numbers;
    for (const auto& plan : bench.pings) numbers.push_back(number_of(plan));
    for (const auto& plan : sent) numbers.push_back(number_of(plan));
    std::sort(numbers.begin(), numbers.end());
    std::vector<wire::PacketRange> left_out;
    for (std::size_t i = 1; i < numbers.size(); ++i)
      if (numbers[i] != numbers[i - 1] + 1) left_out.push_back({numbers[i - 1] + 1, numbers[i] - 1});
    REQUIRE(left_out.size() == bench.sender.totals().packets_skipped);
    skipped = left_out.front().first;
    CHECK(skipped <= 257);
    CHECK(left_out.front().last == skipped);
    SECTION("an honest report lists it") {
      CHECK(bench.hear(1, numbers.back(), left_out) == wire::Violation::none);
      CHECK(bench.sender.in_flight() == 0);
    }
    SECTION("a guess does not") { CHECK(bench.hear(1, numbers.back()) == wire::Violation::acked_skipped); }
  }
}

TEST_CASE("N4 the stretches between numbers left out grow to 2^18 and no further", "[transfer][sender]") {
  Bench bench{{.body_bytes_max = 1400, .block_slots = 8}};
  bench.grant(std::uint64_t{1} << 42);
  std::vector<std::uint64_t> stretches;
  std::uint64_t before = 0, last_skip = 0;
  while (bench.next_number < 3'000'000) {
    while (!bench.free.empty()) bench.add();
    const std::uint64_t first = before + 1;
    std::vector<wire::PacketRange> left_out;
    FramePlan plan;
    for (int i = 0; i < 1000 && bench.sender.next(bench.now, true, plan); ++i) {
      const std::uint64_t number = plan.header.packet_number;
      if (number != before + 1) {
        left_out.push_back({before + 1, number - 1});
        stretches.push_back(before + 1 - last_skip);
        last_skip = before + 1;
      }
      before = bench.next_number = number;
    }
    ++bench.next_number;
    REQUIRE(bench.hear(first, before, left_out) == wire::Violation::none);
    BlockRef block;
    while (bench.sender.pop_sent(block)) {}
    while (bench.sender.pop_freed(block)) bench.free.push_back(block.slot);
  }
  REQUIRE(stretches.size() > 12);
  CHECK(stretches.front() <= 257);
  CHECK(*std::max_element(stretches.begin(), stretches.end()) <= (1U << 18) + 1);
  CHECK(*std::max_element(stretches.begin(), stretches.end()) >= (1U << 16));
}

TEST_CASE("N2 N5 old feedback is ignored, and credit never shrinks", "[transfer][sender]") {
  Bench bench;
  bench.grant(plenty);
  bench.add();
  const auto sent = bench.send_data(20);
  CHECK(bench.hear(1, number_of(sent[9])) == wire::Violation::none);
  const std::size_t before = bench.sender.in_flight();
  bench.sequence -= 1;
  CHECK(bench.hear(1, number_of(sent[19])) == wire::Violation::none);
  CHECK(bench.sender.in_flight() == before);
  CHECK(bench.sender.totals().stale_feedback == 1);
  bench.credit = 0;
  CHECK(bench.hear(1, number_of(sent[9])) == wire::Violation::none);
  CHECK(bench.sender.has_data());
}

TEST_CASE("a listed number is lost when three newer ones were received, and is sent again once", "[transfer][sender]") {
  Bench bench;
  bench.grant(plenty);
  bench.add();
  const auto sent = bench.send_data(30);
  const auto n = [&](std::size_t i) { return number_of(sent[i]); };
  bench.now += 1ms;
  // Frames 10..12 are listed; two newer ones have come: perhaps they are only late.
  REQUIRE(bench.hear(1, n(14), {{n(10), n(12)}}) == wire::Violation::none);
  CHECK(bench.sender.totals().packets_lost == 0);
  REQUIRE(bench.hear(1, n(19), {{n(10), n(12)}, {n(15), n(18)}}) == wire::Violation::none);
  CHECK(bench.sender.totals().packets_lost == 3);  // 13, 14 and 19: three beyond 10..12, and one beyond 15..18
  for (int repeat = 0; repeat < 5; ++repeat) {
    bench.now += 100us;
    REQUIRE(bench.hear(1, n(19), {{n(10), n(12)}, {n(15), n(18)}}) == wire::Violation::none);
  }
  CHECK(bench.sender.totals().packets_lost == 3);  // a repeated NACK sends nothing twice
  const auto again = bench.send_data(4);
  REQUIRE(again.size() == 4);
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(again[i].is_retransmission);
    CHECK(again[i].header.offset == sent[10 + i].header.offset);
    CHECK(again[i].body.data() == sent[10 + i].body.data());
    CHECK(number_of(again[i]) > n(29));
  }
  CHECK_FALSE(again[3].is_retransmission);  // then new data
  // Listed again under the old number: nothing. Its new number lost as well: once more.
  REQUIRE(bench.hear(1, n(29), {{n(10), n(12)}, {n(15), n(18)}}) == wire::Violation::none);
  CHECK(bench.sender.totals().packets_lost == 7);  // 15..18, not 10..12
}

TEST_CASE("a listed number with nothing behind it is lost by age", "[transfer][sender]") {
  Bench bench;
  bench.grant(plenty);
  bench.add();
  const auto sent = bench.send_data(5);
  bench.now += 20ms;
  bench.answer_ping();
  REQUIRE(bench.sender.srtt() == 20ms);
  const auto n = [&](std::size_t i) { return number_of(sent[i]); };
  REQUIRE(bench.hear(1, n(4), {{n(3), n(3)}}) == wire::Violation::none);
  CHECK(bench.sender.totals().packets_lost == 0);
  bench.now += 20ms;
  REQUIRE(bench.hear(1, n(4), {{n(3), n(3)}}) == wire::Violation::none);
  CHECK(bench.sender.totals().packets_lost == 1);
}

TEST_CASE("settled passes lost PINGs, numbers left out and numbers resent", "[transfer][sender]") {
  Bench bench;
  bench.grant(plenty);
  bench.add();
  FramePlan ping;
  for (int i = 0; i < 6; ++i) {
    bench.now += 2s;
    REQUIRE(bench.sender.next(bench.now, false, ping));
    REQUIRE(ping.header.type == wire::FrameType::ping);
  }
  const std::uint64_t pings_end = ping.header.packet_number;
  CHECK(bench.sender.settled() == 1);
  const auto sent = bench.send_data(10);
  const auto n = [&](std::size_t i) { return number_of(sent[i]); };
  REQUIRE(bench.hear(1, n(9), {{1, pings_end}, {n(4), n(4)}}) == wire::Violation::none);
  CHECK(bench.sender.settled() == n(9) + 1);
  const auto again = bench.send_data(1);
  CHECK(again[0].is_retransmission);
  CHECK(again[0].header.settled == number_of(again[0]));
  CHECK(bench.send_data(1)[0].header.settled == number_of(again[0]));
}

TEST_CASE("settled passes a number left out with the next frame", "[transfer][sender]") {
  Bench bench{{.body_bytes_max = 1400, .block_slots = 8}};
  bench.grant(plenty);
  for (int i = 0; i < 3; ++i) bench.add();
  std::uint64_t before = 0;
  for (;;) {
    const auto sent = bench.send_data(1);
    REQUIRE(sent.size() == 1);
    const std::uint64_t first = bench.pings.empty() ? 1 : 2;
    if (before >= first && number_of(sent[0]) != before + 1) {
      CHECK(sent[0].header.settled == number_of(sent[0]));
      // The Receiver has forgotten the number by then, and speaks only for what is above.
      CHECK(bench.hear(number_of(sent[0]), number_of(sent[0])) == wire::Violation::none);
      CHECK(bench.sender.in_flight() == 0);
      return;
    }
    before = number_of(sent[0]);
    REQUIRE(bench.hear(before, before) == wire::Violation::none);
    REQUIRE(bench.hear(1, before) == wire::Violation::none);
  }
}

TEST_CASE("N9 a lost range is sent again at the body size of the day", "[transfer][sender]") {
  Bench bench;
  bench.grant(plenty);
  bench.add();
  const auto sent = bench.send_data(10);
  const auto n = [&](std::size_t i) { return number_of(sent[i]); };
  REQUIRE(bench.hear(1, n(9), {{n(2), n(2)}}) == wire::Violation::none);
  bench.sender.set_body_max(500);
  const auto again = bench.send_data(4);
  std::uint64_t offset = sent[2].header.offset;
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(again[i].is_retransmission);
    CHECK(again[i].body_bytes <= 500);
    CHECK(again[i].header.offset == offset);
    offset += again[i].body_bytes;
  }
  CHECK(offset == sent[2].header.offset + sent[2].body_bytes);
  CHECK_FALSE(again[3].is_retransmission);
  CHECK(again[3].body_bytes <= 500);
  CHECK(again[3].header.offset == sent[9].header.offset + sent[9].body_bytes);
}

TEST_CASE("C4 an empty file is one frame without a body that ends its block", "[transfer][sender]") {
  Bench bench;
  bench.grant(plenty);
  bench.add(0);
  bench.sender.end_of_files();
  const auto sent = bench.send_data(2);
  REQUIRE(sent.size() == 1);
  CHECK(sent[0].header.is_end_of_block);
  CHECK(sent[0].body_bytes == 0);
  BlockRef block;
  REQUIRE(bench.sender.pop_sent(block));
  CHECK_FALSE(bench.sender.pop_freed(block));
  CHECK_FALSE(bench.sender.is_all_arrived());
  REQUIRE(bench.hear(1, number_of(sent[0])) == wire::Violation::none);
  REQUIRE(bench.sender.pop_freed(block));
  CHECK(bench.sender.is_all_arrived());
}

TEST_CASE("a block is cut into equal frames, told as sent once, and freed when all of it has arrived", "[transfer][sender]") {
  Bench bench;
  bench.grant(plenty);
  bench.add();
  const auto sent = bench.send_data(1000);
  REQUIRE(sent.size() == 188);
  for (std::size_t i = 0; i + 1 < sent.size(); ++i) CHECK(sent[i].body_bytes == 1395);
  CHECK(sent.back().body_bytes == block_bytes - 187 * 1395);
  CHECK(sent.back().header.is_end_of_block);
  CHECK_FALSE(sent.front().header.is_end_of_block);
  BlockRef block;
  REQUIRE(bench.sender.pop_sent(block));
  CHECK_FALSE(bench.sender.pop_sent(block));
  const std::uint64_t hole = number_of(sent[50]);
  std::vector<wire::PacketRange> missing{{hole, hole}};
  for (std::size_t i = 1; i < sent.size(); ++i)  // list what was left out
    if (number_of(sent[i]) != number_of(sent[i - 1]) + 1) missing.push_back({number_of(sent[i]) - 1, number_of(sent[i]) - 1});
  std::sort(missing.begin(), missing.end(), [](auto a, auto b) { return a.first < b.first; });
  REQUIRE(bench.hear(1, number_of(sent.back()), missing) == wire::Violation::none);
  CHECK_FALSE(bench.sender.pop_freed(block));
  const auto again = bench.send_data(1);
  REQUIRE(bench.hear(1, number_of(again[0])) == wire::Violation::none);
  REQUIRE(bench.sender.pop_freed(block));
  CHECK_FALSE(bench.sender.pop_freed(block));
  CHECK_FALSE(bench.sender.pop_sent(block));
}

TEST_CASE("T2 credit near 2^40 is counted to the byte", "[transfer][sender]") {
  Bench bench;
  CHECK_FALSE(bench.sender.has_data());
  bench.add();
  CHECK(bench.sender.is_credit_limited());
  bench.grant(100'000);
  const auto sent = bench.send_data(1000);
  CHECK(bench.sender.totals().new_bytes_started >= 100'000);
  CHECK(bench.sender.totals().new_bytes_started < 100'000 + 1400);  // the frame that used the last of it up
  CHECK(bench.sender.is_credit_limited());
  bench.grant(std::uint64_t{1} << 40);
  CHECK(bench.send_data(1000).size() + sent.size() == 188);
  bench.grant((std::uint64_t{1} << 62) - 1);
  bench.add();
  CHECK(bench.send_data(1000).size() == 188);
}

// Goal:   whole blocks of credit are never passed, whatever the lengths: the peer has that many buffers.
TEST_CASE("credit of n blocks lets n blocks start, however short they are", "[transfer][sender]") {
  Bench bench;
  for (const std::uint32_t length : {10U, block_bytes, 0U, 100'000U, block_bytes - 1, 7U, 1U, 2U}) bench.add(length);
  bench.grant(4 * std::uint64_t{block_bytes});
  std::vector<std::uint32_t> files;
  for (const auto& plan : bench.send_data(10'000)) files.push_back(plan.header.file);
  CHECK(*std::max_element(files.begin(), files.end()) == 3);
  CHECK(bench.sender.totals().new_bytes_started == 10 + block_bytes + 100'000);
}

TEST_CASE("a tail probe resends the newest frame, and never over our own queue", "[transfer][sender]") {
  Bench bench;
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
  Bench bench;
  bench.grant(plenty);
  bench.add(5000);
  (void)bench.send_data(100);
  const std::uint64_t before = bench.sender.totals().packets_sent;
  FramePlan plan;
  Instant deadline{};
  std::size_t turns = 0;
  for (const Instant end = bench.now + 30s; bench.now < end; ++turns) {
    bench.sender.tick(bench.now, {0});
    while (bench.sender.next(bench.now, true, plan)) {}
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

TEST_CASE("a pause stops data and repairs, and PING goes on", "[transfer][sender]") {
  Bench bench;
  bench.grant(plenty);
  bench.add();
  const auto sent = bench.send_data(10);
  REQUIRE(bench.hear(1, number_of(sent[9]), {{number_of(sent[0]), number_of(sent[0])}}) == wire::Violation::none);
  bench.sender.pause();
  CHECK_FALSE(bench.sender.has_data());
  bench.now += 1s;
  CHECK(bench.send_data(10).empty());
  CHECK(bench.pings.size() == 2);
}

TEST_CASE("N11 N5 numbers run out for data first, then for repairs, and last for PING", "[transfer][sender]") {
  Bench bench{{.body_bytes_max = 1400, .block_slots = 8, .in_flight_max = 256}};
  bench.grant(plenty);
  for (int i = 0; i < 8; ++i) bench.add();
  (void)bench.send_data(10'000);
  CHECK_FALSE(bench.sender.has_data());
  CHECK(bench.sender.can_number());
  std::size_t answered = 0;
  while (bench.sender.can_number()) (void)bench.sender.take_packet_number(bench.now), ++answered;
  CHECK(answered >= 16);
  CHECK(bench.sender.in_flight() <= 256);
  bench.now += 10s;
  FramePlan plan;
  CHECK_FALSE(bench.sender.next(bench.now, true, plan));
}

// Goal:   the largest report that decodes, and absurd but legal numbers, cost one bounded walk and break nothing.
TEST_CASE("N5 absurd feedback is bounded", "[transfer][sender]") {
  Bench bench;
  bench.grant(plenty);
  bench.add();
  const auto sent = bench.send_data(100);
  bench.feedback.received_bytes_total = bench.feedback.kernel_drops_total = (std::uint64_t{1} << 62) - 1;
  bench.feedback.app_buffer = bench.feedback.rx_ring = {.occupancy_bytes = 1, .drained_bytes_total = 1, .capacity_bytes = 1};
  const std::uint64_t last = number_of(sent.back());
  CHECK(bench.hear(0, last, {{0, last}}) == wire::Violation::none);            // all missing, from before the first
  CHECK(bench.sender.totals().packets_lost == 0);                              // none received behind them
  CHECK(bench.hear(last, last) == wire::Violation::none);                      // speaks for one only
  CHECK(bench.sender.in_flight() > 0);
  CHECK(bench.hear(last, last, {{last, last}}) == wire::Violation::none);      // takes its word back
  std::vector<wire::PacketRange> comb;
  for (std::uint64_t n = 1; n + 1 < last; n += 2) comb.push_back({n, n});
  CHECK(bench.hear(0, 0) == wire::Violation::none);
  const std::uint64_t lost = bench.sender.totals().packets_lost;
  (void)bench.hear(1, last, comb);
  CHECK(bench.sender.totals().packets_lost <= lost + comb.size());
}

TEST_CASE("the path is proven by a full-size PING every 50 ms until one is answered", "[transfer][sender]") {
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
  CHECK(sender.is_path_proven());
  CHECK(sender.proven_frame_bytes() == 1444);
  CHECK(sender.srtt() == 100ms);
}

}  // namespace onehop::transfer
