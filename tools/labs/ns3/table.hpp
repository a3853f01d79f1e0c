// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Table: what a scenario's points came to, the bounds judged, and how both are shown: text, JSON,
// gnuplot.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "engine/base/result.hpp"
#include "tools/labs/ns3/metric.hpp"
#include "tools/labs/ns3/scenario.hpp"
#include "tools/labs/ns3/worker.hpp"
#include "tools/labs/plot/chart.hpp"

namespace onehop::sim {

using plot::estimate;
using plot::Estimate;

struct Table {
  Scenario scenario;
  std::string command_line;
  std::vector<std::vector<std::vector<Played>>> played;  ///< [row][column][seed]

  [[nodiscard]] bool has_failed(std::size_t row, std::size_t column) const;
  /// cell is of all seeds, or nothing where a run failed: which seeds fail depends on what is
  /// measured.
  [[nodiscard]] Estimate cell(const std::string& metric, std::size_t row, std::size_t column) const;
};

/// Judgement: one bound in one column.
struct Judgement {
  std::string text;
  bool is_held = false;
  bool is_measured = false;
  std::string replaced;  ///< why nothing depends on it any more; empty: it must hold
};
[[nodiscard]] std::vector<Judgement> judge(const Table& table);

/// play_table plays all points, and tells of each on standard error unless quiet.
[[nodiscard]] Result<Table> play_table(const Scenario& scenario, std::size_t jobs, bool is_quiet,
                                       std::string command_line);

[[nodiscard]] std::string text_of(const Table& table);
[[nodiscard]] nlohmann::json json_of(const Table& table);

/// write_files is plot::write_files() with a script for each metric, ID-METRIC.gp.
[[nodiscard]] Result<void> write_files(const Table& table, const std::string& folder,
                                       std::string& notice);

}  // namespace onehop::sim
