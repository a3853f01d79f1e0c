// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// The FWP paper's comparisons in its own emulator; the tables for people are tools/fwp.
#include <catch2/catch.hpp>

#include "tools/fwp/tables.hpp"

namespace onehop::fwp {

TEST_CASE("a block-ack window that loses its first frame sends nothing new", "[fwp]") {
  AmpduQueue clean{0.0, 1}, dead{1.0, 1};
  CHECK(clean.next_aggregate(100) == aggregate_frames_max);
  CHECK(clean.send(32) == 32);
  CHECK(clean.next_aggregate(100) == aggregate_frames_max);
  for (int tries = 0; tries < 8; ++tries) {
    CHECK(dead.next_aggregate(100) == aggregate_frames_max);
    CHECK(dead.send(32) == 0);
    CHECK(dead.open() == (tries == 7 ? 0 : 32));  // given up after the eighth
  }
}

//= [FWP] figures of speed-up by frame error rate and by competitors  type=test
// Goal:   full aggregates and repair from lists carry more than aggregates that a block-ack window holds back.
// Bounds: the paper's: > 1.6 at 10 %, > 2 at 40 %, nearly the same for 1 to 9 competitors; without errors nobody gains. Means of
//         seeds 1 to 5, because who gets how many turns is drawn.
namespace {
double mean_speed_up(std::size_t competitors, double frame_error_rate) {
  double sum = 0;
  for (std::uint64_t seed = 1; seed <= 5; ++seed) sum += speed_up(competitors, frame_error_rate, true, seed, 5s) / 5;
  return sum;
}
}  // namespace

TEST_CASE("a lazy station gains over A-MPDU stations as the paper says", "[fwp]") {
  const std::size_t competitors = GENERATE(1U, 4U, 9U);
  CAPTURE(competitors);
  CHECK(mean_speed_up(competitors, 0.0) == Approx(1.0).margin(0.05));
  CHECK(mean_speed_up(competitors, 0.1) >= 1.6);
  CHECK(mean_speed_up(competitors, 0.4) >= 2.0);
}

// Bounds: the paper's: within 10 % of equal for round-trip times of 30 to 70 ms.
TEST_CASE("a lazy station shares equally with a Cubic-like flow", "[fwp]") {
  const int rtt_ms = GENERATE(30, 50, 70);
  constexpr std::uint64_t seed = 1;
  CAPTURE(rtt_ms, seed);
  CHECK(share_beside_cubic(rtt_ms * 1ms, 0.001, seed, 15s) == Approx(1.0).margin(0.1));
}

}  // namespace onehop::fwp
