// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Traces of `onehop rings` as they are read and drawn.
#include <catch2/catch.hpp>

#include <fmt/format.h>

#include <sstream>

#include "tools/labs/plot/page.hpp"

namespace onehop::plot {

TEST_CASE("a trace of rings is a run per socket, drawn against the rings' sizes", "[tools][plot]") {
  std::string text =
      "# command line: onehop rings\n# version: 1\n# config: rings of 1 x\n"
      "t_ns,socket,queue,rx_held_entries,rx_ring_entries,fill_held_entries,fill_ring_entries,"
      "rx_dropped_total,rx_ring_full_total,fill_ring_empty_total\n";
  for (int i = 0; i < 50; ++i)
    text += fmt::format("{0},7,0,{1},64,60,64,{1},0,5\n{0},9,,,,32,128,,,\n", i * 20'000'000, i);
  std::istringstream in{text};
  const auto read = read_runs(in, "rings.csv", {}, 100);
  REQUIRE(read);
  const std::vector<RunData>& runs = read.value();
  REQUIRE(runs.size() == 2);
  CHECK(runs[0].label == "rings socket 7");
  CHECK(runs[0].whole[ring_held(0)].most == 49);
  CHECK(runs[0].whole[ring_drop_step].sum == 49);
  CHECK_FALSE(runs[1].has(ring_held(0)));
  const auto plates = plates_of(runs);
  std::vector<std::string> names;
  for (const Plate& plate : plates) names.push_back(plate.id);
  CHECK(names == std::vector<std::string>{"rx", "fill", "drops"});
  CHECK(plates[0].figures[0].y_max == Approx(1.05 * 64));
  CHECK(plates[0].figures[1].is_empty());
  const std::string page = page_of(runs, plates, {});
  CHECK_THAT(page, Catch::Contains("0 / 24.5 / 49 of 64") && Catch::Contains("fill ring"));
  CHECK_THAT(page, !Catch::Contains("round trip") && !Catch::Contains("safe range"));
  for (int i = 0; i < 20; ++i) text += fmt::format("1000000000,{},,,,1,2,,,\n", i);
  std::istringstream many{text};
  CHECK(read_runs(many, "rings.csv", {}, 100).has_error());
}

}  // namespace onehop::plot
