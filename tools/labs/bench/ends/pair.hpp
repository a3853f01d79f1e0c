// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Pair: runs the ends of one measurement over the lab link and reads what they cost.
//
//   receivers, then senders ─▶ all flow ─▶ [ first reading ─▶ ... ─▶ last reading ] ─▶ end them
//
// CPU time of an end is getrusage of the whole process from its start (with -O: from the first
// reading); ksoftirqd and busy time are of the whole machine between the first and the last
// reading, as in the program's end event. A reading of a thread is taken from outside, while the
// end waits for it.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/result.hpp"
#include "tools/labs/bench/ends/board.hpp"
#include "tools/labs/bench/points.hpp"

namespace onehop::bench {

/// EndSpec: one end to run.
struct EndSpec {
  bool is_sending = false;
  std::string host;  ///< network namespace
  std::optional<int> cpu;
  Board* board = nullptr;
  std::function<int()> body;
};

struct PairSpec {
  std::vector<EndSpec> ends;  ///< receivers first
  bool is_flood = false;      ///< ends answer by themselves; sessions on SIGUSR1
  double seconds = 0;         ///< where bytes is 0
  std::uint64_t bytes = 0;  ///< until so many have arrived (flood) or all ends are done; 0: by time
  bool is_waiting = false;  ///< for a peer that comes when it comes, with as much as it has
  double omit_seconds = 0, interval_seconds = 0;
  RunMode mode;
};

[[nodiscard]] Result<RunResult> run_pair(const PairSpec& spec);

}  // namespace onehop::bench
