// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// The command line of `onehop stress rings`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/labs/stress/lab/iface_rings.hpp"
#include "tools/labs/stress/lab/lab_rings.hpp"

namespace CLI {
class App;
}

namespace onehop::stress {

struct RingsOptions {
  std::uint64_t seed = 1, schedules = 10'000, events = 200;
  std::int64_t only = -1;
  unsigned jobs = 0;  ///< 0: one per core
  double span_ms = 100;
  std::string law, config, out, io, interface, to;
  std::vector<std::string> faults;
  bool is_json = false, is_quiet = false, is_lab = false;
};

/// RealRunners are run_lab_rings and run_interface_rings where the build has the lab, else null:
/// then there is no --lab, no --iface.
struct RealRunners {
  Result<int> (*lab)(const LabRingsOptions& options) = nullptr;
  Result<int> (*interface)(const InterfaceRingsOptions& options) = nullptr;
};

class StressCommand {
 public:
  /// run plays, prints, and returns the exit code of the program: 1 where something broke.
  [[nodiscard]] int run();

 private:
  friend CLI::App* add_stress_command(CLI::App& app, StressCommand& command,
                                      const RealRunners& real);
  CLI::App* rings_ = nullptr;
  RingsOptions options_;
  RealRunners real_;
};

/// add_stress_command puts `stress` and what is below it into `app`, and returns it. `command` must
/// live as long.
CLI::App* add_stress_command(CLI::App& app, StressCommand& command, const RealRunners& real);

}  // namespace onehop::stress
