// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/law/ack_spacing.hpp"

#include <algorithm>

namespace onehop::law {

namespace {
constexpr Nanos quiet_min{100ms};   // the period of a station dump: sooner, and nobody has looked
constexpr std::int64_t quiet_srtts = 4;
constexpr Nanos quiet_long{1s};
// Each report takes a turn on the air: in ns-3 (802.11ax, 160 MHz) 400 a second took 5.5 % of the rate, 20 take 0.5 %.
// Longer: the receive ring must hold what credit the sender needs until the next one.
constexpr Nanos interval_wifi{50ms};
constexpr Nanos interval_max{100ms};// rarer, and a lost report delays repair and credit by what a user notices
}  // namespace

AckSpacing::Wish AckSpacing::step(const LinkSample& sample) noexcept {
  const MacCounters* mac = fresh(sample.facts.mac, sample.at);
  if (mac == nullptr || sample.path.srtt <= Nanos{0}) {
    has_reading_ = false;
    return {.nack_request_id = requests_};
  }
  const std::uint64_t dropped = sample.path.rx_ring.refused_total;
  const bool has_failed = has_reading_ && mac->tx_failed_total > failed_total_;
  const bool is_wifi = sample.facts.medium == Medium::wifi;
  // Nothing is known against a Wi-Fi link at its start; a short file would be over before it had proven itself.
  if (!has_reading_ && is_wifi) grew_at_ = sample.at - std::max(sample.path.srtt * quiet_srtts, quiet_min);
  if ((!has_reading_ && !is_wifi) || has_failed || mac->tx_failed_total < failed_total_ || (has_reading_ && dropped != dropped_total_)) grew_at_ = sample.at;
  if (has_failed) ++requests_;
  failed_total_ = mac->tx_failed_total;
  dropped_total_ = dropped;
  has_reading_ = true;

  const Nanos quiet = sample.at - grew_at_;
  if (quiet < std::max(sample.path.srtt * quiet_srtts, quiet_min)) return {.nack_request_id = requests_};
  const std::int64_t srtts = quiet < quiet_long ? 1 : 2;
  const Nanos least = is_wifi ? interval_wifi : Nanos{0};
  return {.interval = std::clamp(sample.path.srtt * srtts, least, interval_max), .nack_request_id = requests_};
}

}  // namespace onehop::law
