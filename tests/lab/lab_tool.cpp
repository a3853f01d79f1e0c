// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// The `lab` command without the rest of the program, so that tests of the lab need only the lab.
#include <CLI/CLI.hpp>

#include "engine/base/result.hpp"
#include "tools/lab/lab_command.hpp"

int main(int argc, char** argv) {
  CLI::App app{"onehop lab"};
  app.require_subcommand(1);
  onehop::lab::LabCommand command;
  onehop::lab::add_lab_command(app, command);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : static_cast<int>(onehop::ExitCode::usage);
  }
  return command.run();
}
