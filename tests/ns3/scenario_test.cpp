// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Scenario files, metrics, and the table they make. Nothing is simulated.
#include <catch2/catch.hpp>

#include <filesystem>
#include <string>

#include "tools/labs/ns3/metric.hpp"
#include "tools/labs/ns3/scenario.hpp"
#include "tools/labs/ns3/table.hpp"

namespace onehop::sim {
namespace {

const std::string base = R"(
title = "t"
metrics = ["throughput"]
seeds = 5
[link]
width_mhz = 80
[flow]
rate_mbps = 3
[[columns]]
name = "one"
[[columns]]
name = "two"
link = { pairs = 2 }
flow = { each_pair = true, stagger_s = 0.5, rate_total_mbps = 10 }
[[rows]]
name = "udp"
flow = { kind = "udp" }
[[rows]]
name = "both"
link = { width_mhz = 160 }
flows = [{ name = "a" }, { name = "b", kind = "tcp" }]
)";

std::string message_of(const std::string& text) {
  const auto scenario = parse_scenario(text, "file", {});
  REQUIRE(scenario.has_error());
  CHECK(scenario.error().code == ExitCode::usage);
  return scenario.error().message();
}

Scenario good(const std::string& text, const ScenarioOptions& options = {}) {
  auto scenario = parse_scenario(text, "file", options);
  if (!scenario) FAIL(scenario.error().message());
  return std::move(scenario).value();
}

}  // namespace

TEST_CASE("a point takes what the file, its column and its row say, in that order", "[ns3]") {
  const Scenario s = good(base);
  CHECK(s.rows == std::vector<std::string>{"udp", "both"});
  CHECK(s.seeds == 5);
  const RunSpec& one = s.points[0][0];
  CHECK(one.link.width_mhz == 80);
  REQUIRE(one.flows.size() == 1);
  CHECK(one.flows[0].kind == "udp");
  CHECK(one.flows[0].rate_mbps == 3);
  CHECK(one.flows[0].name == "udp");
  const RunSpec& two = s.points[0][1];
  REQUIRE(two.flows.size() == 2);
  CHECK(two.flows[1].pair == 1);
  CHECK(two.flows[1].start_s == 0.5);
  CHECK(two.flows[1].rate_mbps == 5);
  const RunSpec& both = s.points[1][0];
  CHECK(both.link.width_mhz == 160);
  REQUIRE(both.flows.size() == 2);
  CHECK(both.flows[1].name == "b");
}

TEST_CASE("a short run keeps what [short] names, and one seed", "[ns3]") {
  const std::string text =
      base + "[short]\nrows = [\"both\"]\ncolumns = [\"two\"]\nrun = { measure_s = 0.25 }\n";
  const Scenario s = good(text, {.is_short = true});
  CHECK(s.rows == std::vector<std::string>{"both"});
  CHECK(s.columns == std::vector<std::string>{"two"});
  CHECK(s.seeds == 1);
  CHECK(s.points[0][0].measure_s == 0.25);
  CHECK(good(text).points[0][0].measure_s == 1.0);
}

TEST_CASE(
    "--row keeps that row and what its bounds compare it with, --bounded what any bound needs",
    "[ns3]") {
  const std::string text = base +
                           "[[rows]]\nname = \"free\"\n[[bounds]]\nmetric = \"throughput\"\nrow = "
                           "\"both\"\nat_least = 0.9\n"
                           "of_row = \"udp\"\ncolumns = [\"two\"]\n";
  CHECK(good(text).rows == std::vector<std::string>{"udp", "both", "free"});
  CHECK(good(text, {.rows = {"both"}}).rows == std::vector<std::string>{"udp", "both"});
  CHECK(good(text, {.rows = {"free"}}).rows == std::vector<std::string>{"free"});
  CHECK(parse_scenario(text, "file", {.rows = {"none"}}).has_error());
  const Scenario bounded = good(text, {.is_bounded = true});
  CHECK(bounded.rows == std::vector<std::string>{"udp", "both"});
  CHECK(bounded.columns == std::vector<std::string>{"two"});
  CHECK(
      parse_scenario(base, "file", {.is_bounded = true}).has_error());  // no bound, nothing to play
}

