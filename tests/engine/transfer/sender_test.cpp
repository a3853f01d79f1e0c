// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Sender: blocks, credit, loss, and what it makes of a peer that lies.
#include <catch2/catch.hpp>
#include <algorithm>

#include "tests/engine/transfer/sender_bench.hpp"

using namespace onehop;
using namespace onehop::transfer;
using wire::Violation;

namespace {
/// skipped_in gives the numbers left out between the first and the last plan, as an honest peer would list them.
std::vector<wire::PacketRange> skipped_in(const std::vector<FramePlan>& plans) {
  std::vector<wire::PacketRange> ranges;
  std::uint64_t expected = plans.front().header.packet_number;
  for (const FramePlan& plan : plans) {
    if (plan.header.packet_number != expected) ranges.push_back({expected, plan.header.packet_number - 1});
    expected = plan.header.packet_number + 1;
  }
  return ranges;
}
}  // namespace

TEST_CASE("Sender sends a block in order and frees it exactly once") {
  SenderBench bench;
  bench.lend(3, block_bytes, 7, 5 * std::uint64_t{block_bytes});
  bench.start();
  const auto plans = bench.send();
  std::uint64_t offset = 5 * std::uint64_t{block_bytes};
  for (const FramePlan& plan : plans) {
    CHECK(plan.header.file == 7);
    CHECK(plan.header.offset == offset);
    offset += plan.body.size();
    CHECK(plan.header.is_end_of_block == (offset == 6 * std::uint64_t{block_bytes}));
    CHECK_FALSE(plan.is_retransmission);
  }
  REQUIRE(offset == 6 * std::uint64_t{block_bytes});
  BlockRef block;
  REQUIRE(bench.sender.pop_sent(block));
  CHECK(block.slot == 3);
  CHECK_FALSE(bench.sender.pop_sent(block));
  CHECK_FALSE(bench.sender.pop_freed(block));

  const std::uint64_t last = plans.back().header.packet_number;
  const auto missing = skipped_in(plans);
  REQUIRE(bench.tell(1, last, missing) == Violation::none);
  REQUIRE(bench.tell(1, last, missing) == Violation::none);
  REQUIRE(bench.sender.pop_freed(block));
  CHECK((block.slot == 3 && block.file == 7));
  CHECK_FALSE(bench.sender.pop_freed(block));
  CHECK_FALSE(bench.sender.is_all_arrived());
  bench.sender.end_of_files();
  CHECK(bench.sender.is_all_arrived());
}

TEST_CASE("Sender sends one frame for an empty file, and again when it is lost") {
  SenderBench bench;
  bench.lend(0, 0, 4);
  bench.sender.end_of_files();
  bench.start();
  auto plans = bench.send();
  REQUIRE(plans.size() == 1);
  CHECK(plans[0].body.empty());
  CHECK(plans[0].header.is_end_of_block);
  bench.now += 1s;
  for (int i = 0; i < 4; ++i) (void)bench.sender.take_packet_number(bench.now);
  const std::uint64_t lost = plans[0].header.packet_number;
  const std::uint64_t largest = bench.sender.take_packet_number(bench.now);
  REQUIRE(bench.tell(1, largest, {{lost, lost}}) == Violation::none);
  CHECK_FALSE(bench.sender.is_all_arrived());
  plans = bench.send();
  REQUIRE(plans.size() == 1);
  CHECK(plans[0].is_retransmission);
  REQUIRE(bench.tell(plans[0].header.packet_number, plans[0].header.packet_number) == Violation::none);
  BlockRef block;
  CHECK(bench.sender.pop_freed(block));
  CHECK(bench.sender.is_all_arrived());
}

TEST_CASE("N4 feedback for a packet never sent ends the session") {
  SenderBench bench;
  bench.lend(0);
  bench.start();
  const auto plans = bench.send(10);
  const std::uint64_t next = plans.back().header.packet_number + 1;
  CHECK(bench.tell(1, next) == Violation::acked_unsent);
  CHECK(bench.tell(1, next + 1'000'000) == Violation::acked_unsent);
  CHECK(bench.tell(1, next - 1) == Violation::none);
}

