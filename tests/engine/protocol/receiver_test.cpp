// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// The rules of the Receiver, one by one. What both halves do together is in pair_test.cpp.
#include <catch2/catch.hpp>

#include <array>
#include <vector>

#include "tests/engine/protocol/receiver_bench.hpp"

namespace onehop::protocol {
namespace {

using Verdict = Placement::Verdict;
constexpr std::uint64_t B = block_bytes;
using Bench = ReceiverBench;

}  // namespace

// Goal:   a frame whose tag does not verify is placed and never accepted; it must leave no trace.
TEST_CASE("N1 N3 placing forged frames changes nothing", "[transfer][receiver]") {
  Bench bench{{8 * B}, 2};
  for (std::uint64_t i = 0; i < 1000; ++i)
    CHECK(bench.receiver.place(Bench::frame(i, 0, 0, i % 8 * B), 1000).verdict == Verdict::fresh);
  CHECK(bench.receiver.last_received_at() == Instant{});
  CHECK_FALSE(bench.receiver.tick(bench.now));
  CHECK(bench.data(0, 0, 1000) == Verdict::fresh);
  CHECK(bench.data(0, B, 1000) == Verdict::fresh);
  CHECK(bench.data(0, 2 * B, 1000) ==
        Verdict::no_room);  // both buffers are bound now, by accepted frames only
  // A range that has arrived is never the target again.
  CHECK(bench.receiver.place(Bench::frame(9, 1, 0, 0), 1000).target.data() == nullptr);
}

TEST_CASE("N5 frames outside their file or across a block are refused", "[transfer][receiver]") {
  Bench bench{{B + 100, 0}};
  const auto verdict = [&](std::uint32_t file, std::uint64_t offset, std::size_t bytes) {
    return bench.receiver.place(Bench::frame(1, 1, file, offset), bytes).verdict;
  };
  CHECK(verdict(2, 0, 10) == Verdict::malformed);
  CHECK(verdict(~std::uint32_t{0}, 0, 10) == Verdict::malformed);
  CHECK(verdict(0, B + 100, 1) == Verdict::malformed);
  CHECK(verdict(0, B + 99, 2) == Verdict::malformed);
  CHECK(verdict(0, B + 100, 0) == Verdict::malformed);
  CHECK(verdict(0, 0, 0) == Verdict::malformed);
  CHECK(verdict(0, B - 1, 2) == Verdict::malformed);
  CHECK(verdict(0, ~std::uint64_t{0}, 1) == Verdict::malformed);
  CHECK(verdict(0, ~std::uint64_t{0} - 5, 100) == Verdict::malformed);
  CHECK(verdict(1, 0, 1) == Verdict::malformed);
  CHECK(verdict(1, 1, 0) == Verdict::malformed);
  CHECK(verdict(0, 0, B + 1) == Verdict::malformed);
  CHECK(verdict(0, B - 1, 1) == Verdict::fresh);
  CHECK(verdict(0, B, 100) == Verdict::fresh);
  CHECK(verdict(1, 0, 0) == Verdict::fresh);
}

TEST_CASE("N2 a range is accepted once; a part of one is refused and stays listed",
          "[transfer][receiver]") {
  Bench bench{{B}};
  CHECK(bench.data(0, 1000, 1000) == Verdict::fresh);
  CHECK(bench.data(0, 1000, 1000) == Verdict::duplicate);
  CHECK(bench.data(0, 1200, 300) == Verdict::duplicate);
  CHECK(bench.data(0, 500, 1000) == Verdict::no_room);  // number 4
  CHECK(bench.data(0, 500, 500) == Verdict::fresh);
  CHECK(bench.data(0, 0, 500) == Verdict::fresh);
  CHECK(bench.receiver.totals().bytes_accepted == 2000);
  CHECK(bench.receiver.totals().duplicate_bytes == 1300);
  const auto feedback = bench.one_report();
  REQUIRE(feedback.range_count == 1);
  CHECK(feedback.missing[0].first == 4);
  CHECK(feedback.missing[0].last == 4);
  CHECK(feedback.largest == 6);
}

TEST_CASE("C4 an empty file, a short one and a skipped block complete a transfer",
          "[transfer][receiver]") {
  Bench bench{{0, 10, 2 * B}};
  bench.receiver.mark_skipped(2, B);
  bench.receiver.mark_skipped(2, B);
  bench.receiver.mark_skipped(9, 0);      // unknown file
  bench.receiver.mark_skipped(2, 2 * B);  // behind its end
  CHECK(bench.data(2, B, 1000) == Verdict::duplicate);
  CHECK(bench.data(0, 0, 0) == Verdict::fresh);
  CHECK(bench.data(0, 0, 0) == Verdict::duplicate);
  CHECK(bench.data(1, 0, 10) == Verdict::fresh);
  CHECK_FALSE(bench.receiver.is_complete());
  CHECK(bench.data(2, 0, B) == Verdict::fresh);
  CHECK(bench.receiver.is_complete());
  std::vector<std::uint32_t> lengths;
  for (BlockRef block; bench.receiver.pop_full(block);) lengths.push_back(block.length);
  CHECK(lengths == std::vector<std::uint32_t>{0, 10, block_bytes});
}

// Goal:   credit = min(buffers, what came + three quarters of the ring), in buffer bytes, and it
// never shrinks.
TEST_CASE("credit counts buffers and the room of the receive ring", "[transfer][receiver]") {
  Bench bench{{20 * B}, 4};
  bench.ping_as(1);
  bench.next_number = 2;
  SECTION("a port that cannot read its ring gets 256 KiB") {
    CHECK(bench.one_report().credit_bytes_total == 256 * 1024);
  }
  SECTION("a small ring gets 64 frames") {
    bench.receiver.set_rx_ring({.capacity = {10'000}, .scope = QueueScope::own_ring});
    CHECK(bench.one_report().credit_bytes_total == 64 * 1400);
  }
  SECTION("a large ring leaves the buffers as the limit, and they count whole blocks") {
    bench.receiver.set_rx_ring({.capacity = mib(100), .scope = QueueScope::own_ring});
    CHECK(bench.one_report().credit_bytes_total == 4 * B);
    CHECK(bench.data(0, 0, B) == Verdict::fresh);
    BlockRef block;
    REQUIRE(bench.receiver.pop_full(block));
    CHECK(bench.one_report().credit_bytes_total == 4 * B);  // at the file side
    bench.receiver.add_free(block);
    CHECK(bench.one_report().credit_bytes_total == 5 * B);
    bench.receiver.set_rx_ring({.capacity = {10'000}, .scope = QueueScope::own_ring});
    CHECK(bench.one_report().credit_bytes_total == 5 * B);  // never less
  }
  SECTION("a ring between gives three quarters beyond what came") {
    bench.receiver.set_rx_ring({.capacity = {400'000}, .scope = QueueScope::own_ring});
    CHECK(bench.one_report().credit_bytes_total == 300'000);
    CHECK(bench.data(0, 0, 1000) == Verdict::fresh);
    CHECK(bench.one_report().credit_bytes_total == 301'000);
  }
}

TEST_CASE("credit that grows when a block comes back makes a report due", "[transfer][receiver]") {
  Bench bench{{20 * B}, 1};
  bench.receiver.set_rx_ring({.capacity = mib(100), .scope = QueueScope::own_ring});
  CHECK(bench.data(0, 0, B) == Verdict::fresh);
  BlockRef block;
  REQUIRE(bench.receiver.pop_full(block));
  REQUIRE(bench.receiver.tick(bench.now));
  (void)bench.report();
  bench.now += 30ms;
  CHECK_FALSE(bench.receiver.tick(bench.now));  // nothing new
  bench.receiver.add_free(block);
  CHECK(bench.receiver.next_deadline() <= bench.now);
  REQUIRE(bench.receiver.tick(bench.now));
  CHECK(bench.report().back().credit_bytes_total == 2 * B);
}

TEST_CASE("the application buffer counts whole blocks that were not given back",
          "[transfer][receiver]") {
  Bench bench{{5 * B + 7}, 4};
  const auto buffer = [&] { return bench.receiver.app_buffer(bench.now); };
  CHECK(buffer().capacity == Bytes{4 * B});
  CHECK(bench.data(0, 5 * B, 7) == Verdict::fresh);
  CHECK(bench.data(0, 0, 100'000) == Verdict::fresh);
  CHECK(buffer().occupancy == Bytes{7});  // the open block waits for frames, not for the disk
  BlockRef block;
  REQUIRE(bench.receiver.pop_full(block));
  CHECK(block.length == 7);
  CHECK(buffer().occupancy == Bytes{7});
  bench.receiver.add_free(block);
  CHECK(buffer().occupancy == Bytes{0});
  CHECK(buffer().drained_total == Bytes{7});
}

// Goal:   told that reports may be 50 ms apart, the receiver sends them with its answers to PINGs
// and hardly ever else. Method: a frame each 0.1 ms for 2 s, a PING each 50 ms; count reports, and
// those without a PONG beside them. Bounds: one report per PING, give or take one at each end. By
// default there are ten times as many.
TEST_CASE("told to be rare, reports ride with the answers to PINGs", "[transfer][receiver]") {
  const std::uint32_t told_us = GENERATE(0U, 50'000U);
  CAPTURE(told_us);
  Bench bench{{100 * B}, 100};
  bench.receiver.set_srtt(1ms);
  int reports = 0, alone = 0;
  wire::Pong pong;
  for (int i = 0; i < 20'000; ++i, bench.now += 100us) {
    REQUIRE(bench.data(0, static_cast<std::uint64_t>(i) * 128, 128) == Verdict::fresh);
    if (i % 500 == 0) bench.ping_as(bench.next_number++, told_us);
    const bool has_pong = bench.receiver.pop_pong(bench.now, pong);
    if (!bench.receiver.tick(bench.now)) continue;
    (void)bench.report();
    ++reports;
    if (!has_pong) ++alone;
  }
  CHECK(bench.receiver.feedback_interval() == Nanos{told_us * 1us});
  if (told_us > 0)
    CHECK((reports >= 39 && reports <= 41 && alone <= 1));
  else
    CHECK(reports > 500);
}

// Rare reports must not stop a sender for want of credit: most of the ring used up is told at once.
TEST_CASE("credit is told in time however rare reports are", "[transfer][receiver]") {
  Bench bench{{100 * B}, 100};
  bench.receiver.set_rx_ring({.capacity = Bytes{1'000'000}, .scope = QueueScope::own_ring});
  bench.ping_as(bench.next_number++, 500'000);
  std::uint64_t credit = bench.one_report().credit_bytes_total, sent = 0;
  for (int i = 0; i < 4000; ++i, bench.now += 100us, sent += 1400) {
    REQUIRE(bench.data(0, sent, std::min<std::uint64_t>(1400, B - sent % B)) == Verdict::fresh);
    sent -= 1400 - std::min<std::uint64_t>(1400, B - sent % B);
    if (bench.receiver.tick(bench.now)) credit = bench.report().back().credit_bytes_total;
    REQUIRE(credit > sent + 1400);
  }
}

// Every srtt/4 in 2..25 ms, 5 ms before the first sample.
TEST_CASE("reports come every quarter of srtt while something arrives, and rarely when not",
          "[transfer][receiver]") {
  const auto [srtt, interval] =
      GENERATE(table<Nanos, Nanos>({{0ns, 5ms}, {1ms, 2ms}, {40ms, 10ms}, {1s, 25ms}}));
  Bench bench{{20 * B}};
  bench.receiver.set_srtt(srtt);
  CHECK_FALSE(bench.receiver.tick(bench.now));  // nothing heard yet
  CHECK(bench.receiver.next_deadline() == Instant::max());
  std::vector<Instant> reports;
  for (int i = 0; i < 4000; ++i, bench.now += 100us) {
    if (i < 2000)
      REQUIRE(bench.data(0, static_cast<std::uint64_t>(i) * 100, 100) == Verdict::fresh);
    if (bench.receiver.tick(bench.now)) reports.push_back(bench.now), (void)bench.report();
    REQUIRE(bench.receiver.next_deadline() > bench.now);  // no spin
  }
  REQUIRE(reports.size() > 5);
  CHECK(reports[1] - reports[0] == interval);
  CHECK(reports[2] - reports[1] == interval);
  CHECK(reports.back() - reports[reports.size() - 2] == 100ms);
}

TEST_CASE("a gap with three numbers behind it is told at once, at most once per millisecond",
          "[transfer][receiver]") {
  Bench bench{{20 * B}};
  bench.receiver.set_srtt(80ms);  // reports every 20 ms; a gap is old after 10 ms
  const auto next = [&](std::uint64_t number) {
    (void)bench.data_as(number, 0, number * 100, 100);
    return bench.receiver.tick(bench.now);
  };
  REQUIRE(next(1));
  (void)bench.report();
  bench.now += 2ms;
  CHECK_FALSE(next(3));  // 2 is missing
  CHECK_FALSE(next(4));
  CHECK_FALSE(next(5));  // three behind it, but younger than srtt/8
  bench.now += 10ms;
  REQUIRE(next(6));
  const auto frames = bench.report();
  REQUIRE(frames.size() == 1);
  CHECK(frames[0].missing[0].first == 2);
  bench.now += 2ms;
  CHECK_FALSE(next(7));  // the same gap is not told again before its time

  // A gap that a periodic report listed with too little behind it has its NACK when enough came.
  CHECK_FALSE(next(9));
  bench.now += 20ms;
  REQUIRE(next(10));
  (void)bench.report();
  bench.now += 1ms;
  REQUIRE(next(11));
  (void)bench.report();

  Bench fast{{20 * B}};
  fast.receiver.set_srtt(8us);  // a gap is old at once
  std::vector<Instant> reports;
  for (std::uint64_t i = 1; i < 200; ++i, fast.now += 10us) {  // every other number is lost
    (void)fast.data_as(2 * i, 0, i * 100, 100);
    if (fast.receiver.tick(fast.now)) reports.push_back(fast.now), (void)fast.report();
  }
  for (std::size_t i = 1; i < reports.size(); ++i) CHECK(reports[i] - reports[i - 1] >= 1ms);
  CHECK(reports.size() >= 2);
}

TEST_CASE("a report of many gaps is split in order, in at most four frames that fit",
          "[transfer][receiver]") {
  const auto gaps = GENERATE(0U, 1U, 160U, 161U, 500U, 640U, 2000U);
  Bench bench{{200 * B}};
  for (std::uint64_t i = 0; i <= gaps; ++i)
    REQUIRE(bench.data_as(1 + 2 * i, 0, i * 50, 50) == Verdict::fresh);
  REQUIRE(bench.receiver.tick(bench.now));
  const auto frames = bench.report();
  CHECK(frames.size() ==
        std::clamp<std::size_t>((gaps + 159) / 160, 1, wire::frames_per_report_max));
  std::uint64_t from = 1, listed = 0, sequence = 0;
  for (const auto& frame : frames) {
    CHECK(frame.sequence > sequence);
    CHECK(frame.from == from);
    CHECK(frame.largest >= frame.from);
    sequence = frame.sequence;
    from = frame.largest + 1;
    listed += frame.range_count;
    std::array<std::byte, wire::feedback_body_bytes_max> body;
    std::size_t covered = 0;
    const std::size_t length = wire::encode_feedback(frame, body, covered);
    CHECK(covered == frame.range_count);
    wire::Feedback decoded;
    REQUIRE(wire::decode_feedback({body.data(), length}, decoded));
    CHECK(decoded.largest == frame.largest);
  }
  if (frames.size() < wire::frames_per_report_max || gaps <= 640) {
    CHECK(frames.back().largest == 1 + 2 * std::uint64_t{gaps});
    CHECK(listed == gaps);
  } else {
    CHECK(listed == 640);
    CHECK(frames.back().largest == frames.back().missing[159].last + 1);
  }
}

TEST_CASE("T2 settled makes the Receiver forget, also near 2^63", "[transfer][receiver]") {
  const auto first =
      GENERATE(std::uint64_t{1}, (std::uint64_t{1} << 32) - 2, (std::uint64_t{1} << 63) - 2);
  Bench bench{{20 * B}};
  bench.settled = first;
  for (std::uint64_t i = 0; i < 10; ++i)
    REQUIRE(bench.data_as(first + 2 * i, 0, i * 100, 100) == Verdict::fresh);
  CHECK(bench.one_report().range_count == 9);
  bench.settled = first + 12;
  REQUIRE(bench.data_as(first + 20, 0, 5000, 100) == Verdict::fresh);
  auto feedback = bench.one_report();
  CHECK(feedback.from == first + 12);
  CHECK(feedback.range_count == 4);
  CHECK(feedback.missing[0].first == first + 13);
  bench.settled = first;  // reordered: it never goes back
  REQUIRE(bench.data_as(first + 1, 0, 6000, 100) == Verdict::fresh);
  feedback = bench.one_report();
  CHECK(feedback.from == first + 12);
  CHECK(feedback.range_count == 4);
}

TEST_CASE("N5 numbers that jump, and more gaps than are remembered, stay in bounds",
          "[transfer][receiver]") {
  Bench bench{{200 * B}, 4, 64};
  for (std::uint64_t i = 1; i <= 1000; ++i) (void)bench.data_as(i * 1'000'003, 0, i * 50, 50);
  (void)bench.data_as((std::uint64_t{1} << 63) + 1, 0, 0, 50);
  const auto feedback = bench.one_report();
  CHECK(feedback.range_count == 64);
  CHECK(feedback.largest == (std::uint64_t{1} << 63) + 1);
}

TEST_CASE("a PING is answered at once with its size and how long it was held",
          "[transfer][receiver]") {
  Bench bench{{B}};
  wire::Pong pong;
  CHECK_FALSE(bench.receiver.pop_pong(bench.now, pong));
  bench.ping_as(1);
  REQUIRE(bench.receiver.pop_pong(bench.now + 30us, pong));
  CHECK(pong.id == 7);
  CHECK(pong.hold_ns == 30'000);
  CHECK(pong.received_bytes == 100);
  CHECK_FALSE(bench.receiver.pop_pong(bench.now, pong));
  CHECK(bench.receiver.tick(bench.now));  // a PING makes the Receiver report
  CHECK(bench.report().back().largest == 1);
}

}  // namespace onehop::protocol
