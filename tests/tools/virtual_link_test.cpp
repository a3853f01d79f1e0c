// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// The virtual link against its own configuration: what it is told to do to frames, it does, and
// nothing else.
#include <catch2/catch.hpp>

#include <cstring>

#include "tools/labs/world/virtual_port.hpp"

namespace onehop {
namespace {

constexpr std::size_t frame_bytes = 958;  // 1000 on the wire
constexpr std::uint64_t seed = 42;

struct Tally {
  std::size_t arrived = 0;
  std::size_t out_of_order = 0;
  std::size_t twice = 0;
  std::size_t changed = 0;
  std::size_t shortened = 0;
  std::size_t longest_gap = 0;
  Instant last_at{};
  auto operator<=>(const Tally&) const = default;
};

VirtualLink::Options with(VirtualLinkConfig config) {
  VirtualLink::Options options;
  options.directions[0] = config;
  options.seed = seed;
  return options;
}

// Sends `frames` numbered frames as fast as the link takes them and tallies what comes out.
Tally run(const VirtualLinkConfig& config, std::uint32_t frames) {
  VirtualLink link{with(config)};
  VirtualPort a{link, 0};
  VirtualPort b{link, 1};
  Tally tally;
  std::vector<bool> seen(frames);
  std::uint32_t sent = 0;
  std::uint32_t expected = 0;
  while (sent < frames || link.next_event() != Instant::max()) {
    while (sent < frames) {
      const auto slot = a.lend(frame_bytes);
      if (slot.empty()) break;
      std::memset(slot.data(), 0x5a, slot.size());
      std::memcpy(slot.data(), &sent, sizeof sent);
      a.commit(frame_bytes);
      sent += 1;
    }
    (void)a.flush(link.now());
    link.run_until(std::min(link.next_event(), link.now() + 10ms));
    std::array<RxFrame, rx_batch_max> views;
    for (std::size_t count; (count = b.receive(views)) > 0; b.release()) {
      for (const RxFrame& view : std::span{views}.first(count)) {
        tally.arrived += 1;
        tally.last_at = link.now();
        std::uint32_t number = ~0U;
        if (view.length != frame_bytes) {
          tally.shortened += 1;
          continue;
        }
        std::memcpy(&number, view.data, sizeof number);
        bool is_same = number < frames;
        for (std::size_t i = sizeof number; i < view.length; ++i)
          is_same &= view.data[i] == std::byte{0x5a};
        if (!is_same) {
          tally.changed += 1;
          continue;
        }
        tally.twice += seen[number] ? 1 : 0;
        seen[number] = true;
        if (number < expected) {
          tally.out_of_order += 1;
        } else {
          tally.longest_gap = std::max<std::size_t>(tally.longest_gap, number - expected);
          expected = number + 1;
        }
      }
    }
    b.release();
  }
  return tally;
}

}  // namespace

// Bounds: exact; 10,000 frames of 1000 wire bytes at 80 Mbit/s are 1 s, and the delay.
TEST_CASE("a clean virtual link delivers everything in order at its rate", "[port][virtual]") {
  const Tally tally = run({.rate = mbit_per_s(80), .delay = 5ms}, 10'000);
  CHECK(tally.arrived == 10'000);
  CHECK(tally.out_of_order + tally.twice + tally.changed + tally.shortened == 0);
  CHECK(tally.last_at == Instant{} + 1s + 5ms);
}

// Bounds: 20,000 frames; five standard deviations around each probability.
TEST_CASE("each impairment happens as often as it is told to, and alone", "[port][virtual]") {
  CAPTURE(seed);
  const std::uint32_t frames = 20'000;
  const Tally lost = run({.loss_ppm = 100'000}, frames);
  CHECK(lost.arrived == Approx(18'000).margin(215));
  CHECK(lost.changed + lost.shortened + lost.twice + lost.out_of_order == 0);
  const Tally twins = run({.duplicate_ppm = 50'000}, frames);
  CHECK(twins.arrived == frames + twins.twice);
  CHECK(twins.twice == Approx(1000).margin(155));
  const Tally bits = run({.corrupt_ppm = 50'000}, frames);
  CHECK(bits.arrived == frames);
  CHECK(bits.changed == Approx(1000).margin(155));
  const Tally cut = run({.truncate_ppm = 50'000}, frames);
  CHECK(cut.arrived == frames);
  CHECK(cut.shortened == Approx(1000).margin(155));
  const Tally mixed = run({.reorder_ppm = 50'000}, frames);
  CHECK(mixed.arrived == frames);
  CHECK(mixed.out_of_order == Approx(1000).margin(155));
  const Tally bursts = run({.burst_enter_ppm = 5'000, .burst_leave_ppm = 50'000}, frames);
  CHECK(bursts.arrived < frames * 97 / 100);
  CHECK(bursts.longest_gap >= 20);
  CHECK(run({.loss_ppm = 100'000}, frames) == lost);  // the seed decides
}

TEST_CASE("a blackout holds frames and lets them go", "[port][virtual]") {
  VirtualLink link{with({.rate = mbit_per_s(80)})};
  VirtualPort a{link, 0};
  for (int i = 0; i < 10; ++i) {
    REQUIRE(!a.lend(frame_bytes).empty());
    a.commit(frame_bytes);
  }
  CHECK(a.flush(Instant{}) == 0);
  link.run_until(Instant{} + 250us);  // two and a half frames of 100 us
  link.set_rate(0, BytesPerSecond{0});
  CHECK(a.tx_queue(Instant{} + 1s).occupancy == Bytes{8000});
  CHECK(link.next_event() == Instant::max());
  link.set_rate(0, mbit_per_s(80));
  CHECK(a.tx_queue(Instant{} + 1s + 50us).occupancy == Bytes{7000});
  CHECK(a.tx_queue(Instant{} + 1s + 749us).occupancy == Bytes{1000});
  CHECK(a.tx_queue(Instant{} + 1s + 750us).occupancy == Bytes{0});
}

TEST_CASE("a receiver that does not take its frames loses what its ring cannot hold",
          "[port][virtual]") {
  VirtualLink link{with({.ring_frames = 16})};
  VirtualPort a{link, 0};
  VirtualPort b{link, 1};
  for (int i = 0; i < 20; ++i) {
    REQUIRE(!a.lend(frame_bytes).empty());
    a.commit(frame_bytes);
  }
  CHECK(a.flush(Instant{}) == 0);
  const QueueTelemetry ring = b.rx_ring(Instant{} + 1s);
  CHECK(ring.occupancy == Bytes{16'000});
  CHECK(ring.refused_total == 4);
}

}  // namespace onehop
