// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/labs/ns3/fwp/table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "tools/labs/plot/gnuplot.hpp"

namespace onehop::fwp {

using nlohmann::json;

namespace {

// Student's t, two-sided 95 %, by degrees of freedom from 1; beyond the last the normal
// distribution's.
constexpr std::array<double, 20> t_95{12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365,
                                      2.306,  2.262, 2.228, 2.201, 2.179, 2.160, 2.145,
                                      2.131,  2.120, 2.110, 2.101, 2.093, 2.086};
constexpr int digits = 2;

std::string shown(const Estimate& cell) {
  return cell.count > 1
             ? fmt::format("{:.{}f} +-{:.{}f}", cell.mean, digits, cell.half_width, digits)
             : fmt::format("{:.{}f}", cell.mean, digits);
}

Result<void> write(const std::filesystem::path& path, const std::string& text) {
  std::ofstream file{path, std::ios::trunc};
  file << text;
  file.close();
  if (!file) return errno_error(ExitCode::local_file_error, "write " + path.string());
  return success();
}

/// Rows are lines, columns are places on the x axis. The script holds its data, so it can be
/// changed and run again.
std::string script_of(const Table& table, const std::string& picture) {
  std::string out = fmt::format(
      "# {}\n# onehop {}, seeds {} from {}\nset terminal svg size 900,540 dynamic background "
      "'white'\nset output '{}'\n"
      "set title \"{}\" noenhanced\nset ylabel \"{}\" noenhanced\nset xlabel \"{}\" noenhanced\n"
      "set key outside right noenhanced\nset grid ytics\nset xtics noenhanced (",
      table.command_line, ONEHOP_VERSION, table.seeds, table.seed_first, picture, table.title,
      table.metric, table.x_label);
  for (std::size_t column = 0; column < table.columns.size(); ++column) {
    std::string name = table.columns[column];
    if (const auto at = name.find('%'); at != std::string::npos)
      name.insert(at, "%");  // a tic's text is a number's format
    out += fmt::format("{}\"{}\" {}", column == 0 ? "" : ", ", name, column);
  }
  out += fmt::format(")\nset xrange [-0.5:{}]\nset yrange [0:*]\n",
                     static_cast<double>(table.columns.size()) - 0.5);
  std::string plots;
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    out += fmt::format("$row{} << E\n", row);
    for (std::size_t column = 0; column < table.columns.size(); ++column)
      out += fmt::format("{} {} {}\n", column, table.cell(row, column).mean,
                         table.cell(row, column).half_width);
    out += "E\n";
    plots += fmt::format("{}$row{} using 1:2:3 with yerrorlines title \"{}\"",
                         plots.empty() ? "plot " : ", ", row, table.rows[row].name);
  }
  return out + plots + "\n";
}

}  // namespace

Estimate estimate(const std::vector<double>& values) {
  Estimate out{.count = values.size()};
  if (values.empty()) return out;
  for (const double value : values) out.mean += value / static_cast<double>(values.size());
  if (values.size() == 1) return out;
  double squares = 0;
  for (const double value : values) squares += (value - out.mean) * (value - out.mean);
  const auto n = static_cast<double>(values.size());
  const double t = values.size() - 2 < t_95.size() ? t_95[values.size() - 2] : 1.96;
  out.half_width = t * std::sqrt(squares / (n - 1) / n);
  return out;
}

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
  const std::filesystem::path base{folder};
  std::error_code error;
  std::filesystem::create_directories(base, error);
  if (error)
    return Error{ExitCode::local_file_error,
                 "make the folder " + folder,
                 error.message(),
                 {},
                 error.value()};
  ONEHOP_TRYV(write(base / (table.id + ".txt"), text_of(table)));
  ONEHOP_TRYV(write(base / (table.id + ".json"), json_of(table).dump(1) + "\n"));
  const std::string script = table.id + ".gp";
  ONEHOP_TRYV(write(base / script, script_of(table, table.id + ".svg")));
  ONEHOP_TRY(is_drawn, plot::run_gnuplot(folder, script));
  if (!is_drawn)
    notice = "no pictures: gnuplot is not installed (gnuplot-nox); the .gp files are there";
  return success();
}

}  // namespace onehop::fwp
