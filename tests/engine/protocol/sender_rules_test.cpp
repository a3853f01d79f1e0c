// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Sender: credit, repairs, and numbers skipped on purpose.
#include <algorithm>
#include <catch2/catch.hpp>

#include "tests/engine/protocol/rules_bench.hpp"

using namespace onehop;
using namespace onehop::protocol;
using wire::Violation;

TEST_CASE("N4 feedback for a number skipped on purpose ends the session") {
  const auto seed = GENERATE(range(std::uint64_t{1}, std::uint64_t{9}));
  CAPTURE(seed);
  RulesBench bench{{.skip_seed = seed}};
  for (std::uint32_t slot = 0; slot < 4; ++slot)
    bench.lend(slot, block_bytes, 0, slot * std::uint64_t{block_bytes});
  bench.start();
  const auto plans = bench.send();
  std::vector<std::uint64_t> numbers;
  for (const FramePlan& plan : plans) numbers.push_back(plan.header.packet_number);
  const auto gap =
      std::adjacent_find(numbers.begin(), numbers.end(), [](auto a, auto b) { return b != a + 1; });
  REQUIRE(gap != numbers.end());  // the first comes within 257 numbers
  const std::uint64_t skipped = *gap + 1;
  CHECK(skipped <= 1 + 257);
  CHECK(bench.sender.totals().packets_skipped >= 1);
  SECTION("an honest peer lists it") {
    CHECK(bench.tell(1, skipped + 1, {{skipped, skipped}}) == Violation::none);
  }
  SECTION("a lying peer does not") {
    CHECK(bench.tell(1, skipped + 1) == Violation::acked_skipped);
  }
  SECTION("nor does one that speaks of nothing else") {
    CHECK(bench.tell(skipped, skipped) == Violation::acked_skipped);
  }
}

TEST_CASE("credit: no new byte beyond it, and a short block costs a whole one") {
  RulesBench bench;
  for (std::uint32_t slot = 0; slot < 4; ++slot) bench.lend(slot, 100, slot);
  bench.sender.start(bench.now);
  CHECK(bench.send().empty());
  CHECK(bench.sender.is_credit_limited());
  CHECK_FALSE(bench.sender.has_data());
  bench.credit = 2 * std::uint64_t{block_bytes};
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
  RulesBench bench;
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

// A loss ratio is of these: over all that was sent, what nobody has spoken of yet would pass for
// received.
TEST_CASE("of what was sent, told is what reports have spoken for") {
  RulesBench bench;
  bench.lend(0);
  bench.start();
  const auto plans = bench.send();
  REQUIRE(plans.size() > 100);
  const auto tell_until = [&](std::size_t plan) {
    (void)bench.tell(1, plans[plan].header.packet_number);
  };
  const auto untold = [&] {
    return bench.sender.totals().packets_sent - bench.sender.totals().packets_reported;
  };
  const std::uint64_t skipped =
      bench.sender.totals().packets_skipped;  // numbers of none that was sent
  tell_until(49);
  const std::uint64_t left = untold();
  CHECK(left >= plans.size() - 50);
  CHECK(left <= plans.size() - 50 + skipped);
  tell_until(29);  // an older report
  CHECK(untold() == left);
  tell_until(59);
  CHECK(untold() <= left - 10);
}

TEST_CASE("N9 a PING that proves the path follows the MTU") {
  RulesBench bench;
  bench.sender.prove_path(RulesBench::body_max);
  FramePlan plan;
  REQUIRE(bench.sender.next(bench.now, false, plan));
  CHECK(plan.body_bytes == RulesBench::body_max);
  bench.sender.set_body_max(900);
  bench.now += 1s;
  REQUIRE(bench.sender.next(bench.now, false, plan));
  CHECK(plan.body_bytes == 900);  // more would not fit the slot that the loop lends
}

TEST_CASE("T2 numbers pass 2^32 unharmed") {
  RulesBench bench{{.first_packet_number = (std::uint64_t{1} << 32) - 20, .skip_seed = 4}};
  bench.lend(0);
  bench.start();
  const auto plans = bench.send(40);
  CHECK(plans.back().header.packet_number >= (std::uint64_t{1} << 32) + 18);
  CHECK(plans.back().header.settled == (std::uint64_t{1} << 32) - 20);
  const std::uint64_t lost = plans[30].header.packet_number;
  REQUIRE(bench.tell(plans[0].header.settled, lost + 4, {{lost, lost}}) == Violation::none);
  CHECK(bench.sender.in_flight() < 12);
}