TEST_CASE("N4 feedback for a number skipped on purpose ends the session") {
  const auto seed = GENERATE(range(std::uint64_t{1}, std::uint64_t{9}));
  CAPTURE(seed);
  SenderBench bench{{.skip_seed = seed}};
  for (std::uint32_t slot = 0; slot < 4; ++slot) bench.lend(slot, block_bytes, 0, slot * std::uint64_t{block_bytes});
  bench.start();
  const auto plans = bench.send();
  std::vector<std::uint64_t> numbers;
  for (const FramePlan& plan : plans) numbers.push_back(plan.header.packet_number);
  const auto gap = std::adjacent_find(numbers.begin(), numbers.end(), [](auto a, auto b) { return b != a + 1; });
  REQUIRE(gap != numbers.end());  // the first comes within 257 numbers
  const std::uint64_t skipped = *gap + 1;
  CHECK(skipped <= 1 + 257);
  CHECK(bench.sender.totals().packets_skipped >= 1);
  SECTION("an honest peer lists it") { CHECK(bench.tell(1, skipped + 1, {{skipped, skipped}}) == Violation::none); }
  SECTION("a lying peer does not") { CHECK(bench.tell(1, skipped + 1) == Violation::acked_skipped); }
  SECTION("nor does one that speaks of nothing else") { CHECK(bench.tell(skipped, skipped) == Violation::acked_skipped); }
}

TEST_CASE("Sender declares a packet lost only three packets later, and resends it once under a new number") {
  SenderBench bench{{.skip_seed = 4}};
  bench.lend(0);
  bench.start();
  const auto plans = bench.send(8);
  const std::uint64_t n = plans[2].header.packet_number;
  REQUIRE(plans[7].header.packet_number == n + 5);  // the seed skips none of these
  REQUIRE(bench.tell(1, n + 2, {{n, n}}) == Violation::none);
  CHECK(bench.sender.totals().packets_lost == 0);
  REQUIRE(bench.tell(1, n + 3, {{n, n}}) == Violation::none);
  CHECK(bench.sender.totals().packets_lost == 1);
  const auto again = bench.send(1);
  REQUIRE(again.size() == 1);
  CHECK(again[0].is_retransmission);
  CHECK(again[0].header.offset == plans[2].header.offset);
  CHECK(again[0].body.size() == plans[2].body.size());
  CHECK(again[0].header.packet_number > n + 5);
  // The same NACK again, as long as the repeat is under way: nothing more is sent for it.
  for (int i = 0; i < 5; ++i) REQUIRE(bench.tell(1, n + 5, {{n, n}}) == Violation::none);
  const auto rest = bench.send();
  CHECK(std::none_of(rest.begin(), rest.end(), [](const FramePlan& plan) { return plan.is_retransmission; }));
  CHECK(bench.sender.totals().packets_lost == 1);
  CHECK(bench.sender.totals().retransmitted_bytes == plans[2].body.size());
}

TEST_CASE("settled never goes back, never passes what may still arrive, and passes what was resent") {
  SenderBench bench;
  bench.lend(0);
  bench.lend(1, block_bytes, 0, block_bytes);
  bench.start();
  auto plans = bench.send(20);
  for (const FramePlan& plan : plans) CHECK(plan.header.settled == 1);
  const std::uint64_t largest = plans.back().header.packet_number;
  REQUIRE(bench.tell(1, largest, {{3, 4}}) == Violation::none);  // 3 and 4 go out again, under newer numbers
  std::uint64_t settled = 1;
  std::size_t resent = 0;
  for (const FramePlan& plan : bench.send(20)) {
    CHECK(plan.header.settled >= settled);
    CHECK(plan.header.settled <= plan.header.packet_number);
    settled = plan.header.settled;
    resent += plan.is_retransmission ? 1 : 0;
  }
  CHECK(resent == 2);
  CHECK(settled == largest + 1);
}

TEST_CASE("credit: no new byte beyond it, and a short block costs a whole one") {
  SenderBench bench;
  for (std::uint32_t slot = 0; slot < 4; ++slot) bench.lend(slot, 100, slot);
  bench.sender.start(bench.now);
  CHECK(bench.send().empty());
  CHECK(bench.sender.is_credit_limited());
  CHECK_FALSE(bench.sender.has_data());
  bench.credit = 2 * std::uint64_t{block_bytes} + block_bytes - 1;
  (void)bench.tell(0, 0, {}, false);
  CHECK(bench.send().size() == 2);
  CHECK(bench.sender.is_credit_limited());
  bench.credit = 0;  // a smaller claim takes nothing back and gives nothing
  (void)bench.tell(0, 0, {}, false);
  CHECK(bench.send().empty());
  bench.credit = 4 * std::uint64_t{block_bytes};
  (void)bench.tell(0, 0, {}, false);
  CHECK(bench.send().size() == 2);
}

