// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Chart: means and their intervals by rows and columns, for gnuplot; and the files of the table
// that they are from. A script holds its data, so it can be changed and run again.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/result.hpp"

namespace onehop::plot {

struct Estimate {
  double mean = 0;
  double half_width = 0;  ///< of the 95 % interval (Student's t); 0 with one value
  std::size_t count = 0;  ///< 0: not measured
};
[[nodiscard]] Estimate estimate(const std::vector<double>& values);

struct Chart {
  std::string command_line, title, x_label, y_label;
  std::uint64_t seeds = 1, seed_first = 1;
};
/// head_of begins a script that draws `picture`.
[[nodiscard]] std::string head_of(const Chart& chart, const std::string& picture);
/// lines_of is a script, with rows as lines and columns as places on the x axis; empty where no
/// cell was measured.
[[nodiscard]] std::string lines_of(
    const Chart& chart, const std::string& picture, const std::vector<std::string>& rows,
    const std::vector<std::string>& columns,
    const std::function<Estimate(std::size_t row, std::size_t column)>& cell);

/// write_files writes ID.txt, ID.json and each script that is not empty as NAME.gp into `folder`
/// (made if missing), and lets gnuplot make the pictures if there is one; `notice` then tells if
/// there is none. Syscalls: file I/O, posix_spawnp, waitpid.
[[nodiscard]] Result<void> write_files(
    const std::string& folder, const std::string& id, const std::string& text,
    const std::string& json, const std::vector<std::pair<std::string, std::string>>& scripts,
    std::string& notice);

}  // namespace onehop::plot
