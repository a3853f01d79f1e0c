// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Receiver: where frames go, what forged ones leave, credit, and when it reports.
#include <catch2/catch.hpp>
#include <cstring>
#include <optional>
#include <vector>

#include "engine/protocol/receiver.hpp"

using namespace onehop;
using namespace onehop::protocol;
using Verdict = Placement::Verdict;

namespace {

constexpr std::size_t frame = 1400;

struct ReceiverBench {
  explicit ReceiverBench(std::vector<std::uint64_t> sizes, std::size_t slots = 4)
      : file_sizes{std::move(sizes)},
        memory(slots * block_bytes),
        receiver{{.block_slots = slots, .body_bytes_max = frame, .file_sizes = file_sizes}} {
    for (std::uint32_t slot = 0; slot < slots; ++slot) receiver.add_free(buffer(slot));
  }
  BlockRef buffer(std::uint32_t slot) {
    return {.data = memory.data() + std::size_t{slot} * block_bytes, .slot = slot};
  }

  static wire::FrameHeader header(std::uint64_t number, std::uint32_t file, std::uint64_t offset,
                                  std::uint64_t settled = 0) {
    return {.file = file, .packet_number = number, .settled = settled, .offset = offset};
  }
  Placement place(std::uint32_t file, std::uint64_t offset, std::size_t bytes) {
    return receiver.place(header(0, file, offset), bytes);
  }
  /// take places and accepts one authentic frame.
  Verdict take(std::uint64_t packet_number, std::uint32_t file, std::uint64_t offset,
               std::size_t bytes, std::uint64_t settled = 0) {
    const auto h = header(packet_number, file, offset, settled);
    const Placement placement = receiver.place(h, bytes);
    if (placement.verdict == Verdict::fresh || placement.verdict == Verdict::duplicate)
      receiver.accept(now, h, bytes, placement, false);
    return placement.verdict;
  }
  /// take_block sends one whole block (or the rest of the file).
  void take_block(std::uint32_t file, std::uint64_t offset) {
    const std::uint64_t end = std::min<std::uint64_t>(offset + block_bytes, file_sizes[file]);
    if (offset == end) REQUIRE(take(number++, file, offset, 0) == Verdict::fresh);
    for (; offset < end; offset += frame)
      REQUIRE(take(number++, file, offset, std::min<std::uint64_t>(frame, end - offset)) ==
              Verdict::fresh);
  }
  /// ask: a frame of the newest number asks for a report.
  void ask() {
    const std::uint64_t newest = number == 0 ? 0 : number - 1;
    receiver.record(
        now, {.type = wire::FrameType::pong, .is_nack_requested = true, .packet_number = newest},
        false);
  }
  std::uint64_t credit() {
    ask();
    return report().value().credit_bytes_total;
  }
  std::optional<wire::Feedback> report() {
    if (!receiver.tick(now)) return std::nullopt;
    wire::Feedback feedback;
    REQUIRE(receiver.next_feedback(now, feedback));
    return feedback;
  }

  std::vector<std::uint64_t> file_sizes;
  std::vector<std::byte> memory;
  Receiver receiver;
  Instant now{50s};
  std::uint64_t number = 0;
};

}  // namespace

