// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/law/term/ack_frequency.hpp"

#include <algorithm>

#include "control/law/estimate/queue_view.hpp"

namespace onehop::law {

namespace {
// Ours, the period of a station dump. Low: quiet before the MAC was asked. High: short files never
// get rare reports.
constexpr Nanos quiet_min{100ms};
// Ours: a loss is repaired and reported in two. Low: quiet amid repairs. High: as above, where the
// round trip is long.
constexpr std::int64_t quiet_srtts = 4;
// Ours. Low: reports are rare again while a fade lasts. High: twice the reports, for longer.
constexpr Nanos quiet_long{1s};
// Ours. Low: turns on the air. High: a lost report delays repair and credit noticeably.
constexpr Nanos interval_max{100ms};
// On Wi-Fi each report takes a turn on the air, and a turn costs more the more stations contend. So
// a report stands for bytes and not for time. Measured in ns-3 (802.11ax, 160 MHz). Low: one pair
// lost 5.5 % of its rate to 400 reports a second and 0.5 % to 20; of 8 pairs' sum, 160 a second
// took 4 %. High: the receive ring must hold what is sent until the credit of the next one.
constexpr Bytes bytes_per_report{7'000'000}, bytes_per_report_max{10'000'000};
// Ours. Low: more reports than credit needs. High: one lost report, and credit runs out.
constexpr Gain ring_part{400};
// Measured as above. Low: turns on the air. High: an outage is seen late: silence is 3 intervals.
constexpr Nanos interval_wifi_min{50ms}, interval_wifi_max{400ms};
// Ours. Low: one aggregate more or less is the rate. High: the interval follows the rate late.
constexpr Nanos rate_span{100ms};
// Measured in ns-3. Low: air is lost to reports. High: the rate swings, for DelayBound's T is 60
// ms: two pairs at 73 Mbit/s each shared a medium with Jain's index 0.97 at 400 ms, 0.99 at 50 and
// 0.999 at 25.
constexpr Nanos interval_blind_max{25ms};
// Ours. Low: a sensor that is late or lossy passes for none. High: a queue that is no longer seen
// is controlled by rare reports.
constexpr Nanos blind_after{1s};
// Ours, on an unknown medium. Low: turns on the air. High: credit waits for reports on a fast link.
constexpr Gain ring_part_unknown{200};
}  // namespace

// update_rate: what is sent, over the last span or two.
void AckFrequency::update_rate(const LinkSample& sample) noexcept {
  const Nanos span = sample.at - measured_at_;
  if (measured_at_ != Instant{} && span < rate_span) return;
  if (measured_at_ != Instant{} && sample.path.sent_total >= measured_sent_)
    rate_ = (sample.path.sent_total - measured_sent_) / span;
  measured_at_ = sample.at;
  measured_sent_ = sample.path.sent_total;
}

// update_quiet sets when quiet began. Returns whether the MAC has given frames up since the last
// step.
bool AckFrequency::update_quiet(const LinkSample& sample, Bottleneck bottleneck,
                                const MacCounters* mac) noexcept {
  const bool is_wifi = sample.facts.medium == Medium::wifi;
  const bool is_first = !has_reading_;
  // The first value of a counter that comes, or goes, is no growth.
  const bool is_changed = has_mac_ != (mac != nullptr);
  const std::uint64_t failed = mac != nullptr ? mac->tx_failed_total : 0;
  const bool has_failed = !is_first && !is_changed && failed > failed_total_;
  const bool has_dropped = !is_first && sample.path.rx_ring.refused_total != dropped_total_;
  if (!is_first && sample.path.packets_lost_total != lost_total_) lost_at_ = sample.at;
  // On Wi-Fi a failure asks for missing ranges and leaves the interval. There the start counts as
  // quiet as well: a short file would be over before quiet had begun.
  const bool is_doubted = is_first || is_changed || has_failed || failed < failed_total_;
  // Only reports tell of the receiver's buffers, and while these limit the rate the air has turns
  // to spare.
  const bool is_receiver =
      bottleneck == Bottleneck::rx_ring || bottleneck == Bottleneck::app_buffer;
  if (has_dropped || is_receiver || (is_doubted && !is_wifi)) quiet_at_ = sample.at;
  if (is_first && is_wifi)
    quiet_at_ = sample.at - std::max(sample.path.srtt * quiet_srtts, quiet_min);
  failed_total_ = failed;
  dropped_total_ = sample.path.rx_ring.refused_total;
  lost_total_ = sample.path.packets_lost_total;
  has_mac_ = mac != nullptr;
  has_reading_ = true;
  return has_failed;
}

// longest_interval is short where no queue is seen: reports are then the only sensor of it.
Nanos AckFrequency::longest_interval(const LinkSample& sample) noexcept {
  if (view_queue(sample).queue.scope != QueueScope::none) seen_at_ = sample.at;
  const bool is_blind = seen_at_ == Instant{} || sample.at - seen_at_ > blind_after;
  if (is_blind) return interval_blind_max;
  return sample.facts.medium == Medium::wifi ? interval_wifi_max : interval_max;
}

Nanos AckFrequency::step(const LinkSample& sample, Bottleneck bottleneck) noexcept {
  const MacCounters* mac = fresh(sample.facts.mac, sample.at);
  const Medium medium = sample.facts.medium;
  if (sample.path.srtt <= Nanos{0} || (mac == nullptr && medium == Medium::wired)) {
    has_reading_ = false;
    return {};
  }
  update_rate(sample);
  const Nanos longest = longest_interval(sample);
  if (update_quiet(sample, bottleneck, mac)) ++requests_total_;
  const Nanos quiet = sample.at - quiet_at_,
              calm = std::max(sample.path.srtt * quiet_srtts, quiet_min);
  if (quiet < calm) return {};
  const Bytes ring = sample.path.rx_ring.capacity;
  if (medium == Medium::wifi) {
    const Bytes bytes = std::clamp(ring * ring_part, bytes_per_report, bytes_per_report_max);
    const Nanos wanted = rate_.count > 0 ? time_for(bytes, rate_) : interval_wifi_min;
    return std::min(std::max(wanted, interval_wifi_min), longest);
  }
  if (mac == nullptr) {
    // Only reports repair a loss there. On the air each report may cause the next loss, so they are
    // a round trip apart.
    const bool is_losing = lost_at_ != Instant{} && sample.at - lost_at_ < calm;
    const Nanos most = is_losing ? std::min(sample.path.srtt, longest) : longest;
    return std::min(time_for(ring * ring_part_unknown, rate_), most);
  }
  return std::min(sample.path.srtt * (quiet < quiet_long ? 1 : 2), interval_max);
}

}  // namespace onehop::law
