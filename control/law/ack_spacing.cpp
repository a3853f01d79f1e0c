// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/law/ack_spacing.hpp"

#include <algorithm>

namespace onehop::law {

namespace {
constexpr Nanos quiet_min{100ms};   // the period of a station dump: sooner, and nobody has looked
constexpr std::int64_t quiet_srtts = 4;
constexpr Nanos quiet_long{1s};
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
  if (!has_reading_ || has_failed || mac->tx_failed_total < failed_total_ || dropped != dropped_total_) grew_at_ = sample.at;
  if (has_failed) ++requests_;
  failed_total_ = mac->tx_failed_total;
  dropped_total_ = dropped;
  has_reading_ = true;

  const Nanos quiet = sample.at - grew_at_;
  if (quiet < std::max(sample.path.srtt * quiet_srtts, quiet_min)) return {.nack_request_id = requests_};
  const std::int64_t srtts = quiet < quiet_long ? 1 : 2;
  return {.interval = std::min(sample.path.srtt * srtts, interval_max), .nack_request_id = requests_};
}

}  // namespace onehop::law
