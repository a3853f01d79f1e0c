// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/labs/plot/capacity.hpp"

#include <array>

#include "tools/labs/plot/trace_reader.hpp"

namespace onehop::plot {

namespace {
// A link that changes each millisecond for a quarter of an hour
constexpr std::size_t steps_max = 1'000'000;
}  // namespace

Result<Capacity> Capacity::read(std::istream& in, const std::string& name) {
  std::vector<RateStep> steps;
  bool is_whole = true;
  static constexpr std::array<std::string_view, 1> wanted{"rate_bytes_per_s"};
  ONEHOP_TRYV(read_table(
      in,
      {.name = name, .what = "capacity", .maker = "onehop lab run --rate-log", .needed = wanted},
      wanted, [&](const TraceRow& row) {
        const auto& rate = row.values[0];
        is_whole = is_whole && rate && *rate >= 0 && *rate < 1e15 && steps.size() < steps_max;
        if (is_whole) steps.push_back({row.at, {static_cast<std::int64_t>(*rate)}});
      }));
  if (!is_whole)
    return Error{
        ExitCode::local_file_error, "read the capacity " + name,
        "a row has no rate of 0 to 10^15 bytes per second, or there are more than a million",
        "Is it a file of 'onehop lab run --rate-log'?"};
  return Capacity{std::move(steps)};
}

std::vector<RateStep> Capacity::between(Nanos from, Nanos until) const {
  std::vector<RateStep> found;
  for (const RateStep& step : steps_) {
    if (step.at > until) break;
    if (step.at <= from)
      found.assign(1, {from, step.rate});
    else if (!found.empty())
      found.push_back(step);
  }
  return found;
}

}  // namespace onehop::plot
