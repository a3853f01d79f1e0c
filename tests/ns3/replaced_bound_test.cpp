// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// A bound that is no longer required is judged and shown all the same. Nothing is simulated.
#include <catch2/catch.hpp>

#include "tools/labs/ns3/scenario.hpp"
#include "tools/labs/ns3/table.hpp"

namespace onehop::sim {

TEST_CASE("a replaced bound is judged, shown with its reason, and says so in the JSON", "[ns3]") {
  const auto scenario = parse_scenario(R"(
title = "t"
metrics = ["throughput"]
[flow]
rate_mbps = 3
[[columns]]
name = "one"
[[rows]]
name = "udp"
flow = { kind = "udp" }
[[bounds]]
metric = "throughput"
row = "udp"
at_least = 90
[[bounds]]
metric = "throughput"
row = "udp"
at_least = 110
replaced = "asks for more than the link has"
)",
                                       "file", {});
  if (!scenario) FAIL(scenario.error().message());
  Table table{.scenario = scenario.value(), .command_line = "x"};
  Played played;
  played.result.flows.resize(1);
  played.result.flows[0].goodput_mbps = 100;
  table.played = {{{played}}};
  const auto judged = judge(table);
  REQUIRE(judged.size() == 2);
  CHECK(judged[0].is_held);
  CHECK(judged[0].replaced.empty());
  CHECK(judged[1].is_measured);
  CHECK_FALSE(judged[1].is_held);
  CHECK(judged[1].replaced == "asks for more than the link has");
  CHECK_THAT(text_of(table), Catch::Contains("MISS throughput, udp, one: 100.0 >= 110.0 Mbit/s (no "
                                             "longer required: asks for more than the link has)"));
  const auto bounds = json_of(table)["bounds"];
  CHECK(bounds[0]["replaced"] == "");
  CHECK(bounds[1]["replaced"] == "asks for more than the link has");
}

}  // namespace onehop::sim
