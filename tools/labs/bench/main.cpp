// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// onehop-bench, which `onehop bench` starts.
#include <csignal>

#include "engine/crypto/secret.hpp"
#include "tools/labs/bench/bench_command.hpp"
#include "tools/onehop/laboratory_program.hpp"
#include "tools/onehop/memory.hpp"

// What it measures is set up as onehop itself is.
int main(int argc, char** argv) {
  onehop::tool::end_where_memory_is_refused();
  (void)std::signal(SIGXFSZ, SIG_IGN);
  (void)onehop::crypto::forbid_core_dumps();
  onehop::bench::BenchOptions options;
  return onehop::tool::run_laboratory(
      argc, argv, "bench", [&](CLI::App& app) { add_bench_command(app, options); },
      [&] { return static_cast<int>(bench_command(options)); });
}
