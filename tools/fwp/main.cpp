// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// onehop-fwp: prints what repair without MAC retries gains in the FWP paper's setting, the paper's value beside ours.
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "engine/base/result.hpp"
#include "tools/fwp/tables.hpp"

int main(int argc, char** argv) {
  using namespace onehop;
  std::uint64_t seed = 1;
  int seconds = 5;
  CLI::App app{"Tables of the FWP paper in its own emulator: no MAC retries and lazy repair beside A-MPDU stations, in virtual time."};
  app.add_option("--seed", seed, "of every draw")->capture_default_str();
  app.add_option("--seconds", seconds, "of virtual time that one station has on the air, for each number")->check(CLI::Range(1, 120))->capture_default_str();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : static_cast<int>(ExitCode::usage);
  }
  const Nanos span = seconds * 1s;
  fmt::print("# onehop-fwp {} --seed {} --seconds {}\n\n", ONEHOP_VERSION, seed, seconds);
  fmt::print("File bytes of one lazy station over those of an A-MPDU station, by its competitors (1 .. 9) and the frame error rate\n\n");
  fmt::print("| frame error rate | paper | 1 | 3 | 5 | 9 | eager, 9 |\n|---|---|---|---|---|---|---|\n");
  constexpr std::pair<double, const char*> rows[] = {{0.0, "-"}, {0.01, "-"}, {0.05, "1.5"}, {0.1, "> 1.6"}, {0.2, "2"}, {0.4, "> 2"}};
  for (const auto& [rate, paper] : rows) {
    fmt::print("| {:g} % | {} |", rate * 100, paper);
    for (const std::size_t competitors : {1U, 3U, 5U, 9U}) fmt::print(" {:.2f} |", fwp::speed_up(competitors, rate, true, seed, span));
    fmt::print(" {:.2f} |\n", fwp::speed_up(9, rate, false, seed, span));
  }
  fmt::print("\nBeside a Cubic-like flow, frame error rate 0.1 %: our file bytes over its own\n\n| RTT | paper | ours |\n|---|---|---|\n");
  for (int ms = 30; ms <= 70; ms += 10)
    fmt::print("| {} ms | 0.9 .. 1.1 | {:.2f} |\n", ms, fwp::share_beside_cubic(ms * 1ms, 0.001, seed, span * 3));
  return 0;
}
