// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// The command line of `onehop lab up|down|exec|run`.
#pragma once

#include <string>
#include <vector>

#include "tools/labs/lab/lab.hpp"

namespace CLI {
class App;
}

namespace onehop::lab {

class LabCommand {
 public:
  /// run does what was asked for, says what went wrong, and returns the exit code of the program.
  [[nodiscard]] int run();

 private:
  friend CLI::App* add_lab_command(CLI::App& app, LabCommand& command);
  [[nodiscard]] int run_logged(Lab& lab, const Profile& profile, Host host) const;

  CLI::App* up_ = nullptr;
  CLI::App* down_ = nullptr;
  CLI::App* exec_ = nullptr;
  CLI::App* run_ = nullptr;
  std::string name_ = "onehop-lab";
  std::string profile_ = "steady-600";
  std::string host_ = "a";
  std::string rate_log_;
  std::vector<std::string> words_;
};

/// add_lab_command puts `lab` and what is below it into `app`, and returns it. `command` must live
/// as long.
CLI::App* add_lab_command(CLI::App& app, LabCommand& command);

}  // namespace onehop::lab
