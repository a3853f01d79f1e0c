// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// onehop-lab, which `onehop lab` starts.
#include "tools/labs/lab/lab_command.hpp"
#include "tools/onehop/laboratory_program.hpp"

int main(int argc, char** argv) {
  onehop::lab::LabCommand command;
  return onehop::tool::run_laboratory(
      argc, argv, "lab", [&](CLI::App& app) { add_lab_command(app, command); },
      [&] { return command.run(); });
}