TEST_CASE("repairs need no credit") {
  SenderBench bench;
  bench.lend(0);
  bench.lend(1, block_bytes, 0, block_bytes);
  bench.sender.start(bench.now);
  bench.credit = 10 * 1428;
  (void)bench.tell(0, 0, {}, false);
  const auto plans = bench.send();
  REQUIRE(plans.size() >= 9);
  REQUIRE(bench.tell(1, plans.back().header.packet_number, {{2, 3}}) == Violation::none);
  CHECK(bench.send().size() == 2);
}

TEST_CASE("N2 feedback that is older than the newest changes nothing") {
  SenderBench bench;
  bench.lend(0);
  bench.start();
  const auto plans = bench.send(20);
  bench.sequence = 50;
  REQUIRE(bench.tell(1, plans[4].header.packet_number) == Violation::none);
  const Instant told_at = bench.sender.feedback_at();
  const std::uint64_t credit = bench.sender.newest_feedback().credit_bytes_total;
  const std::size_t in_flight = bench.sender.in_flight();
  bench.now += 5ms;
  for (const std::uint64_t sequence : {49U, 50U, 0U}) {  // tell() counts one up: 51 is the newest
    bench.sequence = sequence;
    bench.credit = credit * 100;
    REQUIRE(bench.tell(1, plans[19].header.packet_number, {{1, 12}}) == Violation::none);
  }
  CHECK(bench.sender.totals().stale_feedback == 3);
  CHECK(bench.sender.in_flight() == in_flight);
  CHECK(bench.sender.totals().packets_lost == 0);
  CHECK(bench.sender.feedback_at() == told_at);
  CHECK(bench.sender.newest_feedback().credit_bytes_total == credit);
}

TEST_CASE("N9 ranges in flight are resent at the size of the new MTU") {
  SenderBench bench;
  bench.lend(0);
  bench.start();
  const auto plans = bench.send(10);
  bench.sender.set_body_max(700);
  const FramePlan& lost = plans[1];
  REQUIRE(bench.tell(1, plans.back().header.packet_number, {{lost.header.packet_number, lost.header.packet_number}}) == Violation::none);
  std::uint64_t offset = lost.header.offset;
  std::size_t repeats = 0;
  for (const FramePlan& plan : bench.send()) {
    CHECK(plan.body.size() <= 700);
    if (!plan.is_retransmission) continue;
    CHECK(plan.header.offset == offset);
    offset += plan.body.size();
    ++repeats;
  }
  CHECK(repeats == 3);  // 1425 = 700 + 700 + 25
  CHECK(offset == lost.header.offset + lost.body.size());
}

TEST_CASE("N9 a PING that proves the path follows the MTU") {
  SenderBench bench;
  bench.sender.prove_path(SenderBench::body_max);
  FramePlan plan;
  REQUIRE(bench.sender.next(bench.now, false, plan));
  CHECK(plan.body_bytes == SenderBench::body_max);
  bench.sender.set_body_max(900);
  bench.now += 1s;
  REQUIRE(bench.sender.next(bench.now, false, plan));
  CHECK(plan.body_bytes == 900);  // more would not fit the slot that the loop lends
}

TEST_CASE("T2 numbers pass 2^32 unharmed") {
  SenderBench bench{{.first_packet_number = (std::uint64_t{1} << 32) - 20, .skip_seed = 4}};
  bench.lend(0);
  bench.start();
  const auto plans = bench.send(40);
  CHECK(plans.back().header.packet_number >= (std::uint64_t{1} << 32) + 18);
  CHECK(plans.back().header.settled == (std::uint64_t{1} << 32) - 20);
  const std::uint64_t lost = plans[30].header.packet_number;
  REQUIRE(bench.tell(plans[0].header.settled, lost + 4, {{lost, lost}}) == Violation::none);
  CHECK(bench.sender.in_flight() < 12);
}
