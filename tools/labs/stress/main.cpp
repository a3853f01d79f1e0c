// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// onehop-stress, which `onehop stress` starts.
#include "tools/labs/stress/stress_command.hpp"
#include "tools/onehop/laboratory_program.hpp"

int main(int argc, char** argv) {
  onehop::stress::StressCommand command;
#if ONEHOP_HAS_LAB
  constexpr onehop::stress::RealRunners real{.lab = onehop::stress::run_lab_rings,
                                             .interface = onehop::stress::run_interface_rings};
#else
  constexpr onehop::stress::RealRunners real;
#endif
  return onehop::tool::run_laboratory(
      argc, argv, "stress", [&](CLI::App& app) { add_stress_command(app, command, real); },
      [&] { return command.run(); });
}
