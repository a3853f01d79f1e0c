// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// The rules of the Sender for numbers, losses, blocks and credit, one by one, against hand-made
// feedback. What both halves do together is in pair_test.cpp.
#include "tests/engine/protocol/sender_bench.hpp"

namespace onehop::protocol {

TEST_CASE("N4 an acknowledgement of what was never sent ends the session", "[transfer][sender]") {
  SenderBench bench;
  bench.grant(plenty);
  bench.add();
  const auto sent = bench.send_data(10);
  CHECK(bench.hear(1, number_of(sent.back()) + 1) == wire::Violation::acked_unsent);
  CHECK(bench.hear(1, ~std::uint64_t{0}) == wire::Violation::acked_unsent);
}

// Goal:   one number in ever longer stretches is left out, and only who received nothing would
// acknowledge it.
TEST_CASE("N4 an acknowledgement of a number that was left out ends the session",
          "[transfer][sender]") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    SenderBench bench{{.body_bytes_max = 512, .block_slots = 8, .skip_seed = seed}};
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
      if (numbers[i] != numbers[i - 1] + 1)
        left_out.push_back({numbers[i - 1] + 1, numbers[i] - 1});
    REQUIRE(left_out.size() == bench.sender.totals().packets_skipped);
    skipped = left_out.front().first;
    CHECK(skipped <= 257);
    CHECK(left_out.front().last == skipped);
    SECTION("an honest report lists it") {
      CHECK(bench.hear(1, numbers.back(), left_out) == wire::Violation::none);
      CHECK(bench.sender.in_flight() == 0);
    }
    SECTION("a guess does not") {
      CHECK(bench.hear(1, numbers.back()) == wire::Violation::acked_skipped);
    }
  }
}

TEST_CASE("N4 the stretches between numbers left out grow to 2^18 and no further",
          "[transfer][sender]") {
  SenderBench bench{{.body_bytes_max = 1400, .block_slots = 8}};
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
    while (bench.sender.pop_sent(block)) {
    }
    while (bench.sender.pop_freed(block)) bench.free.push_back(block.slot);
  }
  REQUIRE(stretches.size() > 12);
  CHECK(stretches.front() <= 257);
  CHECK(*std::max_element(stretches.begin(), stretches.end()) <= (1U << 18) + 1);
  CHECK(*std::max_element(stretches.begin(), stretches.end()) >= (1U << 16));
}

TEST_CASE("N2 N5 old feedback is ignored, and credit never shrinks", "[transfer][sender]") {
  SenderBench bench;
  bench.grant(plenty);
  bench.add();
  const auto sent = bench.send_data(20);
  CHECK(bench.hear(1, number_of(sent[9])) == wire::Violation::none);
  const std::size_t before = bench.sender.in_flight();
  bench.sequence -= 1;
  CHECK(bench.hear(1, number_of(sent[19])) == wire::Violation::none);
  CHECK(bench.sender.in_flight() == before);
  bench.credit = 0;
  CHECK(bench.hear(1, number_of(sent[9])) == wire::Violation::none);
  CHECK(bench.sender.has_data());
}

TEST_CASE("a listed number is lost when three newer ones were received, and is sent again once",
          "[transfer][sender]") {
  SenderBench bench;
  bench.grant(plenty);
  bench.add();
  const auto sent = bench.send_data(30);
  const auto n = [&](std::size_t i) { return number_of(sent[i]); };
  bench.now += 1ms;
  // Frames 10..12 are listed; two newer ones have come: perhaps they are only late.
  REQUIRE(bench.hear(1, n(14), {{n(10), n(12)}}) == wire::Violation::none);
  CHECK(bench.sender.totals().packets_lost == 0);
  REQUIRE(bench.hear(1, n(19), {{n(10), n(12)}, {n(15), n(18)}}) == wire::Violation::none);
  CHECK(bench.sender.totals().packets_lost ==
        3);  // 13, 14 and 19: three beyond 10..12, and one beyond 15..18
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
  SenderBench bench;
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
  SenderBench bench;
  bench.grant(plenty);
  bench.add();
  FramePlan ping;
  for (int i = 0; i < 6; ++i) {
    bench.now += 2s;
    REQUIRE(bench.sender.next(bench.now, false, ping));
    REQUIRE(ping.header.type == wire::FrameType::ping);
  }
  const std::uint64_t pings_end = ping.header.packet_number;
  CHECK(ping.header.settled == 1);
  const auto sent = bench.send_data(10);
  const auto n = [&](std::size_t i) { return number_of(sent[i]); };
  REQUIRE(bench.hear(1, n(9), {{1, pings_end}, {n(4), n(4)}}) == wire::Violation::none);
  const auto again = bench.send_data(1);
  CHECK(again[0].is_retransmission);
  CHECK(again[0].header.settled == number_of(again[0]));
  CHECK(bench.send_data(1)[0].header.settled == number_of(again[0]));
}

TEST_CASE("settled passes a number left out with the next frame", "[transfer][sender]") {
  SenderBench bench{{.body_bytes_max = 1400, .block_slots = 8}};
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
  SenderBench bench;
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

TEST_CASE("C4 an empty file is one frame without a body that ends its block",
          "[transfer][sender]") {
  SenderBench bench;
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

TEST_CASE("a block is cut into equal frames, told as sent once, freed when it has arrived",
          "[transfer][sender]") {
  SenderBench bench;
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
    if (const std::uint64_t left_out = number_of(sent[i]) - 1; left_out != number_of(sent[i - 1]))
      missing.push_back({left_out, left_out});
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
  SenderBench bench;
  CHECK_FALSE(bench.sender.has_data());
  bench.add();
  CHECK(bench.sender.is_credit_limited());
  bench.grant(100'000);
  const auto sent = bench.send_data(1000);
  CHECK(bench.sender.totals().new_bytes_started >= 100'000);
  CHECK(bench.sender.totals().new_bytes_started <
        100'000 + 1400);  // the frame that used the last of it up
  CHECK(bench.sender.is_credit_limited());
  bench.grant(std::uint64_t{1} << 40);
  CHECK(bench.send_data(1000).size() + sent.size() == 188);
  bench.grant((std::uint64_t{1} << 62) - 1);
  bench.add();
  CHECK(bench.send_data(1000).size() == 188);
}

// Goal:   whole blocks of credit are never passed, whatever the lengths: the peer has that many
// buffers.
TEST_CASE("credit of n blocks lets n blocks start, however short they are", "[transfer][sender]") {
  SenderBench bench;
  for (const std::uint32_t length : {10U, block_bytes, 0U, 100'000U, block_bytes - 1, 7U, 1U, 2U})
    bench.add(length);
  bench.grant(4 * std::uint64_t{block_bytes});
  std::vector<std::uint32_t> files;
  for (const auto& plan : bench.send_data(10'000)) files.push_back(plan.header.file);
  CHECK(*std::max_element(files.begin(), files.end()) == 3);
  CHECK(bench.sender.totals().new_bytes_started == 10 + block_bytes + 100'000);
}

}  // namespace onehop::protocol
