// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// The lab's model of an 802.11 channel, in virtual time.
#include <catch2/catch.hpp>

#include "tools/labs/lab/air/channel.hpp"
#include "tools/labs/lab/air/phy.hpp"
#include "tools/labs/lab/air/saturate.hpp"

using namespace onehop;
using namespace onehop::lab::air;

namespace {

constexpr PhyMode ac80{Standard::ac, 80, 9, 2}, ac160{Standard::ac, 160, 9, 2};
constexpr PhyMode ax80{Standard::ax, 80, 11, 2}, ax160{Standard::ax, 160, 11, 2};
// A UDP datagram of 1448 bytes over IPv4, as an Ethernet frame.
constexpr Bytes payload{1448}, frame{1448 + 28 + 14};

double mbit(BytesPerSecond rate) { return static_cast<double>(bps(rate)) / 1e6; }

ChannelOptions options_of(PhyMode mode, std::uint32_t loss_ppm = 0, std::uint64_t seed = 1) {
  return {.mode = mode, .loss_ppm = loss_ppm, .seed = seed};
}

}  // namespace

TEST_CASE("PHY rates are those of the standard's tables", "[tools][lab][air]") {
  CHECK(mbit(phy_rate(ac80)) == Approx(866.7).epsilon(0.0005));
  CHECK(mbit(phy_rate(ac160)) == Approx(1733.3).epsilon(0.0005));
  CHECK(mbit(phy_rate(ax80)) == Approx(1201.0).epsilon(0.0005));
  CHECK(mbit(phy_rate(ax160)) == Approx(2401.9).epsilon(0.0005));
  CHECK(mbit(phy_rate({Standard::ac, 80, 0, 1})) == Approx(32.5).epsilon(0.0005));
  CHECK(mbit(phy_rate({Standard::ax, 80, 5, 2})) == Approx(576.5).epsilon(0.0005));
  CHECK(mbit(phy_rate({Standard::ac, 20, 3, 1})) == Approx(28.9).epsilon(0.001));
  CHECK(mbit(phy_rate({Standard::ac, 40, 9, 2})) == Approx(400.0).epsilon(0.0005));
  CHECK(mbit(phy_rate({Standard::ax, 20, 11, 1})) == Approx(143.4).epsilon(0.0005));
  CHECK(mbit(phy_rate({Standard::ax, 40, 11, 2})) == Approx(573.5).epsilon(0.0005));
}

TEST_CASE("one exchange lasts what is counted by hand", "[tools][lab][air]") {
  CHECK(mpdu_bytes(frame) == Bytes{1520});
  CHECK(ack_time() == 28us);
  CHECK(block_ack_time(64) == 32us);
  CHECK(block_ack_time(256) == 40us);
  // 43 MPDUs of 1520 bytes: 522,896 bits in 17 symbols of 32,666 (160 MHz) or 33 of 16,333 (80
  // MHz).
  CHECK(ppdu_time(ax160, Bytes{43 * 1520}) == 52us + 17 * Nanos{13600});
  CHECK(ppdu_time(ax80, Bytes{43 * 1520}) == 52us + 33 * Nanos{13600});
  // 11ac: 168 symbols of 3120 bits are 604.8 us, which end on the grid of 4 us; 84 of 6240 are
  // 302.4 us.
  CHECK(ppdu_time(ac80, Bytes{43 * 1520}) == 44us + 608us);
  CHECK(ppdu_time(ac160, Bytes{43 * 1520}) == 44us + 304us);
  for (const PhyMode& mode : {ac80, ac160, ax80, ax160, PhyMode{Standard::ac, 80, 0, 1}}) {
    CHECK(ppdu_time(mode, psdu_max(mode)) <= ppdu_time_max);
    CHECK(ppdu_time(mode, psdu_max(mode) + Bytes{data_bits_per_symbol(mode) / 4}) > ppdu_time_max);
  }
}

