// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/law/ack_spacing.hpp"

#include <algorithm>

#include "control/law/queue_view.hpp"

namespace onehop::law {

namespace {
// Ours, the period of a station dump. Low: quiet before the MAC was asked. High: short files never
// get rare reports.
constexpr Nanos quiet_min{100ms};
// Ours: a loss is repaired and told of in two. Low: quiet amid repairs. High: as above, where the
// round trip is long.
constexpr std::int64_t quiet_srtts = 4;
// Ours. Low: reports are rare again while a fade lasts. High: twice the reports, for longer.
constexpr Nanos quiet_long{1s};
// Ours. Low: turns on the air. High: a lost report delays repair and credit by what a user notices.
constexpr Nanos interval_max{100ms};
// On Wi-Fi each report takes a turn on the air, which costs the more the more stations contend. So
// a report stands for bytes and not for time. Measured in ns-3 (802.11ax, 160 MHz). Low: one pair
// lost 5.5 % of its rate to 400 reports a second and 0.5 % to 20; of 8 pairs' sum, 160 a second
// took 4 %. High: the receive ring must hold what is sent until the credit of the next one, and
// only a large ring does (16 reports a second instead of 22 give one pair 0.25 % more).
constexpr Bytes bytes_per_report{7'000'000}, bytes_per_report_max{10'000'000};
// Ours. Low: more reports than credit needs. High: one lost report, and credit runs out before the
// next.
constexpr Gain ring_part{400};
// Measured as above. Low: turns on the air. High: an outage is seen late, for silence is three
// intervals.
constexpr Nanos interval_wifi_min{50ms}, interval_wifi_max{400ms};
// Ours. Low: one aggregate more or less is the rate. High: the interval follows a change of it
// late.
constexpr Nanos rate_span{100ms};
// Measured in ns-3. Low: air is lost to reports. High: the rate swings, for DelayBound's T is 60
// ms: two pairs at 73 Mbit/s each shared a medium with Jain's index 0.97 at 400 ms, 0.99 at 50 and
// 0.999 at 25.
constexpr Nanos interval_blind_max{25ms};
// Ours. Low: a sensor that is late or lossy passes for none. High: a queue that is seen no more is
// steered by rare reports.
constexpr Nanos blind_after{1s};
// Ours: where nobody tells what the medium is a report may cost a turn on the air, so it is rare
// there as well. Low: turns on the air. High: credit waits for the clock on a fast link.
constexpr Gain ring_part_unknown{200};
}  // namespace

// follow_rate: what is sent, over the last span or two.
void AckSpacing::follow_rate(const LinkSample& sample) noexcept {
  const Nanos span = sample.at - rated_at_;
  if (rated_at_ != Instant{} && span < rate_span) return;
  if (rated_at_ != Instant{} && sample.path.sent_total >= rated_sent_) rate_ = (sample.path.sent_total - rated_sent_) / span;
  rated_at_ = sample.at;
  rated_sent_ = sample.path.sent_total;
}

// follow_doubt: when quiet began anew. Returns whether the MAC has given frames up since the last step.
bool AckSpacing::follow_doubt(const LinkSample& sample, Bottleneck bottleneck, const MacCounters* mac) noexcept {
  const bool is_wifi = sample.facts.medium == Medium::wifi;
  const bool is_first = !has_reading_;
  // Counters that come, or go, tell nothing by their first value.
  const bool is_told_anew = has_mac_ != (mac != nullptr);
  const std::uint64_t failed = mac != nullptr ? mac->tx_failed_total : 0;
  const bool has_failed = !is_first && !is_told_anew && failed > failed_total_;
  const bool has_dropped = !is_first && sample.path.rx_ring.refused_total != dropped_total_;
  if (!is_first && sample.path.packets_lost_total != lost_total_) lost_at_ = sample.at;
  // On Wi-Fi the request alone asks for what failed; and nothing is known against the link at its start, where a short
  // file would be over before it had proven itself.
  const bool is_doubted = is_first || is_told_anew || has_failed || failed < failed_total_;
  // Reports alone tell of the receiver's buffers, and while these hold us back the air has turns to spare.
  const bool is_receiver = bottleneck == Bottleneck::rx_ring || bottleneck == Bottleneck::app_buffer;
  if (has_dropped || is_receiver || (is_doubted && !is_wifi)) grew_at_ = sample.at;
  if (is_first && is_wifi) grew_at_ = sample.at - std::max(sample.path.srtt * quiet_srtts, quiet_min);
  failed_total_ = failed;
  dropped_total_ = sample.path.rx_ring.refused_total;
  lost_total_ = sample.path.packets_lost_total;
  has_mac_ = mac != nullptr;
  has_reading_ = true;
  return has_failed;
}

// follow_sight returns the longest interval: where no queue is seen the reports are the only sensor of it.
Nanos AckSpacing::follow_sight(const LinkSample& sample) noexcept {
  if (view_queue(sample).queue.scope != QueueScope::none) seen_at_ = sample.at;
  const bool is_blind = seen_at_ == Instant{} || sample.at - seen_at_ > blind_after;
  if (is_blind) return interval_blind_max;
  return sample.facts.medium == Medium::wifi ? interval_wifi_max : interval_max;
}

AckSpacing::Wish AckSpacing::step(const LinkSample& sample, Bottleneck bottleneck) noexcept {
  const MacCounters* mac = fresh(sample.facts.mac, sample.at);
  const Medium medium = sample.facts.medium;
  if (sample.path.srtt <= Nanos{0} || (mac == nullptr && medium == Medium::wired)) {
    has_reading_ = false;
    return {.nack_request_id = requests_};
  }
  follow_rate(sample);
  const Nanos longest = follow_sight(sample);
  if (follow_doubt(sample, bottleneck, mac)) ++requests_;
  const Nanos quiet = sample.at - grew_at_, calm = std::max(sample.path.srtt * quiet_srtts, quiet_min);
  if (quiet < calm) return {.nack_request_id = requests_};
  const Bytes ring = sample.path.rx_ring.capacity;
  if (medium == Medium::wifi) {
    const Bytes bytes = std::clamp(ring * ring_part, bytes_per_report, bytes_per_report_max);
    const Nanos wanted = rate_.count > 0 ? time_for(bytes, rate_) : interval_wifi_min;
    return {.interval = std::min(std::max(wanted, interval_wifi_min), longest), .nack_request_id = requests_};
  }
  if (mac == nullptr) {
    // Loss is repaired by reports alone there. One a round trip: on the air, where each may make the next loss, that is long.
    const bool is_losing = lost_at_ != Instant{} && sample.at - lost_at_ < calm;
    const Nanos most = is_losing ? std::min(sample.path.srtt, longest) : longest;
    return {.interval = std::min(time_for(ring * ring_part_unknown, rate_), most), .nack_request_id = requests_};
  }
  const std::int64_t srtts = quiet < quiet_long ? 1 : 2;
  return {.interval = std::min(sample.path.srtt * srtts, interval_max), .nack_request_id = requests_};
}

}  // namespace onehop::law
