// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// --target zero in closed loop: the queue is as short as the core's naps allow, and the link busy.
#include <algorithm>
#include <catch2/catch.hpp>

#include "control/law/make_law.hpp"
#include "tests/control/law/fluid_link.hpp"

namespace onehop::test {
namespace {

/// settle: two seconds to find out, then a window of four.
void settle(FluidLink& link) {
  link.run(2s);
  link.open_window();
  link.run(4s);
}

TEST_CASE("safe-range with the lowest target runs just above empty", "[control][law]") {
  const Nanos nap = GENERATE(Nanos{500us}, Nanos{1ms}, Nanos{2ms}, Nanos{3ms});
  CAPTURE(nap.count());
  const auto law = law::make_law({.target = "zero"}).value();  // as --target says it
  FluidLink link{*law, {.nap = nap}};
  link.run(500ms);
  link.open_window();
  link.run(1s);
  CHECK(use(link) >= 0.999);
  CHECK(ms_of_data(link.window.occupancy_max, link.p.link) <=
        4.0);  // 1.25 naps, and at least two batches
}

// Goal:   the safe range has a width of 2 v d_1 = 8 ms where 2 BDP leave it none, so that its lower
//         edge, its middle and a queue that is just not empty are three regimes.
// Method: each target in closed loop at a round trip of 1 ms, judged over a second.
// Bounds: 8 and 12 ms within 10 %, and less than half of the first; the link busy in each. The
//         range is in payload bytes.
TEST_CASE("the safe range has three regimes that differ", "[control][law]") {
  const int mbps = GENERATE(100, 600);
  const auto [target, least_ms, most_ms] = GENERATE(table<const char*, double, double>(
      {{"under", 7.2, 8.8}, {"mid", 10.8, 13.2}, {"zero", 0.0, 4.0}}));
  CAPTURE(mbps, target);
  const auto law = law::make_law({.spec = "safe-range", .target = target}).value();
  FluidLink link{*law, {.link = mbit_per_s(mbps)}};
  link.run(500ms);
  link.open_window();
  link.run(1s);
  const double mean_ms = ms_of_data(link.window.mean().count, link.p.link);
  CHECK(mean_ms >= least_ms);
  CHECK(mean_ms <= most_ms);
  CHECK(use(link) >= 0.99);
  const law::BufferRow& row = law->trace().buffers[0];
  REQUIRE((row.under && row.over));
  CHECK(ms_of_data((*row.over - *row.under).count, link.p.link) ==
        Approx(8.0 * FluidLink::payload / FluidLink::wire).epsilon(0.05));
}

// Goal:   a core that is late now and then does not starve a link whose queue is kept short.
// Method: each 16th nap is longer by up to 4 ms, so that their mean says nothing of the longest.
// Bounds: the queue lasts for the longest nap, 30 % more, and a frame; at least two batches.
TEST_CASE("the lowest target outlasts a core that is late now and then", "[control][law]") {
  const int link_mbit = GENERATE(20, 100, 600, 5000);
  const Nanos late = GENERATE(Nanos{1ms}, Nanos{2ms}, Nanos{4ms});
  CAPTURE(link_mbit, late.count());
  const auto law = law::make_law({.target = "zero"}).value();
  FluidLink link{*law,
                 {.link = mbit_per_s(link_mbit),
                  .nap = 500us,
                  .late_every = 16,
                  .late = late,
                  .queue_packets_max = 8000}};
  settle(link);
  CHECK(use(link) >= 0.97);
  const double frame_ms = ms_of_data(FluidLink::wire, link.p.link);
  const double longest_ms = static_cast<double>((link.p.nap + late).count()) / 1e6;
  CHECK(ms_of_data(link.window.occupancy_max, link.p.link) <=
        std::max(4.4, 1.3 * longest_ms + frame_ms));
}

// Goal:   nor does a short file pay for what the law has still to learn of such a core.
TEST_CASE("the lowest target does not starve the link while it is found", "[control][law]") {
  const int link_mbit = GENERATE(20, 100, 600, 5000);
  CAPTURE(link_mbit);
  const auto law = law::make_law({.target = "zero"}).value();
  FluidLink link{*law,
                 {.link = mbit_per_s(link_mbit),
                  .nap = 500us,
                  .late_every = 16,
                  .late = 4ms,
                  .queue_packets_max = 8000}};
  link.run(100ms);
  link.open_window();
  link.run(400ms);
  CAPTURE(use(link));
  CHECK(use(link) >= 0.97);
}

// Goal:   nor is the queue of a slow link made longer by where its few frames fall.
// Bounds: two batches, which are 4 ms or four frames, and a frame.
TEST_CASE("the lowest target stays low on a slow link", "[control][law]") {
  const int link_mbit = GENERATE(2, 5, 8, 10, 20, 50);
  const Nanos nap = GENERATE(Nanos{500us}, Nanos{700us}, Nanos{1ms});
  CAPTURE(link_mbit, nap.count());
  const auto law = law::make_law({.target = "zero"}).value();
  FluidLink link{*law, {.link = mbit_per_s(link_mbit), .nap = nap}};
  settle(link);
  CHECK(use(link) >= 0.99);
  const double frame_ms = ms_of_data(FluidLink::wire, link.p.link);
  CHECK(ms_of_data(link.window.occupancy_max, link.p.link) <=
        std::max(4.0, 4 * frame_ms) + frame_ms);
}

}  // namespace
}  // namespace onehop::test
