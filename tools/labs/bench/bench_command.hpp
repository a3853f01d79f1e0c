// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// onehop bench: what moving a byte costs, as a whole and by its parts.
//
//   options ─▶ points (a sweep) ─▶ interleaved rounds ─▶ medians, spread, ratios ─▶ table or JSON
//   loop, port: in a lab of their own, each run in two processes
//   aead, digest, file, law, ring: in this process
#pragma once

#include "tools/labs/bench/options.hpp"

namespace onehop::bench {

/// bench_command returns what the process exits with, and has said everything by then.
[[nodiscard]] ExitCode bench_command(BenchOptions& options);

}  // namespace onehop::bench
