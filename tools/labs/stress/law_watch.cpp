// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/labs/stress/law_watch.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace onehop::stress {

namespace {
// Specification: as the paper and its reading have them, stated here once more so that a slip in
// the law is seen.
constexpr Nanos latch_min = 50ms, srtt_for_x_max = 40ms;
constexpr std::int64_t latch_srtts = 4;
constexpr BytesPerSecond rate_min{150'000}, rate_most{12'500'000'000};
constexpr std::int64_t frames_least = 4;
constexpr Nanos feedback_interval_max = 1s;
}  // namespace

LawWatch::LawWatch(scenario::World& world, const scenario::WorldConfig& config, bool has_facts,
                   Broken& broken)
    : world_{world},
      broken_{broken},
      has_latch_{!config.law.starts_with("fixed")},
      takes_least_{config.law == "safe-range" || config.law == "auto"},
      is_safe_range_{config.law == "safe-range" || (config.law == "auto" && !has_facts)} {}

void LawWatch::after_tick(Instant now) {
  const PathReport path = world_.sender_report();
  if (path.srtt > 0ns) srtt_min_ = srtt_min_ == 0ns ? path.srtt : std::min(srtt_min_, path.srtt);
  if (has_latch_) {
    check_latch(now, 1, path.rx_ring, path);
    check_latch(now, 2, path.app_buffer, path);
  }
  check_grant(now, world_.grant(), path);
}

/// The mark above which a buffer counts as backlogged is never below its target: an occupancy up to
/// the target is no sign.
void LawWatch::check_latch(Instant now, std::size_t buffer, const QueueTelemetry& queue,
                           const PathReport& path) {
  const law::BufferRow& row = world_.law().trace().buffers[buffer];
  Latch& latch = latches_[buffer - 1];
  const bool is_known = queue.scope != QueueScope::none;
  const bool has_drain = row.drain > BytesPerSecond{0};
  if (is_known && queue.is_backlogged && has_drain) {
    latch.busy_at = now;
    latch.was_busy = true;
  }
  if (is_known && (queue.is_backlogged || queue.occupancy > row.target)) {
    latch.maybe_at = now;
    latch.was_maybe = true;
  }
  const Nanos span = std::max(latch_min, path.srtt * latch_srtts);
  if (is_known && latch.was_busy && now - latch.busy_at <= span && !row.takes_part)
    broken_.say(now, fmt::format("latch: buffer {} was busy {} us ago and takes no part",
                                 buffer + 1, (now - latch.busy_at) / 1us));
  if (row.takes_part && (!latch.was_maybe || now - latch.maybe_at > span))
    broken_.say(now, fmt::format("latch: buffer {} takes part without a backlog in the last {} us",
                                 buffer + 1, span / 1us));
}

void LawWatch::check_grant(Instant now, const RateGrant& grant, const PathReport& path) {
  const law::LawTrace& trace = world_.law().trace();
  if (grant.rate < BytesPerSecond{0} || grant.rate > rate_most * Gain{1100} ||
      grant.backlog_max <= Bytes{0} || grant.batch_frames == 0 || grant.feedback_interval < 0ns ||
      grant.feedback_interval > feedback_interval_max)
    broken_.say(now, fmt::format("a grant of {} bytes/s, backlog {}, {} frames, reports each {} us",
                                 grant.rate.count, grant.backlog_max.count, grant.batch_frames,
                                 grant.feedback_interval / 1us));
  const auto payload = static_cast<double>(std::max<std::int64_t>(path.payload_per_frame.count, 1));
  const double to_wire =
      static_cast<double>(std::max(path.wire_per_frame.count, path.payload_per_frame.count)) /
      payload;
  constexpr double slack = 1.001;
  for (std::size_t i = 0; takes_least_ && i < trace.buffers.size(); ++i) {
    const law::BufferRow& row = trace.buffers[i];
    const double most = static_cast<double>(std::max(row.rate, rate_min).count) * to_wire * slack;
    if (row.takes_part && static_cast<double>(grant.rate.count) > most + 1)
      broken_.say(now,
                  fmt::format("rate: {} bytes/s granted, and buffer {} asks for {:.0f} at most",
                              grant.rate.count, i + 1, most));
  }
  if (!is_safe_range_) return;
  const BytesPerSecond v = trace.buffers[0].drain;
  const Bytes x_max = std::max(v * std::min(srtt_min_, srtt_for_x_max) * 2, v * Gain{4500} * d_1);
  const double most =
      static_cast<double>(std::max(x_max, path.payload_per_frame * frames_least).count) * to_wire *
      slack;
  if (static_cast<double>(grant.backlog_max.count) > most + 2 * payload)
    broken_.say(now, fmt::format("safe range: {} bytes may stand below us, X_max is {:.0f}",
                                 grant.backlog_max.count, most));
}

}  // namespace onehop::stress
