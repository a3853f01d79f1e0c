// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/law/term/paced_growth.hpp"

#include <algorithm>
#include <cmath>

namespace onehop::law {

namespace {
// Ours. Low: reordering cuts the rate. High: a full ring goes unseen.
constexpr std::int64_t loss_excess_permille = 20;
// Ours: a cut of 15 %. Low: half the link is given away for one burst. High: a full ring loses for
// many round trips.
constexpr Gain gain_loss{850};
// Derived, algorithm's edge case i: at most twice the measured injection. Low: a slow start. High:
// loss before any report tells of it.
constexpr Gain gain_growth{2000};
// Ours, after the first loss. Low: seconds below the link's rate. High: the sawtooth costs more
// than it finds.
constexpr Gain gain_growth_slow{1020};
// Ours. Low: one lost packet is the 2 %. High: a slow link is answered too late.
constexpr std::uint64_t packets_min = 50;
// Ours, of a slice. Low: the least of many small slices is well below what the path loses. High: a
// slow path is learnt late.
constexpr std::uint64_t slice_packets_min = 200;
// Ours. Low: one lucky slice passes for the path. High: loss that sets in for good is learnt late.
constexpr Nanos memory{10s};
// Ours: at a quarter of the rate. Low: loss that we cause becomes the path's own. High: a lossy
// path is slowed down for longer.
constexpr Gain gain_own_loss{4000};

std::int64_t loss_permille(const PacedGrowthInput& from, const PacedGrowthInput& to) noexcept {
  const std::uint64_t sent = to.packets_reported_total - from.packets_reported_total;
  const std::uint64_t lost = to.packets_lost_total - from.packets_lost_total;
  return sent == 0 ? 0
                   : static_cast<std::int64_t>(std::min<std::uint64_t>(lost * 1000 / sent, 1000));
}
}  // namespace

BytesPerSecond PacedGrowth::step(const PacedGrowthInput& input) noexcept {
  const bool is_absurd = input.at < grown_.at || input.sent_total < grown_.sent_total ||
                         input.packets_lost_total < loss_begin_.packets_lost_total ||
                         input.packets_reported_total < loss_begin_.packets_reported_total;
  if (!has_reading_ || is_absurd) {
    grown_ = loss_begin_ = slice_ = input;
    has_reading_ = true;
    return rate_;
  }
  if (input.is_outage) {
    rate_ = rate_received_;
    grown_ = loss_begin_ = slice_ = input;
    return rate_;
  }
  if (input.feedback_at != received_at_) {
    received_at_ = input.feedback_at;
    rate_received_ = rate_;
  }
  const Nanos rtt = std::max(input.srtt, params_.d_1);
  update_loss(input, rtt);
  close_slice(input);

  const Nanos span = input.at - grown_.at;
  if (span < (has_seen_loss_ ? rtt : params_.d_1)) return rate_;
  injection_ = (input.sent_total - grown_.sent_total) / span;
  grown_ = input;
  // Idle time says nothing about the link and must not let the rate grow. Neither does it shrink:
  // the source paused.
  if (injection_ * Gain{1400} >= rate_) {
    rate_ = has_seen_loss_ ? rate_ * gain_growth_slow : std::max(rate_, injection_ * gain_growth);
  } else if (injection_ > params_.rate_min) {
    rate_ = std::min(rate_, std::max(injection_ * gain_growth, params_.rate_start));
  }
  rate_ = std::clamp(rate_, params_.rate_min, params_.rate_max);
  return rate_;
}

void PacedGrowth::update_loss(const PacedGrowthInput& input, Nanos rtt) noexcept {
  if (input.at - loss_begin_.at < rtt ||
      input.packets_reported_total - loss_begin_.packets_reported_total < packets_min)
    return;
  // Two deviations above the expected count (Poisson), or a path that always loses 10 % would look
  // congested by chance.
  const auto sent =
      static_cast<double>(input.packets_reported_total - loss_begin_.packets_reported_total);
  const auto lost = static_cast<double>(input.packets_lost_total - loss_begin_.packets_lost_total);
  const double expected =
      sent * static_cast<double>(loss_excess_permille + usual_loss_permille_) / 1000.0;
  if (lost > expected + 2.0 * std::sqrt(expected)) {
    if (!has_seen_loss_) rate_at_loss_ = rate_;
    rate_ = std::max(rate_ * gain_loss, params_.rate_min);
    has_seen_loss_ = true;
  }
  loss_begin_ = input;
}

void PacedGrowth::close_slice(const PacedGrowthInput& input) noexcept {
  // At a low rate a slice takes longer. Were it dropped, nothing would be learnt there, and the
  // rate would stay low.
  if (input.at - slice_.at < loss_slice ||
      input.packets_reported_total - slice_.packets_reported_total < slice_packets_min)
    return;
  const std::int64_t loss = loss_permille(slice_, input);
  // Loss that we cause would become "usual" if it were counted. It is the path's own only if it
  // stays when the rate has fallen to a quarter.
  const bool is_path_own =
      loss <= loss_excess_permille || (has_seen_loss_ && rate_ * gain_own_loss <= rate_at_loss_);
  if (is_path_own) {
    least_loss_.add(input.at, static_cast<double>(loss));
    usual_loss_permille_ =
        static_cast<std::int64_t>(least_loss_.since(input.at - memory).value_or(0.0));
    if (usual_loss_permille_ > loss_excess_permille)
      has_seen_loss_ = false;  // it was not congestion: start over
  }
  slice_ = input;
}

}  // namespace onehop::law
