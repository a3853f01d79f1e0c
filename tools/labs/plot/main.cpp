// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// onehop-plot, which `onehop plot` starts.
#include "tools/labs/plot/plot_command.hpp"
#include "tools/onehop/laboratory_program.hpp"

int main(int argc, char** argv) {
  onehop::plot::PlotOptions options;
  return onehop::tool::run_laboratory(
      argc, argv, "plot", [&](CLI::App& app) { add_plot_command(app, options); },
      [&] { return onehop::plot::plot_command(options); });
}
