// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// write_files(): a table's text, JSON and gnuplot scripts on disk.
#include <fmt/format.h>

#include "tools/labs/ns3/table.hpp"
#include "tools/labs/plot/gnuplot_string.hpp"

namespace onehop::sim {

namespace {

plot::Chart chart_of(const Table& table, std::string y_label, std::string x_label) {
  return {.command_line = table.command_line,
          .title = table.scenario.title,
          .x_label = std::move(x_label),
          .y_label = std::move(y_label),
          .seeds = table.scenario.seeds,
          .seed_first = table.scenario.seed_first};
}

/// Where points were sampled: goodput, backlog and target of each row's first flow over time, first
/// column and seed.
std::string series_of(const Table& table, const std::string& picture) {
  using plot::in_quotes;
  std::string out = plot::head_of(chart_of(table, "goodput [Mbit/s]", "time [s]"), picture) +
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
  const Scenario& s = table.scenario;
  std::vector<std::pair<std::string, std::string>> scripts;
  for (const std::string& metric : s.metrics) {
    std::string name = metric;
    for (char& c : name)
      if (c == ':' || c == ' ' || c == '/') c = '-';
    name.insert(0, s.id + "-");
    const std::string unit = metric_unit(metric);
    scripts.emplace_back(
        name, plot::lines_of(
                  chart_of(table, unit.empty() ? metric : metric + " [" + unit + "]", s.x_label),
                  name + ".svg", s.rows, s.columns, [&](std::size_t row, std::size_t column) {
                    return table.cell(metric, row, column);
                  }));
  }
  scripts.emplace_back(s.id + "-time", series_of(table, s.id + "-time.svg"));
  return plot::write_files(folder, s.id, text_of(table), json_of(table).dump(1), scripts, notice);
}

}  // namespace onehop::sim
