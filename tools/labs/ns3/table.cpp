// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/labs/ns3/table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

namespace onehop::sim {

using nlohmann::json;

namespace {

std::size_t index_of(const std::vector<std::string>& names, const std::string& name) {
  return static_cast<std::size_t>(std::find(names.begin(), names.end(), name) - names.begin());
}

std::string number(const std::string& metric, double value) {
  return fmt::format("{:.{}f}", value, metric_digits(metric));
}

const PaperValue* paper_of(const Scenario& scenario, const std::string& metric,
                           const std::string& row, const std::string& column) {
  for (const PaperValue& value : scenario.paper)
    if (value.metric == metric && value.row == row && value.column == column) return &value;
  return nullptr;
}

std::string shown(const Table& table, const std::string& metric, std::size_t row,
                  std::size_t column) {
  const Scenario& s = table.scenario;
  const Estimate cell = table.cell(metric, row, column);
  std::string out = cell.count == 0 ? "-" : number(metric, cell.mean);
  if (cell.count > 1) out += " +-" + number(metric, cell.half_width);
  if (const PaperValue* const paper = paper_of(s, metric, s.rows[row], s.columns[column]))
    out += " (" + paper->value + ")";
  return out;
}

}  // namespace

bool Table::has_failed(std::size_t row, std::size_t column) const {
  return std::any_of(played[row][column].begin(), played[row][column].end(),
                     [](const Played& one) { return !one.failure.empty(); });
}

Estimate Table::cell(const std::string& metric, std::size_t row, std::size_t column) const {
  std::vector<double> values;
  if (has_failed(row, column)) return {};
  if (is_of_all_seeds(metric)) {
    std::vector<const RunResult*> results;
    for (const Played& one : played[row][column]) results.push_back(&one.result);
    if (results.empty()) return {};
    if (const auto value = metric_of(metric, scenario.points[row][column], mean_series(results)))
      values.push_back(*value);
    return estimate(values);
  }
  for (const Played& one : played[row][column])
    if (const auto value = metric_of(metric, scenario.points[row][column], one.result))
      values.push_back(*value);
  return estimate(values);
}

Result<Table> play_table(const Scenario& scenario, std::size_t jobs, bool is_quiet,
                         std::string command_line) {
  struct At {
    std::size_t row, column;
    std::uint64_t seed;
  };
  std::vector<RunSpec> specs;
  std::vector<At> at;
  for (std::size_t row = 0; row < scenario.rows.size(); ++row)
    for (std::size_t column = 0; column < scenario.columns.size(); ++column)
      for (std::uint64_t seed = scenario.seed_first; seed < scenario.seed_first + scenario.seeds;
           ++seed) {
        specs.push_back(scenario.points[row][column]);
        specs.back().seed = seed;
        at.push_back({row, column, seed});
      }
  std::size_t done = 0;
  const auto tell = [&](std::size_t i, const Played& one) {
    ++done;
    if (is_quiet && one.failure.empty()) return;
    fmt::print(
        stderr, "{} {}/{}: {}, {}, seed {}: {}\n", scenario.id, done, specs.size(),
        scenario.rows[at[i].row], scenario.columns[at[i].column], at[i].seed,
        one.failure.empty() ? fmt::format("{:.1f} s of CPU", one.result.cpu_s) : one.failure);
  };
  ONEHOP_TRY(played, play_all(specs, jobs, tell));
  Table table{.scenario = scenario, .command_line = std::move(command_line)};
  table.played.resize(scenario.rows.size(),
                      std::vector<std::vector<Played>>(scenario.columns.size()));
  for (std::size_t i = 0; i < played.size(); ++i)
    table.played[at[i].row][at[i].column].push_back(std::move(played[i]));
  return table;
}

std::vector<Judgement> judge(const Table& table) {
  const Scenario& s = table.scenario;
  std::vector<Judgement> out;
  for (const Bound& bound : s.bounds) {
    const std::string& of_row = bound.of_row.empty() ? bound.row : bound.of_row;
    const std::size_t row = index_of(s.rows, bound.row), of = index_of(s.rows, of_row);
    for (std::size_t column = 0; column < s.columns.size(); ++column) {
      const auto& only = bound.columns;
      if (!only.empty() && std::find(only.begin(), only.end(), s.columns[column]) == only.end())
        continue;
      const double factor = bound.at_least ? *bound.at_least : *bound.at_most;
      const char* const sign = bound.at_least ? ">=" : "<=";
      Judgement one;
      const std::string what =
          fmt::format("{}, {}, {}", bound.metric, bound.row, s.columns[column]);
      const std::size_t of_column =
          bound.of_column.empty() ? column : index_of(s.columns, bound.of_column);
      const bool has_cells =
          row < s.rows.size() && of < s.rows.size() && of_column < s.columns.size();
      const Estimate cell = has_cells ? table.cell(bound.metric, row, column) : Estimate{};
      const Estimate other =
          has_cells && bound.is_relative() ? table.cell(bound.metric, of, of_column) : Estimate{};
      if (has_cells && (table.has_failed(row, column) ||
                        (bound.is_relative() && table.has_failed(of, of_column)))) {
        one.text = what + ": a run failed";
        one.is_measured = true;  // and not held
      } else if (cell.count == 0 ||
                 (bound.is_relative() && (other.count == 0 || other.mean == 0))) {
        one.text = what + ": not measured";
      } else {
        const double value = bound.is_relative() ? cell.mean / other.mean : cell.mean;
        one.is_measured = true;
        one.is_held = bound.at_least ? value >= factor : value <= factor;
        const std::string reference =
            bound.of_column.empty() ? of_row : of_row + ", " + bound.of_column;
        one.text =
            bound.is_relative()
                ? fmt::format("{}: {:.4f} {} {:.4f} of {}", what, value, sign, factor, reference)
                : fmt::format("{}: {} {} {} {}", what, number(bound.metric, value), sign,
                              number(bound.metric, factor), metric_unit(bound.metric));
      }
      one.replaced = bound.replaced;
      out.push_back(one);
    }
  }
  return out;
}

std::string text_of(const Table& table) {
  const Scenario& s = table.scenario;
  std::string out =
      fmt::format("# {}\n# onehop {}, ns-3 3.37, seeds {}..{}\n{}{}\n", table.command_line,
                  ONEHOP_VERSION, s.seed_first, s.seed_first + s.seeds - 1, s.title,
                  s.is_short     ? "   [short: one seed, short points]"
                  : s.is_bounded ? "   [bounded rows alone]"
                                 : "");
  if (!s.source.empty()) out += s.source + "\n";
  if (!s.note.empty()) out += s.note + "\n";
  for (const std::string& text : s.differs) out += "Differs: " + text + "\n";
  for (const std::string& metric : s.metrics) {
    const std::string unit = metric_unit(metric);
    out += fmt::format(
        "\n{}{}{}; in brackets the paper's\n", metric, unit.empty() ? "" : " [" + unit + "]",
        s.seeds > 1 ? fmt::format(", mean of {} seeds +- 95 % interval", s.seeds) : "");
    std::size_t first = 4;
    for (const std::string& row : s.rows) first = std::max(first, row.size());
    std::vector<std::size_t> widths;
    for (std::size_t column = 0; column < s.columns.size(); ++column) {
      std::size_t width = s.columns[column].size();
      for (std::size_t row = 0; row < s.rows.size(); ++row)
        width = std::max(width, shown(table, metric, row, column).size());
      widths.push_back(width);
    }
    out += fmt::format("{:<{}}", "", first);
    for (std::size_t column = 0; column < s.columns.size(); ++column)
      out += fmt::format("  {:>{}}", s.columns[column], widths[column]);
    out += "\n";
    for (std::size_t row = 0; row < s.rows.size(); ++row) {
      out += fmt::format("{:<{}}", s.rows[row], first);
      for (std::size_t column = 0; column < s.columns.size(); ++column)
        out += fmt::format("  {:>{}}", shown(table, metric, row, column), widths[column]);
      out += "\n";
    }
  }
  const auto judgements = judge(table);
  if (!judgements.empty()) out += "\nbounds\n";
  for (const Judgement& one : judgements)
    out += fmt::format("  {:<4} {}{}\n",
                       !one.is_measured ? "-"
                       : one.is_held    ? "ok"
                                        : "MISS",
                       one.text,
                       one.replaced.empty() ? "" : " (no longer required: " + one.replaced + ")");
  return out;
}

json json_of(const Table& table) {
  const Scenario& s = table.scenario;
  json metrics = json::array(), paper = json::array(), bounds = json::array(),
       points = json::array();
  for (const std::string& metric : s.metrics) {
    json cells = json::array();
    for (std::size_t row = 0; row < s.rows.size(); ++row) {
      json line = json::array();
      for (std::size_t column = 0; column < s.columns.size(); ++column) {
        const Estimate cell = table.cell(metric, row, column);
        line.push_back(cell.count == 0 ? json{}
                                       : json{{"mean", cell.mean},
                                              {"half_width", cell.half_width},
                                              {"count", cell.count}});
      }
      cells.push_back(line);
    }
    metrics.push_back({{"name", metric},
                       {"unit", metric_unit(metric)},
                       {"digits", metric_digits(metric)},
                       {"cells", cells}});
  }
  for (const PaperValue& value : s.paper)
    paper.push_back({{"metric", value.metric},
                     {"row", value.row},
                     {"column", value.column},
                     {"value", value.value}});
  for (const Judgement& one : judge(table))
    bounds.push_back({{"text", one.text},
                      {"is_measured", one.is_measured},
                      {"is_held", one.is_held},
                      {"replaced", one.replaced}});
  for (std::size_t row = 0; row < s.rows.size(); ++row)
    for (std::size_t column = 0; column < s.columns.size(); ++column)
      for (std::size_t i = 0; i < table.played[row][column].size(); ++i) {
        const Played& one = table.played[row][column][i];
        json point{{"row", s.rows[row]}, {"column", s.columns[column]}, {"seed", s.seed_first + i}};
        if (one.failure.empty())
          point["result"] = to_json(one.result);
        else
          point["failure"] = one.failure;
        points.push_back(point);
      }
  return {{"schema_version", 1},
          {"type", "ns3"},
          {"command_line", table.command_line},
          {"version", ONEHOP_VERSION},
          {"id", s.id},
          {"title", s.title},
          {"source", s.source},
          {"note", s.note},
          {"is_short", s.is_short},
          {"is_bounded", s.is_bounded},
          {"seed_first", s.seed_first},
          {"seeds", s.seeds},
          {"rows", s.rows},
          {"columns", s.columns},
          {"metrics", metrics},
          {"paper", paper},
          {"differs", s.differs},
          {"bounds", bounds},
          {"points", points}};
}

}  // namespace onehop::sim
