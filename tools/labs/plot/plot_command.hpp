// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// The command line of `onehop plot`.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace onehop::plot {

struct PlotOptions {
  std::vector<std::string> traces, labels;
  std::vector<std::string> capacities;  ///< none, one for all traces, or one for each: a rate, or a
                                        ///< file of lab run --rate-log
  std::vector<std::string> only;        ///< plates; empty: all
  std::string out, title;
  std::string on_exist = "ask";
};

/// add_plot_command puts `plot` into `app`, and returns it. `options` must live as long.
CLI::App* add_plot_command(CLI::App& app, PlotOptions& options);

/// plot_command returns the exit code of the program, and has said everything by then.
[[nodiscard]] int plot_command(const PlotOptions& options);

}  // namespace onehop::plot
