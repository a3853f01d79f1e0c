// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/labs/lab/air/read_air_profile.hpp"

#include <fmt/format.h>

#include <cmath>

#include "tools/labs/lab/profile_reader.hpp"

namespace onehop::lab::air {

namespace {

constexpr std::int64_t trace_points_max = 10'000, contenders_max = 8, queue_frames_max = 4096;
// Largest A-MPDU: 11ac 2^20 - 1, 11ax 2^22 (with the extension that ns-3 3.37 knows).
constexpr std::int64_t aggregate_min = 4095, aggregate_ac_max = 1'048'575,
                       aggregate_ax_max = 4'194'304;

Nanos milliseconds(double value) {
  return Nanos{static_cast<Nanos::rep>(std::llround(value * 1e6))};
}
std::uint32_t ppm(double permille) {
  return static_cast<std::uint32_t>(std::lround(permille * 1000));
}

Result<PhyMode> read_mode(const ProfileReader& reader) {
  PhyMode mode;
  ONEHOP_TRY(standard, reader.text("standard", "ax"));
  if (standard != "ac" && standard != "ax")
    return reader.refuse("standard", "it must be \"ac\" or \"ax\"");
  mode.standard = standard == "ac" ? Standard::ac : Standard::ax;
  ONEHOP_TRY(width, reader.whole("width_mhz", 80, 80, 160));
  if (width != 80 && width != 160) return reader.refuse("width_mhz", "it must be 80 or 160");
  ONEHOP_TRY(mcs, reader.whole("mcs", mcs_max(mode.standard), 0, mcs_max(mode.standard)));
  ONEHOP_TRY(streams, reader.whole("streams", 2, 1, 2));
  mode.width_mhz = static_cast<int>(width);
  mode.mcs = static_cast<int>(mcs);
  mode.streams = static_cast<int>(streams);
  return mode;
}

Result<void> read_trace(const ProfileReader& reader, const std::string& name, AirProfile& profile) {
  const toml::array* const points = reader.table()["trace"].as_array();
  const Error shape = reader.refuse("trace", "it must be one or more [[wifi.trace]] tables");
  if (points == nullptr || points->empty() || points->size() > trace_points_max) return shape;
  for (const toml::node& node : *points) {
    if (node.as_table() == nullptr) return shape;
    const ProfileReader point{*node.as_table(), "a [[wifi.trace]] of " + name};
    ONEHOP_TRYV(point.unknown_keys({"at", "mcs"}));
    ONEHOP_TRY(at, point.number("at", 0, 0, 86'400));
    if (!point.has("mcs")) return point.refuse("mcs", "it must be given");
    ONEHOP_TRY(mcs, point.whole("mcs", 0, 0, mcs_max(profile.channel.mode.standard)));
    if (!profile.trace.empty() && milliseconds(at * 1000) <= profile.trace.back().at)
      return point.refuse("at", "the points must follow each other in time");
    profile.trace.push_back({milliseconds(at * 1000), static_cast<int>(mcs)});
  }
  if (profile.trace.front().at != Nanos{0})
    return reader.refuse("trace", "its first point must be at = 0");
  ONEHOP_TRY(period, reader.number("trace_period", 0, 0, 86'400));
  profile.trace_period = milliseconds(period * 1000);
  if (profile.trace_period <= profile.trace.back().at)
    return reader.refuse("trace_period", "it must be given and lie behind the last point");
  profile.channel.mode.mcs = profile.trace.front().mcs;
  return success();
}

Result<void> read_facts(const toml::table& table, const std::string& name, FactsProfile& facts) {
  const ProfileReader reader{table, "[wifi.facts] of " + name};
  ONEHOP_TRYV(reader.unknown_keys({"period_ms", "late_ms", "loss_permille"}));
  ONEHOP_TRY(period, reader.number("period_ms", 1, 0.2, 1000));
  ONEHOP_TRY(late, reader.number("late_ms", 0, 0, 1000));
  ONEHOP_TRY(loss, reader.number("loss_permille", 0, 0, 1000));
  facts = {.period = milliseconds(period), .late = milliseconds(late), .loss_ppm = ppm(loss)};
  return success();
}

Result<void> read_aggregate(const ProfileReader& reader, ChannelOptions& channel) {
  const bool is_ax = channel.mode.standard == Standard::ax;
  ONEHOP_TRY(block_ack, reader.whole("block_ack", 64, 64, 256));
  if (block_ack != 64 && (block_ack != 256 || !is_ax))
    return reader.refuse("block_ack", "it must be 64, or 256 for 11ax");
  ONEHOP_TRY(bytes, reader.whole("aggregate_bytes", 65'535, aggregate_min,
                                 is_ax ? aggregate_ax_max : aggregate_ac_max));
  channel.window_mpdus = static_cast<int>(block_ack);
  channel.aggregate_max = Bytes{bytes};
  return success();
}

}  // namespace

Result<AirProfile> read_air_profile(const toml::table& table, const std::string& name) {
  const ProfileReader reader{table, "[wifi] of " + name};
  ONEHOP_TRYV(reader.unknown_keys({"standard", "width_mhz", "mcs", "streams", "block_ack",
                                   "aggregate_bytes", "loss_permille", "retries", "queue_frames",
                                   "contenders", "seed", "trace", "trace_period", "facts"}));
  AirProfile profile;
  ONEHOP_TRY(mode, read_mode(reader));
  profile.channel.mode = mode;
  ONEHOP_TRYV(read_aggregate(reader, profile.channel));
  ONEHOP_TRY(loss, reader.number("loss_permille", 0, 0, 900));
  ONEHOP_TRY(retries, reader.whole("retries", 7, 0, 100));
  ONEHOP_TRY(contenders, reader.whole("contenders", 0, 0, contenders_max));
  ONEHOP_TRY(seed, reader.whole("seed", 1, 0, INT64_MAX));
  ONEHOP_TRY(queue, reader.whole("queue_frames", 500, 2, queue_frames_max));
  profile.channel.loss_ppm = ppm(loss);
  profile.channel.retries_max = static_cast<int>(retries);
  profile.channel.stations = 2 + static_cast<std::size_t>(contenders);
  profile.channel.seed = static_cast<std::uint64_t>(seed);
  profile.queue_frames = static_cast<std::uint64_t>(queue);
  if (reader.has("mcs") && reader.has("trace"))
    return reader.refuse("mcs", "there is a trace as well: give one of them");
  if (reader.has("trace_period") && !reader.has("trace"))
    return reader.refuse("trace_period", "there is no [[wifi.trace]]");
  if (reader.has("trace")) {
    ONEHOP_TRYV(read_trace(reader, name, profile));
  }
  if (reader.has("facts")) {
    if (table["facts"].as_table() == nullptr) return reader.refuse("facts", "it must be a table");
    ONEHOP_TRYV(read_facts(*table["facts"].as_table(), name, profile.facts));
  }
  return profile;
}

}  // namespace onehop::lab::air
