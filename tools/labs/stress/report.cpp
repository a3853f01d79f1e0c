// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/labs/stress/report.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <array>
#include <bit>
#include <cmath>

#include "tools/onehop/text/quantity.hpp"

namespace onehop::stress {

namespace {

using Json = nlohmann::ordered_json;
constexpr std::size_t bar_width = 40;

double percent(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
}

/// A line per power of two: how much of the time a buffer held so much.
std::string bars(const LogLinearHistogram& histogram) {
  std::array<std::uint64_t, 65> by_power{};
  histogram.for_each([&](std::uint64_t edge, std::uint64_t count) {
    by_power[static_cast<std::size_t>(std::bit_width(edge))] += count;
  });
  std::string text;
  for (std::size_t power = 0; power < by_power.size(); ++power) {
    if (by_power[power] == 0) continue;
    const double share = percent(by_power[power], histogram.count());
    const std::uint64_t edge = power == 0    ? 0
                               : power == 64 ? ~std::uint64_t{0}
                                             : (std::uint64_t{1} << power) - 1;
    const auto marks = static_cast<std::size_t>(std::lround(share / 100 * bar_width));
    text += fmt::format("    {:>9}  {:5.1f} %  {}\n",
                        power == 0 ? "empty" : "< " + tool::format_bytes(edge + 1), share,
                        std::string(marks, '#'));
  }
  return text;
}

std::string buffer_text(const char* name, const LogLinearHistogram& histogram) {
  return fmt::format("  {}: p50 {}, p99 {}, at most {}\n{}", name,
                     tool::format_bytes(histogram.percentile(500)),
                     tool::format_bytes(histogram.percentile(990)),
                     tool::format_bytes(histogram.max()), bars(histogram));
}

Json buffer_json(const LogLinearHistogram& histogram) {
  Json buckets = Json::array();
  histogram.for_each([&](std::uint64_t edge, std::uint64_t count) {
    buckets.push_back({edge, count});
  });
  return {{"occupancy_bytes_p50", histogram.percentile(500)},
          {"occupancy_bytes_p99", histogram.percentile(990)},
          {"occupancy_bytes_max", histogram.max()},
          {"histogram_bytes_us", buckets}};
}

std::string schedules(std::uint64_t count) {
  return fmt::format("{} schedule{}", count, count == 1 ? "" : "s");
}

}  // namespace

std::string text_of(const CampaignResult& result, const ReportContext& context) {
  const Tally& t = result.tally;
  const std::uint64_t flowing = t.below_us + t.inside_us + t.above_us;
  std::string text = fmt::format(
      "{} of seed {}: {} faults ({} with every kind)\n"
      "  {:.{}f} s of virtual time, {} in {} frames\n"
      "  {:.1f} s, CPU {:.1f} s: {:.2f} ms per schedule\n",
      schedules(t.schedules), context.seed, t.events, schedules(t.schedules_with_all),
      static_cast<double>(t.virtual_us) / 1e6, t.virtual_us < 10'000'000 ? 1 : 0,
      tool::format_bytes(t.bytes), t.frames, context.seconds, result.cpu_seconds,
      t.schedules == 0 ? 0 : result.cpu_seconds * 1e3 / static_cast<double>(t.schedules));
  text += "while data could flow, each buffer held (share of the time)\n";
  text += buffer_text("lower queue", t.tx_queue) + buffer_text("receive ring", t.rx_ring) +
          buffer_text("blocks for the disk", t.app_buffer);
  text += fmt::format(
      "  lower queue: below X_under {:.1f} %, in the safe range {:.1f} %,\n    above X_over {:.1f} "
      "% of the time; empty {:.1f} %\n",
      percent(t.below_us, flowing), percent(t.inside_us, flowing), percent(t.above_us, flowing),
      percent(t.underflow_us, flowing));
  text += fmt::format(
      "  refused: {} frames on the way out, {} by receive rings\n  sent again: {}\n",
      t.tx_refused_frames, t.rx_refused_frames, tool::format_bytes(t.retransmitted_bytes));
  text += fmt::format(
      "  back at 90 % of the link after the last fault:\n    p50 {:.0f} ms, p90 {:.0f} ms, p99 "
      "{:.0f} ms; {} ended before\n",
      static_cast<double>(t.recovery_us.percentile(500)) / 1e3,
      static_cast<double>(t.recovery_us.percentile(900)) / 1e3,
      static_cast<double>(t.recovery_us.percentile(990)) / 1e3, t.unrecovered);
  if (!result.failure) text += "every invariant held\n";
  return text;
}

Json json_of(const CampaignResult& result, const ReportContext& context) {
  const Tally& t = result.tally;
  Json kinds = Json::object();
  for (std::size_t i = 0; i < faults; ++i)
    kinds[std::string{to_string(static_cast<Fault>(i))}] = {{"schedules", t.schedules_with[i]},
                                                            {"events", t.events_of[i]}};
  return {{"schema_version", 1},
          {"type", "stress"},
          {"seed", context.seed},
          {"is_held", !result.failure.has_value()},
          {"schedules_total", t.schedules},
          {"schedules_with_every_fault", t.schedules_with_all},
          {"events_total", t.events},
          {"faults", kinds},
          {"virtual_seconds", static_cast<double>(t.virtual_us) / 1e6},
          {"seconds", context.seconds},
          {"cpu_seconds", result.cpu_seconds},
          {"bytes_total", t.bytes},
          {"frames_total", t.frames},
          {"retransmitted_bytes_total", t.retransmitted_bytes},
          {"tx_queue", buffer_json(t.tx_queue)},
          {"rx_ring", buffer_json(t.rx_ring)},
          {"app_buffer", buffer_json(t.app_buffer)},
          {"below_safe_range_us_total", t.below_us},
          {"in_safe_range_us_total", t.inside_us},
          {"above_safe_range_us_total", t.above_us},
          {"underflow_us_total", t.underflow_us},
          {"tx_refused_total", t.tx_refused_frames},
          {"rx_refused_total", t.rx_refused_frames},
          {"recovery_us_p50", t.recovery_us.percentile(500)},
          {"recovery_us_p90", t.recovery_us.percentile(900)},
          {"recovery_us_p99", t.recovery_us.percentile(990)},
          {"recovery_us_max", t.recovery_us.max()},
          {"ended_before_recovery", t.unrecovered}};
}

std::string failure_text(const CampaignFailure& failure, const ReportContext& context) {
  return fmt::format(
      "onehop stress: schedule {} of seed {} broke at {:.3f} ms: {}\n  this one alone: {}\n",
      failure.index, context.seed, static_cast<double>(failure.at.count()) / 1e6, failure.what,
      context.again);
}

Json failure_json(const CampaignFailure& failure, const ReportContext& context) {
  return {{"schema_version", 1},       {"type", "stress_failure"},  {"seed", context.seed},
          {"schedule", failure.index}, {"at_us", failure.at / 1us}, {"what", failure.what},
          {"again", context.again}};
}

}  // namespace onehop::stress
