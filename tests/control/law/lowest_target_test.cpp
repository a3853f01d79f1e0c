// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// --target zero in closed loop: the queue is as short as the core's naps allow, and the link busy.
#include <algorithm>
#include <catch2/catch.hpp>

#include "control/law/make_law.hpp"
#include "tests/control/law/fluid_link.hpp"

namespace onehop::test {
namespace {

TEST_CASE("safe-range with the lowest target runs just above empty", "[control][law]") {
  const Nanos nap = GENERATE(Nanos{500us}, Nanos{1ms}, Nanos{2ms}, Nanos{3ms});
  CAPTURE(nap.count());
  const auto law = law::make_law({.target = "zero"}).value();  // as --target says it
  FluidLink link{*law, {.nap = nap}};
  link.run(300ms);
  link.open_window();
  link.run(1s);
  CHECK(use(link) >= 0.999);
  CHECK(ms_of_data(link.window.occupancy_max, link.p.link) <=
        4.0);  // 1.25 naps, and at least two batches
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
  link.run(2s);
  link.open_window();
  link.run(4s);
  CHECK(use(link) >= 0.97);
  const double frame_ms = ms_of_data(FluidLink::wire, link.p.link);
  const double longest_ms = static_cast<double>((link.p.nap + late).count()) / 1e6;
  CHECK(ms_of_data(link.window.occupancy_max, link.p.link) <=
        std::max(4.4, 1.3 * longest_ms + frame_ms));
}

// Goal:   nor does a driver that tells late of what has left, as one does whose frames pass through
// queues that no one reads: the queue then looks longer than it is, and is never seen empty.
// Bounds: the queue, with what was not told of, lasts for that delay and a nap, and 30 % more.
TEST_CASE("the lowest target fills a link whose driver tells late", "[control][law]") {
  const int link_mbit = GENERATE(20, 100, 600);
  const Nanos delay = GENERATE(Nanos{500us}, Nanos{1ms});
  CAPTURE(link_mbit, delay.count());
  const auto law = law::make_law({.target = "zero"}).value();
  FluidLink link{*law,
                 {.link = mbit_per_s(link_mbit),
                  .nap = 500us,
                  .status_delay = delay,
                  .queue_packets_max = 8000}};
  link.run(2s);
  link.open_window();
  link.run(4s);
  CHECK(use(link) >= 0.97);
  CHECK(ms_of_data(link.window.occupancy_max, link.p.link) <= 8.7);
}

}  // namespace
}  // namespace onehop::test
