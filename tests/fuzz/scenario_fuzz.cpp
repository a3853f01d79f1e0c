// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Scenarios of onehop-ns3 are TOML that users write. Whatever parse_scenario accepts can be played,
// and each of its bounds and of the paper's values is about rows and columns that are there: one
// that is not would never be judged.
#include <algorithm>
#include <cmath>

#include "tests/fuzz/text_inputs.hpp"
#include "tools/labs/ns3/scenario.hpp"

using namespace onehop;

std::uint64_t fuzz::accepted_total = 0;

namespace {

bool has(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

void check_bound(const sim::Scenario& scenario, const sim::Bound& bound) {
  ONEHOP_CHECK(bound.at_least.has_value() != bound.at_most.has_value());
  ONEHOP_CHECK(std::isfinite(bound.at_least.value_or(0) + bound.at_most.value_or(0)));
  ONEHOP_CHECK(has(scenario.rows, bound.row));
  ONEHOP_CHECK(bound.of_row.empty() || has(scenario.rows, bound.of_row));
  ONEHOP_CHECK(bound.of_column.empty() || has(scenario.columns, bound.of_column));
  for (const std::string& column : bound.columns) ONEHOP_CHECK(has(scenario.columns, column));
  // Compared with itself, it holds or fails whatever was measured.
  for (const std::string& column : bound.columns.empty() ? scenario.columns : bound.columns)
    ONEHOP_CHECK(!bound.is_relative() || (!bound.of_row.empty() && bound.of_row != bound.row) ||
                 (!bound.of_column.empty() && bound.of_column != column));
}

void check_run(const sim::RunSpec& run) {
  ONEHOP_CHECK(!run.flows.empty());
  ONEHOP_CHECK(std::isfinite(run.measure_s + run.warm_up_s + run.sample_ms));
  ONEHOP_CHECK(run.measure_s > 0);
  for (const sim::FlowSpec& flow : run.flows) {
    ONEHOP_CHECK(flow.pair < run.link.pairs);
    ONEHOP_CHECK(std::isfinite(flow.rate_mbps + flow.start_s + flow.stop_s + flow.interval_ms));
    ONEHOP_CHECK(flow.interval_ms > 0);
  }
}

}  // namespace

std::size_t fuzz::make_valid(std::uint64_t seed, std::span<std::byte, input_bytes_max> out) {
  static const auto texts = texts_in(ONEHOP_CONFIGS "/ns3", ".toml");
  return make_text(texts, '=', seed, out);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  auto read = sim::parse_scenario(fuzz::text_of(data, size), "fuzz", {});
  const sim::Scenario* const found = fuzz::accepted_by(read);
  if (found == nullptr) return 0;
  const sim::Scenario& scenario = *found;
  ONEHOP_CHECK(scenario.points.size() == scenario.rows.size());
  for (const auto& row : scenario.points) {
    ONEHOP_CHECK(row.size() == scenario.columns.size());
    for (const sim::RunSpec& run : row) check_run(run);
  }
  for (const sim::Bound& bound : scenario.bounds) check_bound(scenario, bound);
  for (const sim::PaperValue& value : scenario.paper) {
    ONEHOP_CHECK(has(scenario.rows, value.row));
    ONEHOP_CHECK(has(scenario.columns, value.column));
  }
  return 0;
}
