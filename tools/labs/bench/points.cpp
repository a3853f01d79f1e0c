// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/labs/bench/points.hpp"

#include <algorithm>
#include <array>
#include <thread>

#include "engine/base/time.hpp"
#include "tools/labs/bench/parts/core_distance.hpp"

namespace onehop::bench {

std::string join(const std::vector<std::string>& words, const char* between) {
  std::string text;
  for (const std::string& word : words) text.append(text.empty() ? "" : between).append(word);
  return text;
}

namespace {

constexpr std::array counted_metrics{"cycles_per_byte", "instructions_per_byte",
                                     "softirq_all_ns_per_byte", "softirq_idle_ns_per_byte"};

/// add_counts adds to a run what only the one that was counted apart can have.
void add_counts(const RunResult& counted, RunResult& run) {
  for (const char* key : counted_metrics)
    if (const auto found = counted.metrics.find(key); found != counted.metrics.end())
      run.metrics[key] = found->second;
  for (const char* group : {"cycles", "softirq"})
    if (const auto found = counted.missing.find(group); found != counted.missing.end())
      run.missing[group] = found->second;
  const double scale = run.metrics["bytes_total"] / counted.metrics.at("bytes_total");
  for (auto& [name, cost] : run.threads) {
    const auto found = counted.threads.find(name);
    if (found != counted.threads.end() && found->second.softirq_s)
      cost.softirq_s = *found->second.softirq_s * scale;
  }
}

// For the host to move the CPUs back; then it is measured where they are
constexpr Nanos place_patience = 30s;
constexpr Nanos place_pause = 200ms;

/// run_at repeats a run until the CPUs were at `place` before and after it. The longer of the two
/// round trips is kept.
Result<RunResult> run_at(const CpuPlace& place, const Point& point, const RunMode& mode) {
  const Instant give_up_at = monotonic_now() + place_patience;
  for (;;) {
    CpuPlace::Look before = place.look();
    for (; !before.is_here && monotonic_now() < give_up_at; before = place.look())
      std::this_thread::sleep_for(place_pause);
    ONEHOP_TRY(run, point.run(mode));
    const CpuPlace::Look after = place.look();
    run.metrics["core_round_trip_ns"] =
        static_cast<double>(std::max(before.round_trip, after.round_trip).count());
    if ((before.is_here && after.is_here) || monotonic_now() >= give_up_at) return run;
  }
}

Result<RunResult> run_once(const Point& point, const RunMode& mode, const CpuPlace* place) {
  auto run = place != nullptr ? run_at(*place, point, mode) : point.run(mode);
  if (run.has_value()) return run;
  Error error = run.error();
  error.attempt = "measure " + point.name + ": " + error.attempt;
  return error;
}

}  // namespace

void keep(PointResult& result, RunResult run) {
  if (result.counted) add_counts(*result.counted, run);
  const auto bytes = run.metrics.find("bytes_total");
  if (bytes != run.metrics.end() && bytes->second > 0) {
    const double ns_per_byte = 1e9 / bytes->second;
    for (const auto& [name, cost] : run.threads) {
      Metrics shares{{"user_ns_per_byte", cost.user_s * ns_per_byte},
                     {"system_ns_per_byte", cost.system_s * ns_per_byte}};
      if (cost.softirq_s) shares["softirq_ns_per_byte"] = *cost.softirq_s * ns_per_byte;
      result.threads[name].push_back(std::move(shares));
    }
  }
  result.rounds.push_back(run.metrics);
  result.latest = std::move(run);
}

Result<std::vector<PointResult>> run_rounds(
    const std::vector<Point>& points, int rounds,
    const std::function<OnInterval(int round, const Point&)>& on_start, const OnRun& on_run) {
  std::vector<PointResult> results;
  for (const Point& point : points)
    results.push_back({.name = point.name,
                       .settings = point.settings,
                       .counted = {},
                       .rounds = {},
                       .latest = {},
                       .threads = {}});
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (!points[i].is_counted_apart) continue;
    ONEHOP_TRY(
        counted,
        run_once(points[i], {.on_interval = [](const Interval&) {}, .is_counted = true}, nullptr));
    results[i].counted = std::move(counted);
  }
  for (int round = 0; round < rounds; ++round) {
    const CpuPlace place;
    for (std::size_t i = 0; i < points.size(); ++i) {
      const std::size_t at = (i + static_cast<std::size_t>(round)) % points.size();
      const bool is_transfer = points[at].is_counted_apart;
      ONEHOP_TRY(run,
                 run_once(points[at],
                          {.on_interval = on_start(round, points[at]), .is_counted = !is_transfer},
                          is_transfer ? &place : nullptr));
      keep(results[at], std::move(run));
      on_run(round, results[at]);
    }
  }
  return results;
}

}  // namespace onehop::bench
