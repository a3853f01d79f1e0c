// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Scenario: one table of a paper, read from configs/ns3/NAME.toml: rows, columns, what is measured,
// what the paper says, and what must hold.
//
//   title, source, note          for people                 metrics = ["throughput", "delay_p95"]
//   [link] [run] [flow]          what every point has       seeds = 5
//   [[columns]] [[rows]]         name, and what differs: link = {..}, run = {..}, flow = {..},
//                                flows = [{..}, ..]
//   [[paper]]                    metric, row, column, value
//   [[bounds]]                   metric, row, columns, at_least or at_most; of_row, of_column: that
//                                times the value there;
//                                replaced: why it is no longer required. It is judged and shown all
//                                the same
//   differs                      texts: where the paper's number is not met, which assumption
//                                differs, and what shows it
//   [short]                      rows, columns, metrics, run: what --short keeps
//
// A flow is built from [flow], the column's flow, the row's flow, and itself, in that order; flows
// come from the row, or the column, or [[flows]]. each_pair copies a flow to every pair (or
// station), stagger_s apart.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/base/result.hpp"
#include "tools/labs/ns3/run_spec.hpp"

namespace onehop::sim {

struct PaperValue {
  std::string metric, row, column, value;
};

struct Bound {
  std::string metric, row;
  std::vector<std::string> columns;  ///< empty: all
  std::optional<double> at_least, at_most;
  std::string of_row,
      of_column;         ///< relative to the value there; empty: the same row, the same column
  std::string replaced;  ///< why it is no longer required; empty: it is
  [[nodiscard]] bool is_relative() const { return !of_row.empty() || !of_column.empty(); }
};

struct Scenario {
  std::string id, title, source, note, x_label;
  std::vector<std::string> metrics, rows, columns, differs;
  std::vector<std::vector<RunSpec>> points;  ///< [row][column]; seed not set
  std::uint64_t seed_first = 1, seeds = 1;
  std::vector<PaperValue> paper;
  std::vector<Bound> bounds;
  bool is_short = false, is_bounded = false;
};

struct ScenarioOptions {
  bool is_short = false;
  bool is_bounded = false;  ///< only what the bounds need: the rows and columns that they name
  std::optional<std::uint64_t> seed, seeds;
  std::vector<std::string>
      rows;  ///< these alone, and those that a bound compares them with; empty: all
};

/// load_scenario fails with ExitCode::usage, naming the file and the key.
[[nodiscard]] Result<Scenario> load_scenario(const std::string& path,
                                             const ScenarioOptions& options);
[[nodiscard]] Result<Scenario> parse_scenario(const std::string& text, const std::string& id,
                                              const ScenarioOptions& options);

}  // namespace onehop::sim