TEST_CASE("a slip of the pen in a scenario is refused and named", "[ns3]") {
  CHECK(message_of("title = ").find("line") != std::string::npos);
  CHECK(message_of("metrics = [\"throughput\"]").find("title") != std::string::npos);
  CHECK(message_of(base + "[run]\nmeasure = 1\n").find("measure") != std::string::npos);
  for (const char* extra :
       {"[run]\nmeasure = 1\n", "[run]\nmeasure_s = \"1\"\n", "[run]\nmeasure_s = -1\n",
        "[short]\nrows = [\"none\"]\n", "[short]\nnothing = 1\n",
        "[[bounds]]\nmetric = \"no\"\nrow = \"udp\"\nat_least = 1\n",
        "[[bounds]]\nmetric = \"jain\"\nrow = \"udp\"\n", "[[paper]]\nmetric = \"jain\"\n",
        "[[rows]]\nname = \"udp\"\n", "[[rows]]\nname = \"x\"\nflow = { law = \"none\" }\n",
        "[[rows]]\nname = \"x\"\nflow = { pair = 7 }\n",
        "[[rows]]\nname = \"x\"\nlink = { width_mhz = 81 }\n",
        "[[rows]]\nname = \"x\"\nlink = { standard = \"ac\", mcs = 11 }\n",
        "[[rows]]\nname = \"x\"\nlink = { block_ack = 63 }\n",
        "[[rows]]\nname = \"x\"\nlink = { rssi_dbm = 40 }\n",
        "[[rows]]\nname = \"x\"\nlink = { rate_control = \"ideal\", mcs_trace = [1] }\n",
        "[[rows]]\nname = \"x\"\nlink = { rate_control = \"ideal\", topology = \"ap\" }\n",
        "[[rows]]\nname = \"x\"\nlink = { walk_mps = 1, rssi_dbm = -40 }\n",
        "[[rows]]\nname = \"x\"\nlink = { fading_paths = 2 }\n",
        "[[rows]]\nname = \"x\"\nflow = { fragments = \"some\" }\n",
        "[[rows]]\nname = \"x\"\nflow = { start_s = 2, stop_s = 1 }\n"}) {
    CAPTURE(extra);
    CHECK(message_of(base + extra).find("file") != std::string::npos);
  }
  CHECK(message_of(base + "[[rows]]\nname = \"x\"\nlink = { block_ack = 1 }\n").find("64") !=
        std::string::npos);
  CHECK(message_of("title = \"t\"\nmetrics = [\"speed\"]\n").find("throughput") !=
        std::string::npos);
}

TEST_CASE("every scenario of the papers can be played, whole and short", "[ns3]") {
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator{ONEHOP_NS3_CONFIGS}) {
    if (entry.path().extension() != ".toml") continue;
    CAPTURE(entry.path().string());
    ++files;
    for (const bool is_short : {false, true}) {
      const auto scenario = load_scenario(entry.path().string(), {.is_short = is_short});
      if (!scenario) FAIL(scenario.error().message());
      CHECK_FALSE(scenario.value().source.empty());
      std::size_t most = 0;
      for (const auto& row : scenario.value().points)
        for (const RunSpec& point : row) most = std::max(most, point.flows.size());
      // One seed says nothing where several contend for the air.
      if (!is_short && most > 1) CHECK(scenario.value().seeds >= 5);
    }
  }
  CHECK(files > 5);
  CHECK(load_scenario("/nonexistent.toml", {}).error().code == ExitCode::usage);
}

