// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Metrics: one number out of a RunResult. Pure.
//
// A metric is a word, or WORD:FLOW for the flows of that name only: "throughput", "delay_p95",
// "throughput:far".
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/labs/ns3/run_spec.hpp"

namespace onehop::sim {

[[nodiscard]] bool is_metric(const std::string& metric);
[[nodiscard]] std::string metric_words();
[[nodiscard]] std::string metric_unit(const std::string& metric);
[[nodiscard]] int metric_digits(const std::string& metric);
/// metric_of is nothing where the run did not measure it.
[[nodiscard]] std::optional<double> metric_of(const std::string& metric, const RunSpec& spec,
                                              const RunResult& result);

/// A metric of all seeds together ("mean_..."): of the series that is their mean. Where chance
/// alone moves a bin by a tenth, single runs tell nothing of the law.
[[nodiscard]] bool is_of_all_seeds(const std::string& metric);
/// mean_series is the first result with the mean of all in its series of goodput. `results` is not
/// empty.
[[nodiscard]] RunResult mean_series(const std::vector<const RunResult*>& results);

}  // namespace onehop::sim