TEST_CASE("place accepts the borders: whole blocks, the last byte, empty files") {
  ReceiverBench bench{{1'000'000, 0, 5}};
  struct Case {
    std::uint32_t file;
    std::uint64_t offset;
    std::size_t bytes;
  };
  const auto good = GENERATE(values<Case>(
      {{0, 0, block_bytes}, {0, block_bytes - 1400, 1400}, {0, 999'999, 1}, {1, 0, 0}, {2, 0, 5}}));
  const Placement placement = bench.place(good.file, good.offset, good.bytes);
  CHECK(placement.verdict == Verdict::fresh);
  CHECK(placement.target.size() == good.bytes);
}

TEST_CASE("N1 place changes nothing: forged frames leave neither block, nor number, nor credit") {
  ReceiverBench bench{{10 * std::uint64_t{block_bytes}}, 2};
  bench.take(1, 0, 0, frame);
  const std::uint64_t credit = bench.credit();
  const ReceiverTotals before = bench.receiver.totals();
  // Far more blocks than there are buffers, each placed and filled with garbage, as a failed open()
  // does.
  for (std::uint64_t block = 1; block < 10; ++block)
    for (int i = 0; i < 50; ++i) {
      const Placement placement =
          bench.place(0, block * block_bytes + static_cast<std::uint64_t>(i) * frame, frame);
      REQUIRE(placement.verdict == Verdict::fresh);
      std::memset(placement.target.data(), 0x5A, placement.target.size());
    }
  CHECK(bench.receiver.totals().bytes_accepted == before.bytes_accepted);
  CHECK(bench.credit() == credit);
  CHECK(bench.place(0, 0, frame).verdict == Verdict::duplicate);
  BlockRef block;
  CHECK_FALSE(bench.receiver.pop_full(block));
  bench.take(2, 0, block_bytes, frame);  // the second buffer is still free
  CHECK(bench.place(0, 2 * std::uint64_t{block_bytes}, frame).verdict == Verdict::no_room);
}

TEST_CASE("N1 a forged frame never has verified bytes as its target") {
  ReceiverBench bench{{2 * std::uint64_t{block_bytes}}};
  bench.take(1, 0, 1400, 1400);
  bench.take(2, 0, 4200, 1400);
  CHECK(bench.place(0, 1400, 1400).verdict == Verdict::duplicate);
  CHECK(bench.place(0, 1500, 100).verdict == Verdict::duplicate);
  CHECK(bench.place(0, 1399, 2).verdict == Verdict::no_room);
  CHECK(bench.place(0, 2799, 2).verdict == Verdict::no_room);
  CHECK(bench.place(0, 0, 8000).verdict == Verdict::no_room);
  CHECK(bench.place(0, 2800, 1400).verdict == Verdict::fresh);
  CHECK(bench.place(0, 1400, 1400).target.empty());
}

TEST_CASE("duplicates count as received, and neither as bytes nor as credit") {
  ReceiverBench bench{{600'000}};
  bench.take_block(0, 0);
  const std::uint64_t credit = bench.credit();
  const std::uint64_t accepted = bench.receiver.totals().bytes_accepted;
  for (int i = 0; i < 100; ++i)
    REQUIRE(bench.take(bench.number++, 0, 0, frame) == Verdict::duplicate);
  CHECK(bench.credit() == credit);
  CHECK(bench.receiver.totals().bytes_accepted == accepted);
  CHECK(bench.receiver.totals().duplicate_bytes == 100 * frame);
  CHECK(bench.report() == std::nullopt);
  bench.ask();
  const auto report = bench.report();
  REQUIRE(report);
  CHECK(report->range_count == 0);
  CHECK(report->largest == bench.number - 1);
}

TEST_CASE("a block comes out once, whole, and with its length") {
  ReceiverBench bench{{0, 5, std::uint64_t{block_bytes} + 7}};
  bench.take_block(2, block_bytes);
  bench.take_block(0, 0);
  bench.take_block(2, 0);
  CHECK_FALSE(bench.receiver.is_complete());
  bench.take_block(1, 0);
  CHECK(bench.receiver.is_complete());
  std::vector<BlockRef> blocks;
  for (BlockRef block; bench.receiver.pop_full(block);) blocks.push_back(block);
  REQUIRE(blocks.size() == 4);
  CHECK((blocks[0].file == 2 && blocks[0].offset == block_bytes && blocks[0].length == 7));
  CHECK((blocks[1].file == 0 && blocks[1].length == 0));
  CHECK((blocks[2].file == 2 && blocks[2].length == block_bytes));
  CHECK((blocks[3].file == 1 && blocks[3].length == 5));
}

TEST_CASE("skipped blocks count as arrived and are never placed") {
  ReceiverBench bench{{2 * std::uint64_t{block_bytes}, 0}};
  bench.receiver.mark_skipped(0, block_bytes);
  bench.receiver.mark_skipped(0, block_bytes);
  bench.receiver.mark_skipped(7, 0);
  bench.receiver.mark_skipped(0, 64 * std::uint64_t{block_bytes});
  CHECK(bench.place(0, block_bytes + 100, 50).verdict == Verdict::duplicate);
  bench.take_block(0, 0);
  CHECK_FALSE(bench.receiver.is_complete());
  bench.receiver.mark_skipped(1, 0);
  CHECK(bench.receiver.is_complete());
}

TEST_CASE("credit counts whole blocks and never shrinks") {
  ReceiverBench bench{{100, 100, 100, 100, 100, 100, 100, 100}, 4};
  bench.receiver.set_rx_ring({.capacity = mib(64), .scope = QueueScope::own_ring});
  bench.take_block(0, 0);
  std::uint64_t credit = bench.credit();
  CHECK(credit == 4 * std::uint64_t{block_bytes});
  for (std::uint32_t file = 1; file < 4; ++file) bench.take_block(file, 0);
  CHECK(bench.credit() == credit);  // four short files fill four buffers
  CHECK(bench.place(4, 0, 100).verdict == Verdict::no_room);
  BlockRef block;
  REQUIRE(bench.receiver.pop_full(block));
  CHECK(bench.credit() == credit);
  bench.receiver.add_free(bench.buffer(block.slot));
  CHECK(bench.credit() == credit + block_bytes);
  credit = bench.credit();
  bench.receiver.set_rx_ring(
      {.capacity = kib(1), .scope = QueueScope::own_ring});  // the ring shrinks
  CHECK(bench.credit() == credit);
  CHECK(bench.place(4, 0, 100).verdict == Verdict::fresh);
}

TEST_CASE("credit leaves no more under way than the receive ring holds") {
  ReceiverBench bench{{100 * std::uint64_t{block_bytes}}, 64};
  bench.receiver.set_rx_ring({.capacity = kib(1000), .scope = QueueScope::own_ring});
  bench.take(0, 0, 0, frame);
  // The ring was unknown when the buffers came: 256 KiB then. Now three quarters of what it holds.
  CHECK(bench.credit() == frame + 750 * 1024);
}

TEST_CASE("no report before the first authentic frame, then one per srtt/4 in 2 to 25 ms") {
  ReceiverBench bench{{100 * std::uint64_t{block_bytes}}, 64};
  CHECK_FALSE(bench.receiver.tick(bench.now));
  struct Case {
    Nanos srtt, interval;
  };
  const auto timing = GENERATE(
      values<Case>({{0ms, 5ms}, {1ms, 2ms}, {8ms, 2ms}, {20ms, 5ms}, {60ms, 15ms}, {400ms, 25ms}}));
  bench.receiver.set_srtt(timing.srtt);
  std::vector<Instant> reports;
  for (int i = 0; i < 2000; ++i, bench.now += 100us) {
    bench.take(bench.number, 0, bench.number % 187 * frame, frame);
    ++bench.number;
    if (bench.report()) reports.push_back(bench.now);
  }
  REQUIRE(reports.size() > 5);
  for (std::size_t i = 2; i < reports.size(); ++i)
    CHECK(reports[i] - reports[i - 1] == timing.interval);
}

TEST_CASE("a report comes early when half of a small ring's room is new, and not in each turn") {
  // Goal:   the 2 ms between reports do not hold the sender to one ring per 2 ms.
  // Method: 100 frames in each 50 us, a ring whose three quarters are 750 KiB.
  // Bounds: half of that is 263 frames: a report in each third turn; the credit told is never used
  // up.
  ReceiverBench bench{{100 * std::uint64_t{block_bytes}}, 100};
  bench.receiver.set_srtt(1ms);
  bench.receiver.set_rx_ring({.capacity = kib(1000), .scope = QueueScope::own_ring});
  std::uint64_t offset = 0, told = 0;
  int reports = 0;
  for (int turn = 0; turn < 60; ++turn, bench.now += 50us) {
    for (int i = 0; i < 100; ++i) {
      const std::uint64_t end =
          std::min<std::uint64_t>(offset + frame, (offset / block_bytes + 1) * block_bytes);
      REQUIRE(bench.take(bench.number++, 0, offset, end - offset) == Verdict::fresh);
      offset = end;
    }
    if (told > 0) CHECK(offset < told);
    const bool is_due = bench.receiver.is_credit_due(bench.now);
    if (const auto report = bench.report()) {
      told = report->credit_bytes_total;
      ++reports;
      CHECK_FALSE(bench.receiver.is_credit_due(bench.now));
    } else {
      CHECK_FALSE(is_due);
    }
  }
  CHECK(reports >= 18);
  CHECK(reports <= 22);
}

TEST_CASE("with nothing new it reports each 100 ms") {
  ReceiverBench bench{{1'000'000}};
  bench.take(0, 0, 0, frame);
  CHECK(bench.report());
  int reports = 0;
  for (int i = 0; i < 1000; ++i, bench.now += 1ms) reports += bench.report() ? 1 : 0;
  CHECK(reports == 9);
}

TEST_CASE("a gap is told at once, once, three packets and srtt/8 later, and at most once per ms") {
  ReceiverBench bench{{100 * std::uint64_t{block_bytes}}, 64};
  bench.receiver.set_srtt(80ms);  // reports each 20 ms, a gap is lost after 10 ms
  const auto take = [&](std::uint64_t number) {
    REQUIRE(bench.take(number, 0, number * 1000, 1000) == Verdict::fresh);
  };
  take(0);
  REQUIRE(bench.report());
  bench.now += 1ms;
  take(2);  // 1 is missing
  take(3);
  bench.now += 10ms;
  CHECK_FALSE(bench.report());  // only two behind it
  take(4);
  const auto nack = bench.report();
  REQUIRE(nack);
  REQUIRE(nack->range_count == 1);
  CHECK((nack->missing[0].first == 1 && nack->missing[0].last == 1));
  for (int i = 0; i < 8; ++i) {
    bench.now += 1ms;
    take(static_cast<std::uint64_t>(5 + i));
    CHECK_FALSE(bench.report());  // the same gap is not told at once again
  }
}

TEST_CASE("immediate NACKs keep a millisecond between them") {
  ReceiverBench bench{{100 * std::uint64_t{block_bytes}}, 64};
  bench.receiver.set_srtt(1us);  // any gap is old enough; reports each 2 ms
  std::vector<Instant> reports;
  for (std::uint64_t number = 0; number < 2000; ++number, bench.now += 50us) {
    if (number % 8 == 3) continue;  // a gap each 400 us
    REQUIRE(bench.take(number, 0, number % 262 * 1000, 1000) != Verdict::malformed);
    if (bench.report()) reports.push_back(bench.now);
  }
  CHECK(reports.size() > 70);  // 50 would be those of each 2 ms
  for (std::size_t i = 1; i < reports.size(); ++i) CHECK(reports[i] - reports[i - 1] >= 1ms);
}

// Goal:   where numbers come late, a gap is not told of before it is twice as old as that, and then
// it is told of though nothing more comes. What stands behind it is not told as received meanwhile.
TEST_CASE("on a path that reorders, a report ends below the first gap that may only be late") {
  ReceiverBench bench{{100 * std::uint64_t{block_bytes}}, 64};
  bench.receiver.set_srtt(20ms);  // reports each 5 ms
  const auto take = [&](std::initializer_list<std::uint64_t> numbers) {
    for (const std::uint64_t number : numbers)
      REQUIRE(bench.take(bench.number = number, 0, number * 1000, 1000) == Verdict::fresh);
    ++bench.number;
  };
  take({0, 2});
  bench.now += 1ms;
  take({1, 3});
  REQUIRE(bench.report());
  bench.now += 1ms;
  take({5, 6, 7, 9});
  const bool is_asked = GENERATE(true, false);
  if (is_asked)
    bench.ask();
  else
    bench.now += 4ms;  // the next is due, and 10 was never missing when it comes
  if (!is_asked) take({11, 12, 13});
  const auto young = bench.report();
  REQUIRE(young);
  CHECK(young->largest == (is_asked ? 3 : 9));
  CHECK(young->range_count == (is_asked ? 0 : 2));
  CHECK_FALSE(young->has_more);
  bench.now += 1ms;
  CHECK_FALSE(bench.report());
  bench.now += is_asked ? 1ms : 4ms;
  CHECK(bench.receiver.next_deadline() <= bench.now);
  const auto old = bench.report();
  REQUIRE(old);
  CHECK(old->largest == (is_asked ? 9 : 13));
  CHECK(old->range_count == (is_asked ? 2 : 3));
}
