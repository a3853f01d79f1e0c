// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/labs/bench/statistics.hpp"

#include <algorithm>

namespace onehop::bench {

std::optional<Summary> summarize(std::vector<double> values) {
  if (values.empty()) return std::nullopt;
  std::ranges::sort(values);
  const std::size_t middle = values.size() / 2;
  const double median =
      values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
  return Summary{median, values.front(), values.back(), values.size()};
}

std::map<std::string, Summary> by_name(const std::vector<Metrics>& rounds) {
  std::map<std::string, std::vector<double>> columns;
  for (const Metrics& round : rounds)
    for (const auto& [name, value] : round) columns[name].push_back(value);
  std::map<std::string, Summary> summaries;
  for (auto& [name, values] : columns) summaries[name] = *summarize(std::move(values));
  return summaries;
}

std::optional<Summary> ratios_to(const std::vector<Metrics>& rounds,
                                 const std::vector<Metrics>& base, const std::string& name) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < std::min(rounds.size(), base.size()); ++i) {
    const auto own = rounds[i].find(name), other = base[i].find(name);
    if (own == rounds[i].end() || other == base[i].end() || other->second == 0) continue;
    ratios.push_back(own->second / other->second);
  }
  return summarize(std::move(ratios));
}

}  // namespace onehop::bench
