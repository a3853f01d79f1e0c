// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/onehop/bench/points.hpp"

namespace onehop::bench {

std::string join(const std::vector<std::string>& words, const char* between) {
  std::string text;
  for (const std::string& word : words) text.append(text.empty() ? "" : between).append(word);
  return text;
}

void keep(PointResult& result, RunResult run) {
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
  for (const Point& point : points) results.push_back({.name = point.name, .settings = point.settings, .rounds = {}, .latest = {}, .threads = {}});
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < points.size(); ++i) {
      const std::size_t at = (i + static_cast<std::size_t>(round)) % points.size();
      auto run = points[at].run(on_start(round, points[at]));
      if (run.has_error()) {
        Error error = run.error();
        error.attempt = "measure " + points[at].name + ": " + error.attempt;
        return error;
      }
      keep(results[at], std::move(run).value());
      on_run(round, results[at]);
    }
  }
  return results;
}

}  // namespace onehop::bench
