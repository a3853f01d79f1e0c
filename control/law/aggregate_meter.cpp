// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/law/aggregate_meter.hpp"

#include <algorithm>
#include <cstdlib>

namespace onehop::law {

namespace {
//= [802.11] aPPDUMaxTime: a PPDU lasts 5.484 ms at most, whatever the aggregate's limit in bytes
constexpr Nanos ppdu_max{5'484us};
constexpr std::int64_t smooth_jump_bytes = 2 * 1538;  // two full frames on the wire: a link that sends frame by frame
// With more transmissions than this per stretch the jumps are a small part of the reading; such readings may raise L only.
constexpr std::int64_t transmissions_per_stretch_max = 4;
}  // namespace

void AggregateMeter::add(Instant at, Bytes drained_total, Bytes occupancy, BytesPerSecond drain) noexcept {
  const Nanos span = at - at_;
  const Bytes drained = drained_total - drained_total_;
  const bool is_stretch = has_reading_ && span > Nanos{0} && span < 20ms && drained >= Bytes{0};
  if (has_reading_ && span == Nanos{0}) return;
  // What stood there and has not all left proves that the queue never ran empty, so the link was never short of bytes.
  const bool was_backlogged = is_stretch && drained < occupancy_;
  at_ = at;
  drained_total_ = drained_total;
  occupancy_ = occupancy;
  has_reading_ = true;
  if (!is_stretch) {
    has_excess_ = false;
    return;
  }
  if (span <= params_.instant) {
    instant_largest_ = std::max(instant_largest_, drained);
    if (drained > Bytes{0} && ++instant_count_ >= jumps_max) {
      learn(instant_largest_, true);
      instant_largest_ = {};
      instant_count_ = 0;
    }
    has_excess_ = false;
    return;
  }
  if (!was_backlogged || drain <= BytesPerSecond{0}) {
    has_excess_ = false;
    return;
  }
  const Bytes excess = drained - drain * span;
  if (has_excess_) {
    jumps_[jumps_count_++] = std::abs((excess - excess_).count);
    span_ += span;
  }
  excess_ = excess;
  has_excess_ = true;
  if (jumps_count_ == jumps_max) close_window(drain);
}

void AggregateMeter::close_window(BytesPerSecond drain) noexcept {
  std::sort(jumps_.begin(), jumps_.end());
  const std::int64_t largest = jumps_.back();
  const Bytes mean_stretch = drain * (span_ / static_cast<std::int64_t>(jumps_max));
  if (largest <= smooth_jump_bytes) {
    learn({largest}, true);
  } else {
    const auto first = std::lower_bound(jumps_.begin(), jumps_.end(), largest / 4);
    const Bytes sample{*(first + (jumps_.end() - first) / 2)};
    learn(sample, mean_stretch <= sample * transmissions_per_stretch_max);
  }
  jumps_count_ = 0;
  span_ = Nanos{0};
}

void AggregateMeter::learn(Bytes sample, bool may_lower) noexcept {
  if (sample > learnt_) learnt_ += (sample - learnt_) / 2;
  else if (may_lower) learnt_ += (sample - learnt_) / 8;
  learnt_ = std::clamp(learnt_, params_.least, params_.most);
}

Bytes AggregateMeter::limit(const Bytes* negotiated, BytesPerSecond drain) const noexcept {
  const Bytes wanted = negotiated != nullptr && *negotiated > Bytes{0} ? *negotiated : learnt_;
  const Bytes air = drain > BytesPerSecond{0} ? drain * ppdu_max : wanted;
  return std::clamp(std::min(wanted, air), std::min(params_.least, std::max(air, Bytes{1})), params_.most);
}

}  // namespace onehop::law