// Goal:   a saturated sender gets what ns-3 3.37 gives it.
// Method: 20 s of virtual time, UDP of 1448 bytes, HE MCS 11, 2 streams, 64 KB aggregates, Block
// Ack 64. Bounds: ns-3 1128.7 and 754.8 Mbit/s, measured 1127.8 and 755.6; with 1 % loss 1095.0 and
// 736.5. 2 % where the retries' order
//         within ns-3 is not ours, 1 % else.
TEST_CASE("a saturated sender carries what ns-3 measured", "[tools][lab][air]") {
  const auto [mode, loss_ppm, expected, slack] =
      GENERATE(table<PhyMode, std::uint32_t, double, double>({{ax160, 0, 1128.7, 0.01},
                                                              {ax80, 0, 754.8, 0.01},
                                                              {ax160, 1'000, 1126.3, 0.02},
                                                              {ax80, 1'000, 753.0, 0.02},
                                                              {ax160, 10'000, 1095.0, 0.02},
                                                              {ax80, 10'000, 736.5, 0.02},
                                                              {ax160, 100'000, 889.5, 0.05},
                                                              {ax80, 100'000, 619.0, 0.05}}));
  const std::uint64_t seed = 7;
  CAPTURE(mode.width_mhz, loss_ppm, seed);
  const Saturated run = saturate(options_of(mode, loss_ppm, seed), frame, payload, 20s);
  CHECK(mbit(run.goodput) == Approx(expected).epsilon(slack));
}

TEST_CASE("a Block Ack of 256 carries more", "[tools][lab][air]") {
  ChannelOptions options = options_of(ax160);
  options.window_mpdus = 256;
  options.aggregate_max = Bytes{4'194'304};
  const Saturated run = saturate(options, frame, payload, 5s);
  CHECK(run.mpdus_per_exchange == Approx(256).epsilon(0.01));
  // T = 43 + 67.5 + 52 + 96 * 13.6 + 16 + 40 us for 256 MPDUs
  CHECK(mbit(run.goodput) ==
        Approx(256 * 1448 * 8 / (43 + 67.5 + 52 + 96 * 13.6 + 16 + 40)).epsilon(0.01));
}

TEST_CASE("the same seed gives the same run", "[tools][lab][air]") {
  const auto goodput = [](std::uint64_t seed) {
    return saturate(options_of(ax80, 10'000, seed), frame, payload, 1s).goodput.count;
  };
  CHECK(goodput(3) == goodput(3));
  CHECK(goodput(3) != goodput(4));
}

// Goal:   two saturated stations share the channel, and pay for collisions.
// Method: 20 s of virtual time. A slot is taken by both with a probability of about 1 in 9 for
// CW 15. Bounds: shares within 3 % of each other; the sum is below one station's alone by less than
// 15 %.
TEST_CASE("two saturated stations share the channel and collide", "[tools][lab][air]") {
  Channel channel{options_of(ax160), Instant{}};
  while (channel.idle_since() < Instant{20s}) {
    for (const std::size_t station : {0U, 1U})
      while (channel.queued_mpdus(station) < 128)
        channel.arrive(station, channel.idle_since(), frame);
    (void)channel.begin();
    (void)channel.finish();
  }
  const StationCounters &a = channel.counters(0), &b = channel.counters(1);
  CHECK(static_cast<double>(a.released_total.count) ==
        Approx(static_cast<double>(b.released_total.count)).epsilon(0.03));
  CHECK(a.collisions_total == b.collisions_total);
  const double share =
      static_cast<double>(a.collisions_total) /
      static_cast<double>(a.exchanges_total + b.exchanges_total - a.collisions_total);
  CHECK(share > 0.05);
  CHECK(share < 0.15);
  const double both =
      static_cast<double>(a.released_mpdus_total + b.released_mpdus_total) * 1448 * 8 / 20e6;
  CHECK(both < 1200);
  CHECK(both > 0.85 * 1128);
}

TEST_CASE("an aggregate takes what had arrived when it started", "[tools][lab][air]") {
  Channel channel{options_of(ax80), Instant{}};
  channel.arrive(0, Instant{1ms}, frame);  // the counter ran out long before: it starts at once
  REQUIRE(channel.next_start() == Instant{1ms});
  channel.arrive(0, Instant{1ms + 1us}, frame);
  const Exchange exchange = channel.begin();
  CHECK(exchange.start == Instant{1ms});
  CHECK(exchange.mpdus == 1);
  CHECK(exchange.end == exchange.start + ppdu_time(ax80, Bytes{1520}) + sifs + 28us);
  const Release release = channel.finish();
  CHECK(release.count == 1);
  CHECK(channel.queued_mpdus(0) == 1);
  CHECK(channel.next_start() >= exchange.end + aifs);
}

TEST_CASE("a lost MPDU holds back those behind it, within the window", "[tools][lab][air]") {
  // Half of all MPDUs are lost. What leaves is always the next in order, and nothing is sent beyond
  // the window.
  const std::uint64_t seed = 11;
  CAPTURE(seed);
  ChannelOptions options = options_of(ax160, 500'000, seed);
  options.retries_max = 100;
  Channel channel{options, Instant{}};
  std::uint64_t next = 0;
  for (int i = 0; i < 2000; ++i) {
    while (channel.queued_mpdus(0) < 200) channel.arrive(0, channel.idle_since(), frame);
    CHECK(channel.begin().mpdus <= 43);
    const Release release = channel.finish();
    REQUIRE(release.first == next);
    REQUIRE(release.count <= 64);
    next += release.count;
  }
  CHECK(channel.counters(0).failed_mpdus_total == 0);
  CHECK(static_cast<double>(channel.counters(0).sent_mpdus_total) ==
        Approx(2.0 * static_cast<double>(next)).epsilon(0.03));
}

TEST_CASE("a MPDU is given up after its last retry, and named", "[tools][lab][air]") {
  ChannelOptions options = options_of(ax160, 500'000, 5);
  options.retries_max = 2;
  Channel channel{options, Instant{}};
  std::uint64_t named = 0;
  for (int i = 0; i < 3000; ++i) {
    while (channel.queued_mpdus(0) < 100) channel.arrive(0, channel.idle_since(), frame);
    (void)channel.begin();
    for (const std::uint64_t serial : channel.finish().given_up) {
      CHECK(serial < channel.counters(0).released_mpdus_total);
      ++named;
    }
  }
  const StationCounters& sender = channel.counters(0);
  CHECK(named == sender.failed_mpdus_total);
  CHECK(static_cast<double>(named) / static_cast<double>(sender.released_mpdus_total) ==
        Approx(0.125).epsilon(0.1));
}

TEST_CASE("a slower PHY rate holds from the next transmission on", "[tools][lab][air]") {
  Channel channel{options_of(ax160), Instant{}};
  for (int i = 0; i < 100; ++i) channel.arrive(0, Instant{}, frame);
  const Exchange fast = channel.begin();
  channel.set_mode({Standard::ax, 160, 0, 2});
  (void)channel.finish();
  const Exchange slow = channel.begin();
  CHECK(slow.mpdus == fast.mpdus);
  CHECK(slow.end - slow.start > 10 * (fast.end - fast.start));
}
