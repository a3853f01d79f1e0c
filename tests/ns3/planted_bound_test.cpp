// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Goal:   each bound of configs/ns3 can fail: one that holds whatever a law does says nothing.
// Method: results are made by hand for a row that is well, and for rows with planted faults:
//         nothing arrives, all wait for a second, bytes are wrong, one flow takes all, the link's
//         rate jumps. Rows that a bound compares with are well. Nothing is simulated.
// Bounds: each is held in one of the worlds and missed in another.
#include <catch2/catch.hpp>

#include <algorithm>
#include <filesystem>

#include "tools/labs/ns3/scenario.hpp"
#include "tools/labs/ns3/table.hpp"

namespace onehop::sim {
namespace {

constexpr double capacity_mbps = 400;
constexpr double quickest_us = 10, quick_us = 100, slow_us = 1e6;

enum class World { well, dead, slow, wrong, unfair, fast, quick, restless };
constexpr std::array worlds{World::well,   World::dead, World::slow,  World::wrong,
                            World::unfair, World::fast, World::quick, World::restless};

bool is_active(const FlowSpec& flow, double at_s) {
  return at_s >= flow.start_s && (flow.stop_s <= 0 || at_s < flow.stop_s);
}

/// share_of: what flow `i` gets of what `flows` share.
double share_of(std::size_t i, double flows, World world) {
  const double scale = world == World::fast ? 10 : 1;
  if (world == World::dead) return 0;
  if (world == World::unfair) return i == 0 ? scale : 0;
  return scale / flows;
}
double share_at(const RunSpec& spec, std::size_t i, double at_s, World world) {
  if (!is_active(spec.flows[i], at_s)) return 0;
  const auto active = std::ranges::count_if(
      spec.flows, [&](const FlowSpec& flow) { return is_active(flow, at_s); });
  return share_of(i, static_cast<double>(active), world);
}

FlowResult flow_result(const RunSpec& spec, std::size_t i, World world) {
  const double delay_us = world == World::slow    ? slow_us
                          : world == World::quick ? quickest_us
                                                  : quick_us;
  const Spread spread{delay_us, delay_us, delay_us, delay_us, delay_us, 1};
  const bool is_dead = world == World::dead;
  const double share = share_of(i, static_cast<double>(spec.flows.size()), world);
  FlowResult flow{.name = spec.flows[i].name, .delay = spread, .wait = spread, .rtt = spread};
  flow.goodput_mbps = capacity_mbps * share;
  flow.airtime_share = share;
  flow.bytes_delivered = is_dead ? 0 : spec.flows[i].bytes;
  flow.bytes_wrong = world == World::wrong ? 1 : 0;
  flow.is_complete = !is_dead;
  const double step_s = spec.sample_ms / 1e3;
  for (double at_s = step_s; step_s > 0 && at_s <= spec.warm_up_s + spec.measure_s; at_s += step_s)
    flow.series.push_back(
        {.at_s = at_s,
         .goodput_mbps = capacity_mbps * share_at(spec, i, at_s - step_s / 2, world),
         .phy_mbps = world == World::restless && flow.series.size() % 2 == 0
                         ? 3 * capacity_mbps
                         : capacity_mbps});
  return flow;
}

Played play(const RunSpec& spec, World world) {
  Played played;
  for (std::size_t i = 0; i < spec.flows.size(); ++i)
    played.result.flows.push_back(flow_result(spec, i, world));
  played.result.delay = played.result.flows.front().delay;
  return played;
}

/// plant gives the row of a bound a world of its own where it is judged.
Table plant(const Scenario& scenario, const Bound& bound, World world) {
  Table table{.scenario = scenario, .command_line = "planted"};
  table.scenario.bounds = {bound};
  for (std::size_t row = 0; row < scenario.rows.size(); ++row) {
    table.played.emplace_back();
    for (std::size_t column = 0; column < scenario.columns.size(); ++column) {
      const bool is_judged =
          scenario.rows[row] == bound.row && scenario.columns[column] != bound.of_column;
      table.played.back().push_back(
          {play(scenario.points[row][column], is_judged ? world : World::well)});
    }
  }
  return table;
}

}  // namespace

TEST_CASE("each bound of each scenario can hold, and fails where a fault is planted", "[ns3]") {
  std::size_t bounds = 0;
  for (const auto& file : std::filesystem::directory_iterator{ONEHOP_NS3_CONFIGS}) {
    const auto scenario = load_scenario(file.path(), {});
    if (!scenario) FAIL(scenario.error().message());
    for (const Bound& bound : scenario.value().bounds) {
      ++bounds;
      bool has_held = false, has_failed = false;
      for (const World world : worlds)
        for (const Judgement& one : judge(plant(scenario.value(), bound, world))) {
          if (!one.is_measured) continue;
          (one.is_held ? has_held : has_failed) = true;
        }
      CAPTURE(file.path().filename().string(), bound.metric, bound.row);
      CHECK(has_held);
      CHECK(has_failed);
    }
  }
  CHECK(bounds > 50);
}

TEST_CASE("a bound about what is not there, or compared with itself, is refused", "[ns3]") {
  const std::string head = R"(
title = "t"
metrics = ["throughput"]
[[columns]]
name = "one"
[[columns]]
name = "two"
[[rows]]
name = "udp"
flow = { kind = "udp" }
)";
  const auto refused = [&](const std::string& text) {
    const auto scenario = parse_scenario(head + text, "file", {});
    return scenario ? std::string{} : scenario.error().cause;
  };
  const std::string bound = "[[bounds]]\nmetric = \"throughput\"\nat_least = 1\n";
  CHECK(refused(bound + "row = \"udp\"\n").empty());
  CHECK(refused(bound + "row = \"tcp\"\n").find("not there") != std::string::npos);
  CHECK(refused(bound + "row = \"udp\"\nof_row = \"tcp\"\n").find("not there") !=
        std::string::npos);
  CHECK(refused(bound + "row = \"udp\"\ncolumns = [\"three\"]\n").find("not there") !=
        std::string::npos);
  CHECK(refused(bound + "row = \"udp\"\nof_row = \"udp\"\n").find("with itself") !=
        std::string::npos);
  CHECK(refused(bound + "row = \"udp\"\nof_column = \"one\"\n").find("with itself") !=
        std::string::npos);
  CHECK(refused(bound + "row = \"udp\"\ncolumns = [\"two\"]\nof_column = \"one\"\n").empty());
  const std::string paper = "[[paper]]\nmetric = \"throughput\"\nvalue = \"1\"\n";
  CHECK(refused(paper + "row = \"udp\"\ncolumn = \"none\"\n").find("not there") !=
        std::string::npos);
  CHECK_FALSE(
      refused("[[bounds]]\nmetric = \"throughput\"\nrow = \"udp\"\nat_least = nan\n").empty());
  CHECK_FALSE(refused("[[bounds]]\nmetric = \"throughput\"\nrow = 3\nat_least = 1\n").empty());
}

}  // namespace onehop::sim
