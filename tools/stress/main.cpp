// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// onehop-stress: `onehop stress` without the rest of onehop.
#include <CLI/CLI.hpp>

#include "tools/stress/stress_command.hpp"

int main(int argc, char** argv) {
  CLI::App app{"onehop stress without the rest of onehop"};
  app.require_subcommand(1);
  onehop::stress::StressCommand command;
  onehop::stress::add_stress_command(app, command, {});
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const int code = app.exit(error);
    return code == 0 ? 0 : 2;
  }
  return command.run();
}