TEST_CASE("metrics: throughput counts payload, Jain's index, flows by name", "[ns3]") {
  RunSpec spec;
  spec.flows = {{.name = "ours"}, {.name = "tcp", .kind = "tcp"}, {.name = "ping", .kind = "ping"}};
  RunResult result;
  result.flows.resize(3);
  result.flows[0].goodput_mbps = 1402;
  result.flows[1].goodput_mbps = 100;
  result.flows[0].delay = {.mean = 10, .p95 = 20, .count = 3};
  result.flows[1].delay = {.mean = 40, .p95 = 60, .count = 1};
  result.flows[2].rtt = {.mean = 5, .count = 1};
  CHECK(metric_of("throughput:ours", spec, result) == Approx(1446));
  CHECK(metric_of("goodput:ours", spec, result) == Approx(1402));
  CHECK(metric_of("throughput", spec, result) == Approx(1546));
  CHECK(metric_of("delay_p95:tcp", spec, result) == Approx(60));
  CHECK_FALSE(metric_of("delay_p95", spec, result));  // the pooled one was not measured
  CHECK_FALSE(metric_of("wait_mean", spec, result));
  CHECK_FALSE(metric_of("complete", spec, result));
  CHECK(metric_of("rtt_mean", spec, result) == Approx(5));
  CHECK(metric_of("jain", spec, result) ==
        Approx(1546.0 * 1546 / (2 * (1446.0 * 1446 + 100.0 * 100))));
  CHECK_FALSE(metric_of("throughput:nobody", spec, result));
}

// Goal:   the steps in which the link's rate more than doubles or halves are counted, each once.
// Method: samples of 100, 200, 401, 200, 99 after one that belongs to the warm-up: three of four.
TEST_CASE("metrics: how often the link's rate jumps", "[ns3]") {
  RunSpec spec;
  spec.warm_up_s = 0.12;
  spec.flows = {{.name = "a"}, {.name = "control", .kind = "control"}};
  RunResult result;
  result.flows.resize(2);
  CHECK_FALSE(metric_of("rate_jumps", spec, result));
  double at_s = 0.06;
  for (const double phy_mbps : {1000.0, 100.0, 200.0, 401.0, 200.0, 99.0})
    result.flows[0].series.push_back({.at_s = at_s += 0.04, .phy_mbps = phy_mbps});
  CHECK(*metric_of("rate_jumps", spec, result) == Approx(75));
}

// Goal:   what a pair is off its share by counts from the second bin after a join on, and chance
// averages out over seeds. Method: two flows of 100 in bins of 0.1 s, the second from 0.3 s on; one
// bin is off, upwards in one run and down in the other.
TEST_CASE("metrics: how far from its share a flow is once joins and leaves have passed", "[ns3]") {
  RunSpec spec;
  spec.warm_up_s = 0.1;
  spec.sample_ms = 100;
  spec.flows = {{.name = "a"}, {.name = "b", .start_s = 0.3}};
  const auto run = [](double odd) {
    RunResult result;
    result.flows.resize(2);
    for (int i = 1; i <= 8; ++i) {
      const bool is_alone = i <= 3;
      result.flows[0].series.push_back({.at_s = i * 0.1,
                                        .goodput_mbps = is_alone ? 200.0
                                                        : i == 4 ? 170
                                                        : i == 6 ? odd
                                                                 : 100});
      result.flows[1].series.push_back({.at_s = i * 0.1,
                                        .goodput_mbps = is_alone ? 0.0
                                                        : i == 4 ? 30
                                                        : i == 6 ? 200 - odd
                                                                 : 100});
    }
    return result;
  };
  const RunResult up = run(112), down = run(88);
  CHECK(*metric_of("off_share_max", spec, up) ==
        Approx(12));  // not the 70 of the first bin after the join
  CHECK(*metric_of("off_share_mean", spec, up) ==
        Approx(24.0 / 10));  // two lone bins that count, four of two
  CHECK(*metric_of("mean_off_share_max", spec, mean_series({&up, &down})) ==
        Approx(0).margin(1e-9));
  CHECK(is_of_all_seeds("mean_off_share_max"));
  CHECK_FALSE(is_of_all_seeds("off_share_max"));
}

