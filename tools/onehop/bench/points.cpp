// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/onehop/bench/points.hpp"

#include <algorithm>
#include <array>

#include "tools/onehop/bench/core_distance.hpp"

namespace onehop::bench {

std::string join(const std::vector<std::string>& words, const char* between) {
  std::string text;
  for (const std::string& word : words) text.append(text.empty() ? "" : between).append(word);
  return text;
}

namespace {

constexpr std::array counted_metrics{"cycles_per_byte", "instructions_per_byte", "softirq_all_ns_per_byte", "softirq_idle_ns_per_byte"};

/// add_counts adds to a run what only the one that was counted apart can have.
void add_counts(const RunResult& counted, RunResult& run) {
  for (const char* key : counted_metrics)
    if (const auto found = counted.metrics.find(key); found != counted.metrics.end()) run.metrics[key] = found->second;
  for (const char* group : {"cycles", "softirq"})
    if (const auto found = counted.missing.find(group); found != counted.missing.end()) run.missing[group] = found->second;
  const double scale = run.metrics["bytes_total"] / counted.metrics.at("bytes_total");
  for (auto& [name, cost] : run.threads) {
    const auto found = counted.threads.find(name);
    if (found != counted.threads.end() && found->second.softirq_s) cost.softirq_s = *found->second.softirq_s * scale;
  }
}

/// Of the two round trips around a run the longer one is kept: runs with equal figures stayed where they were.
Result<RunResult> run_between_looks(const Point& point, const RunMode& mode) {
  const auto cpus = first_two_cpus();
  const auto before = cpus ? core_round_trip(*cpus) : std::nullopt;
  ONEHOP_TRY(run, point.run(mode));
  const auto after = cpus ? core_round_trip(*cpus) : std::nullopt;
  if (before && after) run.metrics["core_round_trip_ns"] = static_cast<double>(std::max(*before, *after).count());
  return run;
}

Result<RunResult> run_once(const Point& point, const RunMode& mode) {
  auto run = point.is_counted_apart ? run_between_looks(point, mode) : point.run(mode);
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
      Metrics shares{{"user_ns_per_byte", cost.user_s * ns_per_byte}, {"system_ns_per_byte", cost.system_s * ns_per_byte}};
      if (cost.softirq_s) shares["softirq_ns_per_byte"] = *cost.softirq_s * ns_per_byte;
      result.threads[name].push_back(std::move(shares));
    }
  }
  result.rounds.push_back(run.metrics);
  result.latest = std::move(run);
}

Result<std::vector<PointResult>> run_rounds(const std::vector<Point>& points, int rounds,
                                            const std::function<OnInterval(int round, const Point&)>& on_start, const OnRun& on_run) {
  std::vector<PointResult> results;
  for (const Point& point : points) results.push_back({.name = point.name, .settings = point.settings, .counted = {}, .rounds = {}, .latest = {}, .threads = {}});
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (!points[i].is_counted_apart) continue;
    ONEHOP_TRY(counted, run_once(points[i], {.on_interval = [](const Interval&) {}, .is_counted = true}));
    results[i].counted = std::move(counted);
  }
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < points.size(); ++i) {
      const std::size_t at = (i + static_cast<std::size_t>(round)) % points.size();
      ONEHOP_TRY(run, run_once(points[at], {.on_interval = on_start(round, points[at]), .is_counted = !points[at].is_counted_apart}));
      keep(results[at], std::move(run));
      on_run(round, results[at]);
    }
  }
  return results;
}

}  // namespace onehop::bench
