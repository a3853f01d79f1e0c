// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// onehop-ns3, which `onehop ns3` starts: plays a scenario, one table of a paper, over ns-3's Wi-Fi.
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include <string>
#include <thread>

#include "tools/labs/ns3/scenario.hpp"
#include "tools/labs/ns3/table.hpp"
#include "tools/onehop/command_line.hpp"
#include "tools/onehop/laboratories.hpp"
#include "tools/onehop/laboratory_program.hpp"

namespace onehop::sim {
namespace {

struct Options {
  std::string scenario, out;
  ScenarioOptions how;
  std::size_t jobs = std::max(1U, std::thread::hardware_concurrency());
  bool is_json = false, is_quiet = false;
};

int fail(const Error& error) {
  fmt::print(stderr, "onehop-ns3: {}\n", error.message());
  return static_cast<int>(error.code);
}

/// Exit code 1: a point failed or a bound does not hold. A short run is not long enough to judge
/// by.
int run(const Options& options, const std::string& command_line) {
  const auto scenario = load_scenario(options.scenario, options.how);
  if (!scenario) return fail(scenario.error());
  const auto table = play_table(scenario.value(), options.jobs, options.is_quiet, command_line);
  if (!table) return fail(table.error());
  if (options.is_json)
    fmt::print("{}\n", json_of(table.value()).dump());
  else
    fmt::print("{}", text_of(table.value()));
  if (!options.out.empty()) {
    std::string notice;
    if (const auto written = write_files(table.value(), options.out, notice); !written)
      return fail(written.error());
    if (!notice.empty()) fmt::print(stderr, "onehop-ns3: {}\n", notice);
  }
  bool is_well = true;
  for (const auto& row : table.value().played)
    for (const auto& column : row)
      for (const Played& one : column) is_well = is_well && one.failure.empty();
  if (!options.how.is_short)
    for (const Judgement& one : judge(table.value()))
      is_well = is_well && (one.is_held || !one.replaced.empty());
  return is_well ? 0 : 1;
}

void add_options(CLI::App& app, Options& options) {
  CLI::App& ns3 = *app.add_subcommand("ns3", tool::find_laboratory("ns3")->about);
  ns3.add_option("--scenario", options.scenario, "configs/ns3/NAME.toml")
      ->required()
      ->type_name("FILE");
  ns3.add_option("--seed", options.how.seed, "first seed (1)")->check(CLI::Range(1, 1'000'000));
  ns3.add_option("--seeds", options.how.seeds, "how many, instead of the scenario's")
      ->check(CLI::Range(1, 1000));
  ns3.add_flag("--bounded", options.how.is_bounded, "only the rows and columns that a bound names");
  ns3.add_option("--row", options.how.rows,
                 "this row alone, and those that a bound compares it with (repeat for more)")
      ->type_name("ROW");
  ns3.add_flag(
      "--short", options.how.is_short,
      "one seed, and only what the scenario's [short] keeps; bounds are shown, not judged");
  ns3.add_option("--jobs", options.jobs, "points played at a time (one per core)")
      ->check(CLI::Range(1, 1024));
  ns3.add_option("--out", options.out, "folder for the text, JSON and gnuplot files")
      ->type_name("FOLDER");
  ns3.add_flag("--json", options.is_json, "print JSON instead of text");
  ns3.add_flag("--quiet", options.is_quiet, "no line per point");
}

}  // namespace
}  // namespace onehop::sim

int main(int argc, char** argv) {
  onehop::sim::Options options;
  return onehop::tool::run_laboratory(
      argc, argv, "ns3", [&](CLI::App& app) { add_options(app, options); },
      [&] { return run(options, onehop::tool::command_line()); });
}