// Goal:   a stall is 50 ms and more without a byte; recovery is how long after it 0.9 of the median
//         between stalls is carried again. Method: bins of 10 ms at 100, a gap of five of them that
//         counts and one of four that does not; after the first 30 ms at 50, of which the
//         fifth of its 50 ms that may lack lets the last pass.
TEST_CASE("metrics: how long nothing came, and how soon it went on", "[ns3]") {
  RunSpec spec;
  spec.warm_up_s = 0.015;
  spec.sample_ms = 10;
  spec.flows = {{.name = "a"}};
  RunResult result;
  result.flows.resize(1);
  const auto add = [&](int bins, double mbps) {
    for (int i = 0; i < bins; ++i)
      result.flows[0].series.push_back(
          {.at_s = 0.01 * static_cast<double>(result.flows[0].series.size() + 1),
           .goodput_mbps = mbps});
  };
  add(1, 0);  // of the warm-up
  add(20, 100);
  CHECK(*metric_of("stalls", spec, result) == 0);
  CHECK(*metric_of("stall_max", spec, result) == 0);
  CHECK_FALSE(metric_of("recovery_mean", spec, result));
  add(5, 0);
  add(3, 50);
  add(10, 100);
  add(4, 0);
  add(58, 100);
  CHECK(*metric_of("stalls", spec, result) == Approx(1));
  CHECK(*metric_of("stall_max", spec, result) == Approx(50));
  CHECK(*metric_of("recovery_mean", spec, result) == Approx(20));
  add(20, 0);
  CHECK(*metric_of("stall_max", spec, result) == Approx(200));
  CHECK(*metric_of("recovery_mean", spec, result) == Approx(10));  // the last one has no time left
  spec.sample_ms = 0;
  CHECK_FALSE(metric_of("stalls", spec, result));
}

TEST_CASE("metrics: what is missing of files, the slowest of a name, what was sampled", "[ns3]") {
  RunSpec spec;
  spec.warm_up_s = 0.1;
  spec.flows = {{.name = "far", .kind = "udp", .bytes = 100}, {.name = "far", .kind = "udp"}};
  RunResult result;
  result.flows.resize(2);
  result.flows[0] = {
      .goodput_mbps = 7,
      .bytes_delivered = 60,
      .series = {{.at_s = 0.1, .backlog_kb = 9}, {.at_s = 0.2, .backlog_kb = 4, .target_kb = 5}}};
  result.flows[1] = {.goodput_mbps = 3, .bytes_delivered = 500};
  CHECK(*metric_of("missing", spec, result) == 40);
  CHECK(*metric_of("throughput_min:far", spec, result) == 3);
  CHECK(*metric_of("backlog_mean", spec, result) == 4);
  CHECK(*metric_of("target_mean", spec, result) == 5);
}

TEST_CASE("bounds are judged against a number or another row, and failures are no numbers",
          "[ns3]") {
  Scenario s = good(base + R"(
[[bounds]]
metric = "throughput"
row = "both"
at_least = 0.9
of_row = "udp"
[[bounds]]
metric = "throughput"
row = "udp"
columns = ["one"]
at_most = 50
[[bounds]]
metric = "throughput"
row = "both"
columns = ["one"]
at_least = 0.9
of_row = "udp"
of_column = "two"
)");
  Table table{.scenario = s, .command_line = "x"};
  table.played.resize(2, std::vector<std::vector<Played>>(2));
  const auto played = [](double mbps, std::size_t flows) {
    Played one;
    one.result.flows.resize(flows);
    one.result.flows[0].goodput_mbps = mbps;
    return one;
  };
  table.played[0][0] = {played(100, 1), played(100, 1)};
  table.played[1][0] = {played(95 * 1402.0 / 1446, 2)};
  table.played[0][1] = {played(100, 2)};
  table.played[1][1] = {played(95 * 1402.0 / 1446, 2), Played{{}, "ended by signal 6"}};
  const auto judged = judge(table);
  REQUIRE(judged.size() == 4);
  CHECK(judged[0].is_held);
  CHECK_FALSE(judged[1].is_held);  // nine seeds of ten are another number than all ten
  CHECK(judged[1].text == "throughput, both, two: a run failed");
  CHECK(table.cell("throughput", 1, 1).count == 0);
  CHECK(judged[2].is_measured);
  CHECK_FALSE(judged[2].is_held);
  CHECK(judged[3].is_held);  // 95 of the 100 in the other column
  CHECK(text_of(table).find("MISS") != std::string::npos);
  CHECK(json_of(table)["points"].size() == 6);
}

}  // namespace onehop::sim
