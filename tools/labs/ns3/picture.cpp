// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// write_files(): a table's text, JSON and gnuplot scripts on disk. A script holds its data, so it
// can be changed and run again.
#include <fmt/format.h>

#include <filesystem>
#include <fstream>

#include "tools/labs/ns3/table.hpp"
#include "tools/labs/plot/gnuplot.hpp"
#include "tools/labs/plot/gnuplot_string.hpp"

namespace onehop::sim {

namespace {

using plot::in_quotes;  // all names and titles: a scenario is a user's file

Result<void> write(const std::filesystem::path& path, const std::string& text) {
  std::ofstream file{path, std::ios::trunc};
  file << text;
  file.close();
  if (!file) return errno_error(ExitCode::local_file_error, "write " + path.string());
  return success();
}

std::string head_of(const Table& table, const std::string& picture, const std::string& y_label,
                    const std::string& x_label) {
  return fmt::format(
      "# {}\n# onehop {}, seeds {} from {}\nset terminal svg size 900,540 dynamic background "
      "'white'\nset output {}\n"
      "set title {} noenhanced\nset ylabel {} noenhanced\nset xlabel {} noenhanced\n"
      "set key outside right noenhanced\nset grid ytics\n",
      table.command_line, ONEHOP_VERSION, table.scenario.seeds, table.scenario.seed_first,
      in_quotes(picture), in_quotes(table.scenario.title), in_quotes(y_label), in_quotes(x_label));
}

/// gnuplot takes the text of a tic for a number's format.
std::string label_of(const std::string& name) {
  std::string out;
  for (const char c : name) out += c == '%' ? std::string{"%%"} : std::string{c};
  return out;
}

/// Rows are lines, columns are places on the x axis.
std::string script_of(const Table& table, const std::string& metric, const std::string& picture) {
  const Scenario& s = table.scenario;
  const std::string unit = metric_unit(metric);
  std::string out =
      head_of(table, picture, unit.empty() ? metric : metric + " [" + unit + "]", s.x_label);
  out += "set xtics noenhanced rotate by -20 (";
  for (std::size_t column = 0; column < s.columns.size(); ++column)
    out += fmt::format("{}{} {}", column == 0 ? "" : ", ", in_quotes(label_of(s.columns[column])),
                       column);
  out += fmt::format(")\nset xrange [-0.5:{}]\nset yrange [0:*]\n",
                     static_cast<double>(s.columns.size()) - 0.5);
  std::string plots;
  for (std::size_t row = 0; row < s.rows.size(); ++row) {
    std::string data;
    for (std::size_t column = 0; column < s.columns.size(); ++column) {
      const Estimate cell = table.cell(metric, row, column);
      if (cell.count > 0) data += fmt::format("{} {} {}\n", column, cell.mean, cell.half_width);
    }
    if (data.empty()) continue;
    out += fmt::format("$row{} << E\n{}E\n", row, data);
    plots += fmt::format("{}$row{} using 1:2:3 with yerrorlines title {}",
                         plots.empty() ? "plot " : ", ", row, in_quotes(s.rows[row]));
  }
  return plots.empty() ? std::string{} : out + plots + "\n";
}

/// Where points were sampled: goodput, backlog and target of each row's first flow over time, first
/// column and seed.
std::string series_of(const Table& table, const std::string& picture) {
  std::string out = head_of(table, picture, "goodput [Mbit/s]", "time [s]") +
                    "set y2label 'backlog, target [kB]'\nset y2tics\n",
              plots;
  for (std::size_t row = 0; row < table.scenario.rows.size(); ++row) {
    const Played& one = table.played[row][0].front();
    if (one.result.flows.empty() || one.result.flows[0].series.empty()) continue;
    out += fmt::format("$row{} << E\n", row);
    for (const Sample& s : one.result.flows[0].series)
      out += fmt::format("{} {} {} {}\n", s.at_s, s.goodput_mbps, s.backlog_kb, s.target_kb);
    out += "E\n";
    const std::string& name = table.scenario.rows[row];
    plots += fmt::format("{}$row{} using 1:2 with lines title {}", plots.empty() ? "plot " : ", ",
                         row, in_quotes(name));
    if (one.result.flows[0].series.back().target_kb > 0)
      plots += fmt::format(
          ", $row{0} using 1:3 axes x1y2 with lines title {1}, $row{0} using 1:4 axes x1y2 with "
          "lines dashtype 2 title {2}",
          row, in_quotes(name + " backlog"), in_quotes(name + " target"));
  }
  return plots.empty() ? std::string{} : out + plots + "\n";
}

}  // namespace

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
  const std::string& id = table.scenario.id;
  ONEHOP_TRYV(write(base / (id + ".txt"), text_of(table)));
  ONEHOP_TRYV(write(base / (id + ".json"), json_of(table).dump(1) + "\n"));
  std::vector<std::pair<std::string, std::string>> scripts;
  const auto picture = [&](const std::string& name) { return id + "-" + name + ".svg"; };
  for (std::string metric : table.scenario.metrics) {
    std::string name = metric;
    for (char& c : name)
      if (c == ':' || c == ' ' || c == '/') c = '-';
    scripts.emplace_back(name, script_of(table, metric, picture(name)));
  }
  scripts.emplace_back("time", series_of(table, picture("time")));
  for (const auto& [name, script] : scripts) {
    if (script.empty()) continue;
    const std::string file = id + "-" + name + ".gp";
    ONEHOP_TRYV(write(base / file, script));
    ONEHOP_TRY(is_drawn, plot::run_gnuplot(folder, file));
    if (!is_drawn)
      notice = "no pictures: gnuplot is not installed (gnuplot-nox); the .gp files are there";
  }
  return success();
}

}  // namespace onehop::sim
