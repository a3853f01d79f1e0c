// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// When datagrams in fragments are given up.
#include <catch2/catch.hpp>

#include <random>

#include "engine/port/udp_fragments.hpp"

using namespace onehop;

namespace {

constexpr std::size_t single_bytes = 1472, datagram_bytes = 52'000;  // 36 fragments
constexpr double fragments = 36;

/// lost_until says after how many datagrams the loss is too high; 0: it never was.
std::uint64_t lost_until(double frame_loss, std::uint64_t seed) {
  bool has_ended = false;
  UdpFragments watch{datagram_bytes, [&] { has_ended = true; }};
  CHECK(watch.begin(single_bytes) == datagram_bytes);
  std::mt19937_64 random{seed};
  std::bernoulli_distribution is_lost{1 - std::pow(1 - frame_loss, fragments)};
  std::uint64_t sent = 0, lost = 0;
  // 1000 datagrams of 52 kB a second: 420 Mbit/s.
  for (Instant now{1s}; sent < 100'000; now += 1ms) {
    ++sent;
    lost += is_lost(random) ? 1 : 0;
    const bool is_over = watch.has_to_end({now, sent, lost, 100ms});
    CHECK(is_over == has_ended);
    if (is_over) return sent;
  }
  return 0;
}

}  // namespace

//= [SMUFF] aggregation below 0.1 % loss  type=test
// Bounds: 0.1 % of frames is 3.5 % of datagrams of 36 fragments. A window of 100 datagrams scatters
//         by 2 %, its mean over 8 by 0.7: at 0.02 % no run of 100 s ends fragments, at 0.2 % each
//         does within 3 s.
TEST_CASE("fragments end above 0.1 % of frames lost and not far below", "[port][udp][fragments]") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    CHECK(lost_until(0.0, seed) == 0);
    CHECK(lost_until(0.0002, seed) == 0);
    const std::uint64_t many = lost_until(0.002, seed);
    CHECK(many > 0);
    CHECK(many <= 3000);
  }
  // A reassembly memory that takes nothing: the first window tells.
  CHECK(lost_until(1.0, 1) <= 201);
}

TEST_CASE("a session that starts again does not go back to fragments", "[port][udp][fragments]") {
  int ended = 0;
  UdpFragments fragments_of{datagram_bytes, [&] { ++ended; }};
  CHECK(fragments_of.begin(single_bytes) == datagram_bytes);
  REQUIRE(fragments_of.has_to_end({Instant{1s}, 100, 100, 1ms}));
  CHECK_FALSE(fragments_of.has_to_end({Instant{2s}, 200, 200, 1ms}));
  CHECK(fragments_of.begin(single_bytes) == 0);
  CHECK(ended == 1);
}
