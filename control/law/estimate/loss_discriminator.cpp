// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/law/estimate/loss_discriminator.hpp"

#include <algorithm>
#include <cmath>

namespace onehop::law {

namespace {
// [FWP]. Low: three lost packets decide. High: a slow link is answered too late.
constexpr std::uint64_t packets_min = 200;
// Ours. Low: one burst of reports is a window. High: the receiver's ring overflows for longer.
constexpr Nanos window_min{2ms};
// [FWP] says long-term. Low: an overload of that length passes for what the path always loses.
// High: a path that got better is slowed down late.
constexpr Nanos memory{10s};
// Ours: 15 %. Low: one burst costs the link's rate. High: an overload lasts many round trips.
constexpr Gain gain_slow_down{850};
// Ours. Low: seconds below the link's rate. High: the next overload comes at once.
constexpr Gain gain_speed_up{1020};
// Ours. Low: loss that begins on the air slows us down meanwhile. High: one poor reading of the MAC
// explains an overload.
constexpr double mac_gain = 0.125;
// Ours, on the least loss seen, where no MAC counts. Low: reordering slows us down. High: an
// overload of 1 % goes unseen.
constexpr double unknown_margin = 0.01;
// Derived: four steps down. Low: loss on the air slows us down for longer. High: the two losses are
// less than 3 sigma apart.
constexpr double trial_ratio = 0.6;

double ratio(std::uint64_t part, std::uint64_t whole) noexcept {
  return whole == 0 ? 0.0 : std::min(1.0, static_cast<double>(part) / static_cast<double>(whole));
}
}  // namespace

std::optional<BytesPerSecond> LossDiscriminator::step(const LossReading& reading,
                                                      const MacCounters* mac) noexcept {
  const bool is_absurd = reading.packets_reported_total < window_.packets_reported_total ||
                         reading.packets_lost_total < window_.packets_lost_total ||
                         reading.receiver_drops_total < window_.receiver_drops_total;
  if (!has_reading_ || is_absurd || reading.is_outage) {
    window_ = slice_ = reading;
    has_reading_ = true;
    mac_.reset();
    return cap_;
  }
  const std::uint64_t reported = reading.packets_reported_total - window_.packets_reported_total;
  // Reports tell of losses. In less time than between two reports, the losses of one report would
  // be compared with a few packets.
  const Nanos window = std::max({reading.srtt, reading.feedback_interval, window_min});
  if (reading.at - window_.at < window || reported < packets_min) return cap_;
  update_mac_loss(mac);
  close_slice(reading);

  const double loss = ratio(reading.packets_lost_total - window_.packets_lost_total, reported);
  const double sigma = std::sqrt(loss * (1.0 - loss) / static_cast<double>(reported));
  const double packets_per_s =
      static_cast<double>(reported) * 1e9 / static_cast<double>((reading.at - window_.at).count());
  if (is_same_at_any_rate(loss, sigma, packets_per_s)) {
    air_ = {.at = reading.at, .loss = loss};
    cap_.reset();
  }
  const std::optional<double> expected = expected_loss(reading.at);
  if (reading.receiver_drops_total > window_.receiver_drops_total) {
    slow_down(reading, {});
  } else if (expected && loss > 1.5 * *expected + 3.0 * sigma) {
    if (!cap_) trial_ = {.loss = loss, .packets_per_s = packets_per_s};
    const Gain arrived{static_cast<std::int64_t>((1.0 - loss) * 1000.0)};
    slow_down(reading, reading.drain * arrived * gain_slow_down);
  } else {
    // At a low rate 200 packets take many round trips. A trial is judged window by window.
    const std::int64_t trips = (reading.at - window_.at) / window;
    speed_up(reading, trial_ ? 1 : std::min(trips, ++calm_windows_));
  }
  if (!cap_) trial_.reset();
  window_ = reading;
  return cap_;
}

bool LossDiscriminator::is_same_at_any_rate(double loss, double sigma,
                                            double packets_per_s) const noexcept {
  if (!trial_ || packets_per_s > trial_->packets_per_s * trial_ratio) return false;
  const double overload =
      std::max(0.0, 1.0 - (1.0 - trial_->loss) * trial_->packets_per_s / packets_per_s);
  return loss > std::max((trial_->loss + overload) / 2, overload + 3.0 * sigma);
}

void LossDiscriminator::speed_up(const LossReading& reading, std::int64_t times) noexcept {
  for (; cap_ && times > 0; --times) cap_ = *cap_ * gain_speed_up;
  if (!cap_) return;
  if (*cap_ > reading.wanted) cap_.reset();
}

void LossDiscriminator::slow_down(const LossReading& reading, BytesPerSecond floor) noexcept {
  calm_windows_ = 0;
  overload_total_ += reading.packets_lost_total - window_.packets_lost_total;
  const BytesPerSecond now = cap_ ? std::min(*cap_, reading.wanted) : reading.wanted;
  cap_ = std::max({now * gain_slow_down, floor, reading.rate_min});
  if (*cap_ >= reading.wanted) cap_.reset();
}

void LossDiscriminator::update_mac_loss(const MacCounters* mac) noexcept {
  if (mac == nullptr) {
    mac_.reset();
    mac_loss_.reset();
    return;
  }
  const bool is_grown = mac_ && mac->tx_frames_total > mac_->tx_frames_total &&
                        mac->tx_failed_total >= mac_->tx_failed_total;
  if (is_grown) {
    const double sample = ratio(mac->tx_failed_total - mac_->tx_failed_total,
                                mac->tx_frames_total - mac_->tx_frames_total);
    mac_loss_ = mac_loss_ ? *mac_loss_ + mac_gain * (sample - *mac_loss_) : sample;
  }
  if (!mac_ || is_grown || mac->tx_frames_total < mac_->tx_frames_total) mac_ = *mac;
}

void LossDiscriminator::close_slice(const LossReading& reading) noexcept {
  if (reading.at - slice_.at < loss_slice) return;
  const std::uint64_t reported = reading.packets_reported_total - slice_.packets_reported_total;
  if (reported >= packets_min)
    least_loss_.add(reading.at,
                    ratio(reading.packets_lost_total - slice_.packets_lost_total, reported));
  slice_ = reading;
}

/// expected_loss: nullopt while the path's usual loss is unknown.
std::optional<double> LossDiscriminator::expected_loss(Instant now) const noexcept {
  // What the path always loses is no overload, whatever the MAC says of its own part.
  std::optional<double> always = least_loss_.since(now - memory);
  if (air_ && now - air_->at <= memory) always = std::max(always.value_or(0.0), air_->loss);
  if (mac_loss_) return std::max(*mac_loss_, always.value_or(0.0));
  if (!always) return std::nullopt;
  return *always + unknown_margin;
}

}  // namespace onehop::law
