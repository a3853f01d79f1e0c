// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/labs/plot/chart.hpp"

#include <fmt/format.h>

#include <boost/math/distributions/students_t.hpp>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <numeric>

#include "tools/labs/plot/gnuplot.hpp"
#include "tools/labs/plot/gnuplot_string.hpp"

namespace onehop::plot {

namespace {

/// gnuplot takes the text of a tic for a number's format.
std::string tic_of(const std::string& name) {
  std::string out;
  for (const char c : name) out += c == '%' ? std::string{"%%"} : std::string{c};
  return in_quotes(out);
}

Result<void> write_text(const std::filesystem::path& path, const std::string& text) {
  std::ofstream file{path, std::ios::trunc};
  file << text;
  file.close();
  if (!file) return errno_error(ExitCode::local_file_error, "write " + path.string());
  return success();
}

}  // namespace

Estimate estimate(const std::vector<double>& values) {
  Estimate out{.count = values.size()};
  if (values.empty()) return out;
  const auto n = static_cast<double>(values.size());
  out.mean = std::accumulate(values.begin(), values.end(), 0.0) / n;
  if (values.size() == 1) return out;
  double squares = 0;
  for (const double value : values) squares += (value - out.mean) * (value - out.mean);
  const double t = boost::math::quantile(boost::math::students_t{n - 1}, 0.975);
  out.half_width = t * std::sqrt(squares / (n - 1) / n);
  return out;
}

// All names and titles are in quotes: a scenario is a user's file.
std::string head_of(const Chart& chart, const std::string& picture) {
  return fmt::format(
      "# {}\n# onehop {}, seeds {} from {}\nset terminal svg size 900,540 dynamic background "
      "'white'\nset output {}\n"
      "set title {} noenhanced\nset ylabel {} noenhanced\nset xlabel {} noenhanced\n"
      "set key outside right noenhanced\nset grid ytics\n",
      chart.command_line, ONEHOP_VERSION, chart.seeds, chart.seed_first, in_quotes(picture),
      in_quotes(chart.title), in_quotes(chart.y_label), in_quotes(chart.x_label));
}

std::string lines_of(const Chart& chart, const std::string& picture,
                    const std::vector<std::string>& rows, const std::vector<std::string>& columns,
                    const std::function<Estimate(std::size_t, std::size_t)>& cell) {
  std::string out = head_of(chart, picture) + "set xtics noenhanced rotate by -20 (";
  for (std::size_t column = 0; column < columns.size(); ++column)
    out += fmt::format("{}{} {}", column == 0 ? "" : ", ", tic_of(columns[column]), column);
  out += fmt::format(")\nset xrange [-0.5:{}]\nset yrange [0:*]\n",
                     static_cast<double>(columns.size()) - 0.5);
  std::string plots;
  for (std::size_t row = 0; row < rows.size(); ++row) {
    std::string data;
    for (std::size_t column = 0; column < columns.size(); ++column) {
      const Estimate one = cell(row, column);
      if (one.count > 0) data += fmt::format("{} {} {}\n", column, one.mean, one.half_width);
    }
    if (data.empty()) continue;
    out += fmt::format("$row{} << E\n{}E\n", row, data);
    plots += fmt::format("{}$row{} using 1:2:3 with yerrorlines title {}",
                         plots.empty() ? "plot " : ", ", row, in_quotes(rows[row]));
  }
  return plots.empty() ? std::string{} : out + plots + "\n";
}

Result<void> write_files(const std::string& folder, const std::string& id, const std::string& text,
                         const std::string& json,
                         const std::vector<std::pair<std::string, std::string>>& scripts,
                         std::string& notice) {
  const std::filesystem::path base{folder};
  std::error_code error;
  std::filesystem::create_directories(base, error);
  if (error)
    return Error{ExitCode::local_file_error,
                 "make the folder " + folder,
                 error.message(),
                 {},
                 error.value()};
  ONEHOP_TRYV(write_text(base / (id + ".txt"), text));
  ONEHOP_TRYV(write_text(base / (id + ".json"), json + "\n"));
  for (const auto& [name, script] : scripts) {
    if (script.empty()) continue;
    ONEHOP_TRYV(write_text(base / (name + ".gp"), script));
    ONEHOP_TRY(is_drawn, run_gnuplot(folder, name + ".gp"));
    if (!is_drawn)
      notice = "no pictures: gnuplot is not installed (gnuplot-nox); the .gp files are there";
  }
  return success();
}

}  // namespace onehop::plot
