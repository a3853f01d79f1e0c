// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Points: what a sweep measures, in interleaved rounds. In round k all points run once, beginning
// with the k-th, so that none of them always follows the same other one. Transfers of a round are
// made while the host keeps our CPUs at one place (core_distance.hpp), again if it moved them
// meanwhile.
#pragma once

#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/result.hpp"
#include "tools/labs/bench/statistics.hpp"

namespace onehop::bench {

using Json = nlohmann::ordered_json;

/// ThreadCost: one thread's share of a run.
struct ThreadCost {
  double user_s = 0, system_s = 0;
  std::optional<double> softirq_s;
};

/// RunResult: one run of one point. What could not be measured is in `missing`, with the reason.
struct RunResult {
  Metrics metrics;
  std::map<std::string, ThreadCost> threads;  ///< "sender/engine"
  std::map<std::string, std::string> missing;
  std::map<std::string, std::string> used;  ///< io, mode, aead, file_io as they came out
};

/// Interval: what arrived in a stretch of a run.
struct Interval {
  double at_s = 0, span_s = 0;
  std::uint64_t bytes = 0;
};
using OnInterval = std::function<void(const Interval&)>;

/// RunMode: how one run is made. `is_counted`: cycles, instructions and time in softirqs are
/// counted, which costs what it counts: each switch between threads is dearer, much so in a virtual
/// machine, where the counters' registers are the host's, and so is each softirq, of which AF_XDP
/// raises one per frame.
struct RunMode {
  OnInterval on_interval;
  bool is_counted = false;
};

struct Point {
  std::string name;  ///< unique within a bench
  Json settings;
  std::function<Result<RunResult>(const RunMode&)> run;
  bool is_counted_apart = false;  ///< a transfer: one counted run comes before the rounds, which
                                  ///< are then not counted and stay at one place
};

/// PointResult: the rounds of a point.
struct PointResult {
  std::string name;
  Json settings;
  std::optional<RunResult> counted;  ///< the run that was counted apart; of its times, none is used
  std::vector<Metrics> rounds;
  RunResult latest;  ///< of the last round: names of what was used and missing
  std::map<std::string, std::vector<Metrics>>
      threads;  ///< user, system, softirq in ns per byte, by round
};

/// join is "a, b, c".
[[nodiscard]] std::string join(const std::vector<std::string>& words, const char* between);

/// keep adds a run to its point, threads as ns per byte, with what was counted apart.
void keep(PointResult& result, RunResult run);

using OnRun = std::function<void(int round, const PointResult& point)>;
/// run_rounds measures all points in all rounds; the first error ends it. on_start is called before
/// each run of a round.
[[nodiscard]] Result<std::vector<PointResult>> run_rounds(
    const std::vector<Point>& points, int rounds,
    const std::function<OnInterval(int round, const Point&)>& on_start, const OnRun& on_run);

}  // namespace onehop::bench
