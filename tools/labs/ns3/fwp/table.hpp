// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Table: one figure of the FWP paper in numbers: a ratio by rows and columns, over seeds, the
// paper's value and bound beside it.
//
// text_of() is for people. json_of() has the shape of the tables of tools/labs/ns3, so that
// tools/measure/papers reads both alike.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "engine/base/result.hpp"
#include "tools/labs/plot/chart.hpp"

namespace onehop::fwp {

using plot::estimate;
using plot::Estimate;

/// Bound: what must hold in one column, in the rows that it is for.
struct Bound {
  std::string column;
  std::optional<double> at_least, at_most;
};

struct Row {
  std::string name;
  bool is_judged = true;
};

struct Table {
  std::string id, title, source, note, x_label, metric;
  std::string command_line;
  std::uint64_t seed_first = 1, seeds = 1;
  bool is_short = false;
  std::vector<Row> rows;
  std::vector<std::string> columns;
  std::vector<std::string> paper;  ///< by column; empty: nothing stated
  std::vector<Bound> bounds;
  std::vector<std::vector<std::vector<double>>> values;  ///< [row][column][seed]

  [[nodiscard]] Estimate cell(std::size_t row, std::size_t column) const {
    return estimate(values[row][column]);
  }
};

/// Judgement: met where the whole 95 % interval of the mean keeps the bound.
struct Judgement {
  std::string text;
  bool is_held = false;
};
[[nodiscard]] std::vector<Judgement> judge(const Table& table);

[[nodiscard]] std::string text_of(const Table& table);
[[nodiscard]] nlohmann::json json_of(const Table& table);
/// write_files is plot::write_files() with one script, ID.gp.
[[nodiscard]] Result<void> write_files(const Table& table, const std::string& folder,
                                       std::string& notice);

}  // namespace onehop::fwp
