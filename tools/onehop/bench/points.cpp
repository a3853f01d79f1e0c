// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/onehop/bench/points.hpp"

namespace onehop::bench {

std::string join(const std::vector<std::string>& words, const char* between) {
  std::string text;
  for (const std::string& word : words) text.append(text.empty() ? "" : between).append(word);
  return text;
}

namespace {

void keep_counts(PointResult& result, const RunResult& counted) {
  for (const auto& [key, value] : counted.metrics)
    if (key.starts_with("cycles_") || key.starts_with("instructions_")) result.counts[key] = value;
  if (const auto missing = counted.missing.find("cycles"); missing != counted.missing.end()) result.counts_missing = missing->second;
}

Result<RunResult> run_once(const Point& point, const RunMode& mode) {
  auto run = point.run(mode);
  if (run.has_value()) return run;
  Error error = run.error();
  error.attempt = "measure " + point.name + ": " + error.attempt;
  return error;
}

}  // namespace

void keep(PointResult& result, RunResult run) {
  run.metrics.insert(result.counts.begin(), result.counts.end());
  if (!result.counts_missing.empty()) run.missing["cycles"] = result.counts_missing;
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
  for (const Point& point : points) results.push_back({.name = point.name, .settings = point.settings, .counts = {}, .counts_missing = {}, .rounds = {}, .latest = {}, .threads = {}});
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (!points[i].is_counted_apart) continue;
    ONEHOP_TRY(counted, run_once(points[i], {.on_interval = [](const Interval&) {}, .is_counted = true}));
    keep_counts(results[i], counted);
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
