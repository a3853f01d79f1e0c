// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/law/ack_spacing.hpp"

#include <algorithm>

namespace onehop::law {

namespace {
constexpr Nanos quiet_min{100ms};   // the period of a station dump: sooner, and nobody has looked
constexpr std::int64_t quiet_srtts = 4;
constexpr Nanos quiet_long{1s};
constexpr Nanos interval_max{100ms};// rarer, and a lost report delays repair and credit by what a user notices
// On Wi-Fi each report takes a turn on the air, which costs the more the more stations contend. In ns-3 (802.11ax, 160 MHz) one
// pair lost 5.5 % of its rate to 400 reports a second and 0.5 % to 20; of 8 pairs' sum, 160 a second took 4 %. So a report
// stands for bytes and not for time. More: the receive ring must hold what is sent until the credit of the next one, and
// only a large ring does (16 reports a second instead of 22 give one pair 0.25 % more).
constexpr Bytes bytes_per_report{7'000'000}, bytes_per_report_max{10'000'000};
constexpr Gain ring_part{400};
constexpr Nanos interval_wifi_min{50ms}, interval_wifi_max{400ms};
constexpr Nanos rate_span{100ms};
}  // namespace

// follow_rate: what is sent, over the last span or two.
void AckSpacing::follow_rate(const LinkSample& sample) noexcept {
  const Nanos span = sample.at - rated_at_;
  if (rated_at_ != Instant{} && span < rate_span) return;
  if (rated_at_ != Instant{} && sample.path.sent_total >= rated_sent_) rate_ = (sample.path.sent_total - rated_sent_) / span;
  rated_at_ = sample.at;
  rated_sent_ = sample.path.sent_total;
}

AckSpacing::Wish AckSpacing::step(const LinkSample& sample) noexcept {
  const MacCounters* mac = fresh(sample.facts.mac, sample.at);
  if (mac == nullptr || sample.path.srtt <= Nanos{0}) {
    has_reading_ = false;
    return {.nack_request_id = requests_};
  }
  follow_rate(sample);
  const bool is_wifi = sample.facts.medium == Medium::wifi;
  const std::uint64_t dropped = sample.path.rx_ring.refused_total;
  const bool has_failed = has_reading_ && mac->tx_failed_total > failed_total_;
  const bool has_dropped = has_reading_ && dropped != dropped_total_;
  if (has_failed) ++requests_;
  // On Wi-Fi the request alone asks for what failed; and nothing is known against the link at its start, where a short
  // file would be over before it had proven itself.
  const bool is_doubted = !has_reading_ || has_failed || mac->tx_failed_total < failed_total_;
  if (has_dropped || (is_doubted && !is_wifi)) grew_at_ = sample.at;
  if (!has_reading_ && is_wifi) grew_at_ = sample.at - std::max(sample.path.srtt * quiet_srtts, quiet_min);
  failed_total_ = mac->tx_failed_total;
  dropped_total_ = dropped;
  has_reading_ = true;

  const Nanos quiet = sample.at - grew_at_;
  if (quiet < std::max(sample.path.srtt * quiet_srtts, quiet_min)) return {.nack_request_id = requests_};
  const Bytes bytes = std::clamp(sample.path.rx_ring.capacity * ring_part, bytes_per_report, bytes_per_report_max);
  if (is_wifi)
    return {.interval = std::clamp(time_for(bytes, rate_), interval_wifi_min, rate_.count > 0 ? interval_wifi_max : interval_wifi_min),
            .nack_request_id = requests_};
  const std::int64_t srtts = quiet < quiet_long ? 1 : 2;
  return {.interval = std::min(sample.path.srtt * srtts, interval_max), .nack_request_id = requests_};
}

}  // namespace onehop::law
