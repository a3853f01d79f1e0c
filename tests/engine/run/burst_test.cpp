// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// What a receiving loop makes of bursts that one turn does not read whole.
#include <catch2/catch.hpp>

#include "tests/engine/run/loop_bench.hpp"

using namespace onehop;
using namespace onehop::run;

/// BurstBench: a receiving loop whose peer sends bursts of data into a ring of 256 frames, over a
/// link that is faster than they need.
struct BurstBench {
  BurstBench() {
    for (std::uint32_t slot = 0; slot < blocks; ++slot)
      ONEHOP_CHECK(side.from_file.push(
          {.data = sink.data() + std::size_t{slot} * block_bytes, .slot = slot}));
    side.command(CommandKind::start);
    (void)turn_after(Nanos{0});
  }
  void send(int frames) {
    for (int i = 0; i < frames; ++i, ++number) {
      const std::uint64_t end = std::min(offset + bench_frame_bytes - wire::overhead_bytes,
                                         (offset / block_bytes + 1) * block_bytes);
      peer.send(now, peer.sealed({.type = wire::FrameType::data,
                                  .is_end_of_block = end % block_bytes == 0,
                                  .packet_number = number,
                                  .settled = number,
                                  .offset = offset},
                                 std::vector<std::byte>(end - offset)));
      offset = end;
    }
  }
  void ask_reports_each(std::chrono::microseconds interval) {
    std::array<std::byte, 100> body{};
    wire::encode_ping(
        {.id = 1, .feedback_interval_us = static_cast<std::uint32_t>(interval.count())}, body);
    peer.send(now, peer.sealed(
                       {.type = wire::FrameType::ping, .packet_number = number, .settled = number},
                       body));
    ++number;
  }
  NextWakeup turn_after(Nanos span) {
    link.run_until(now += span);
    return loop->turn(now);
  }

  static constexpr std::uint32_t blocks = 16;
  std::array<std::uint64_t, 1> sizes{blocks * block_bytes};
  VirtualLinkConfig way{.rate = mbit_per_s(100'000), .queue_capacity = mib(64), .ring_frames = 256};
  VirtualLink link{{.directions = {way, way}, .seed = 7}};
  VirtualPort port{link, 1};
  Side side;
  std::unique_ptr<ReceiverLoop<VirtualPort>> loop = std::make_unique<ReceiverLoop<VirtualPort>>(
      port, keys_of(false), receiver_config(sizes), side.links());
  RawPeer peer{link, 0, keys_of(true)};
  std::vector<std::byte> sink = std::vector<std::byte>(blocks * block_bytes);
  Instant now{1s};
  std::uint64_t offset = 0, number = 1;
};

// Goal:   a turn that ends at a report which the credit asked for has not seen the ring empty, and
// that alone is no backlog. Method: bursts of 100 frames, half of what a ring of 256 has room for,
// each 50 us for 1 ms: a report of each, none over a window.
TEST_CASE("bursts that each ask for a report do not pass for a backlog of the ring") {
  BurstBench bench;
  std::size_t reports = 0;
  for (int burst = 0; burst < 20; ++burst) {
    bench.send(100);
    (void)bench.turn_after(50us);
    reports += bench.peer.take().size();
    CHECK_FALSE(bench.side.report.load().rx_ring.is_backlogged);
  }
  CHECK(bench.loop->counters().frames_received_total > 1800);
  CHECK(reports > 15);

  // And the report does not wait for what more there is: a full ring takes several turns.
  (void)bench.turn_after(5ms);
  const std::uint64_t before = bench.loop->counters().frames_received_total;
  bench.send(240);
  (void)bench.turn_after(5ms);
  CHECK(bench.loop->counters().frames_received_total > before);
  CHECK(bench.loop->counters().frames_received_total < before + 240);
}

// Goal:   a report tells what stands in the ring, not what of a burst is still to be read; rare
// ones too. Method: bursts of 240 frames, of which 96 (144 where reports are rare) use up the
// credit that is worth a report, each 3 ms. Bounds: each turn but the last of a burst leaves some
// of it, and none of it is told.
TEST_CASE("the rest of a burst is not told to stand in the ring") {
  BurstBench bench;
  const bool is_rare = GENERATE(false, true);
  if (is_rare) bench.ask_reports_each(50ms);
  std::size_t reports = 0;
  bool was_cut_short = false;
  for (int burst = 0; burst < 10; ++burst) {
    bench.send(240);
    for (const Nanos span : {Nanos{3ms}, Nanos{0}, Nanos{0}}) {
      (void)bench.turn_after(span);
      was_cut_short = was_cut_short || bench.side.report.load().rx_ring.occupancy > Bytes{0};
      for (const auto& frame : bench.peer.take()) {
        const auto feedback = bench.peer.feedback_of(frame);
        if (!feedback) continue;
        ++reports;
        CHECK(feedback->rx_ring.occupancy == Bytes{0});
      }
    }
  }
  CHECK(bench.loop->counters().frames_received_total >= 2400);
  CHECK(reports >= 9);
  CHECK(was_cut_short);
}

// Goal:   a nap is as short as the arrival rate asks for, also after turns that were cut short.
// Method: bursts of 240 frames each 3 ms, 364 KB, of which the last turn reads a part. Bounds: a
// quarter of the ring of 388 KB lasts 0.8 ms at that rate; what the last turn alone read would make
// it 2 ms.
TEST_CASE("a nap after a turn that was cut short counts all that came since the ring was empty") {
  BurstBench bench;
  int cut_short = 0;
  for (int burst = 0; burst < 10; ++burst) {
    bench.send(240);
    NextWakeup rest = bench.turn_after(3ms);
    for (; rest.deadline <= bench.now; ++cut_short) rest = bench.turn_after(1us);
    if (burst == 0) continue;
    CHECK_FALSE(rest.is_rx_wanted);
    CHECK(rest.deadline - bench.now >= 700us);
    CHECK(rest.deadline - bench.now <= 850us);
  }
  CHECK(cut_short >= 10);
}
