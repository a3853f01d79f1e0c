// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Statistics of repeated runs: what was measured in each round, and what is told of it: median,
// smallest and largest. A ratio is formed within a round, because the whole table moves with the
// machine's other load. Pure values.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace onehop::bench {

/// Metrics: one run, by name. A name that is absent was not measured; it is never zero instead.
using Metrics = std::map<std::string, double>;

struct Summary {
  double median = 0, min = 0, max = 0;
  std::size_t count = 0;
  /// spread is (max - min) / median, 0 where the median is.
  [[nodiscard]] double spread() const noexcept { return median == 0 ? 0 : (max - min) / median; }
};

/// summarize gives nothing for no values. The median of an even count is the mean of the middle
/// two.
[[nodiscard]] std::optional<Summary> summarize(std::vector<double> values);

/// by_name summarizes each metric over the rounds that have it.
[[nodiscard]] std::map<std::string, Summary> by_name(const std::vector<Metrics>& rounds);

/// ratios_to divides `name` of each round by that of the same round of `base`. Rounds where one is
/// missing or the base is 0 are left out.
[[nodiscard]] std::optional<Summary> ratios_to(const std::vector<Metrics>& rounds,
                                               const std::vector<Metrics>& base,
                                               const std::string& name);

}  // namespace onehop::bench
