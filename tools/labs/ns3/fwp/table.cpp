// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/labs/ns3/fwp/table.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace onehop::fwp {

using nlohmann::json;

namespace {

constexpr int digits = 2;

std::string shown(const Estimate& cell) {
  return cell.count > 1
             ? fmt::format("{:.{}f} +-{:.{}f}", cell.mean, digits, cell.half_width, digits)
             : fmt::format("{:.{}f}", cell.mean, digits);
}

}  // namespace

std::vector<Judgement> judge(const Table& table) {
  std::vector<Judgement> out;
  for (const Bound& bound : table.bounds) {
    const auto column = static_cast<std::size_t>(std::ranges::find(table.columns, bound.column) -
                                                 table.columns.begin());
    for (std::size_t row = 0; row < table.rows.size(); ++row) {
      if (!table.rows[row].is_judged || column == table.columns.size()) continue;
      const Estimate cell = table.cell(row, column);
      const bool is_held = (!bound.at_least || cell.mean - cell.half_width >= *bound.at_least) &&
                           (!bound.at_most || cell.mean + cell.half_width <= *bound.at_most);
      std::string limits;
      if (bound.at_least) limits += fmt::format(">= {:.{}f}", *bound.at_least, digits);
      if (bound.at_most)
        limits +=
            fmt::format("{}<= {:.{}f}", limits.empty() ? "" : " and ", *bound.at_most, digits);
      out.push_back({fmt::format("{}, {}, {}: {} {}, {}", table.metric, table.rows[row].name,
                                 bound.column, shown(cell), limits, is_held ? "met" : "not met"),
                     is_held});
    }
  }
  return out;
}

std::string text_of(const Table& table) {
  std::string out = fmt::format(
      "# {}\n# onehop {}, seeds {}..{}\n{}{}\n{}\n{}\n\n{}{}; in brackets the paper's\n",
      table.command_line, ONEHOP_VERSION, table.seed_first, table.seed_first + table.seeds - 1,
      table.title, table.is_short ? "   [short]" : "", table.source, table.note, table.metric,
      table.seeds > 1 ? fmt::format(", mean of {} seeds +- 95 % interval", table.seeds) : "");
  std::vector<std::string> heads;
  for (std::size_t column = 0; column < table.columns.size(); ++column)
    heads.push_back(table.columns[column] +
                    (table.paper[column].empty() ? "" : " (" + table.paper[column] + ")"));
  std::size_t first = 0, width = 0;
  for (const Row& row : table.rows) first = std::max(first, row.name.size());
  for (const std::string& head : heads) width = std::max(width, head.size());
  for (std::size_t row = 0; row < table.rows.size(); ++row)
    for (std::size_t column = 0; column < heads.size(); ++column)
      width = std::max(width, shown(table.cell(row, column)).size());
  out += fmt::format("{:<{}}", "", first);
  for (const std::string& head : heads) out += fmt::format("  {:>{}}", head, width);
  out += "\n";
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    out += fmt::format("{:<{}}", table.rows[row].name, first);
    for (std::size_t column = 0; column < heads.size(); ++column)
      out += fmt::format("  {:>{}}", shown(table.cell(row, column)), width);
    out += "\n";
  }
  if (!table.bounds.empty()) out += "\nbounds\n";
  for (const Judgement& one : judge(table))
    out += fmt::format("  {:<4} {}\n", one.is_held ? "ok" : "MISS", one.text);
  return out;
}

json json_of(const Table& table) {
  json cells = json::array(), paper = json::array(), bounds = json::array(), points = json::array(),
       rows = json::array();
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    const std::string& name = table.rows[row].name;
    rows.push_back(name);
    json line = json::array();
    for (std::size_t column = 0; column < table.columns.size(); ++column) {
      const Estimate cell = table.cell(row, column);
      line.push_back({{"mean", cell.mean}, {"half_width", cell.half_width}, {"count", cell.count}});
      if (!table.paper[column].empty())
        paper.push_back({{"metric", table.metric},
                         {"row", name},
                         {"column", table.columns[column]},
                         {"value", table.paper[column]}});
      for (std::size_t i = 0; i < cell.count; ++i)
        points.push_back({{"row", name},
                          {"column", table.columns[column]},
                          {"seed", table.seed_first + i},
                          {"result", table.values[row][column][i]}});
    }
    cells.push_back(line);
  }
  for (const Judgement& one : judge(table))
    bounds.push_back({{"text", one.text}, {"is_measured", true}, {"is_held", one.is_held}});
  const json metric{{"name", table.metric}, {"unit", ""}, {"digits", digits}, {"cells", cells}};
  return {{"schema_version", 1},
          {"type", "fwp"},
          {"command_line", table.command_line},
          {"version", ONEHOP_VERSION},
          {"id", table.id},
          {"title", table.title},
          {"source", table.source},
          {"note", table.note},
          {"is_short", table.is_short},
          {"seed_first", table.seed_first},
          {"seeds", table.seeds},
          {"rows", rows},
          {"columns", table.columns},
          {"metrics", json::array({metric})},
          {"paper", paper},
          {"bounds", bounds},
          {"points", points}};
}

Result<void> write_files(const Table& table, const std::string& folder, std::string& notice) {
  const plot::Chart chart{.command_line = table.command_line,
                          .title = table.title,
                          .x_label = table.x_label,
                          .y_label = table.metric,
                          .seeds = table.seeds,
                          .seed_first = table.seed_first};
  std::vector<std::string> rows;
  for (const Row& row : table.rows) rows.push_back(row.name);
  const std::string script =
      plot::lines_of(chart, table.id + ".svg", rows, table.columns,
                    [&](std::size_t row, std::size_t column) { return table.cell(row, column); });
  return plot::write_files(folder, table.id, text_of(table), json_of(table).dump(1),
                           {{table.id, script}}, notice);
}

}  // namespace onehop::fwp
