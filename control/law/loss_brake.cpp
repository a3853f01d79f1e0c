// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/law/loss_brake.hpp"

#include <algorithm>
#include <cmath>

namespace onehop::law {

namespace {
constexpr std::uint64_t packets_min = 200;  // [FWP]; fewer, and three lost packets are a verdict
constexpr Nanos window_min{2ms};
constexpr Nanos slice_span{100ms};
constexpr Gain gain_brake{850};
constexpr Gain gain_release{1020};
constexpr double mac_gain = 0.125;
constexpr double unknown_margin = 0.01;     // on the least loss seen, where the MAC does not tell

double ratio(std::uint64_t part, std::uint64_t whole) noexcept {
  return whole == 0 ? 0.0 : std::min(1.0, static_cast<double>(part) / static_cast<double>(whole));
}
}  // namespace

std::optional<BytesPerSecond> LossBrake::step(const LossReading& reading) noexcept {
  const bool is_absurd = reading.packets_sent_total < window_.packets_sent_total ||
                         reading.packets_lost_total < window_.packets_lost_total ||
                         reading.receiver_drops_total < window_.receiver_drops_total;
  if (!has_reading_ || is_absurd) {
    window_ = slice_ = reading;
    window_.mac = slice_.mac = nullptr;  // not ours to keep
    has_reading_ = true;
    has_mac_ = false;
    return cap_;
  }
  const std::uint64_t sent = reading.packets_sent_total - window_.packets_sent_total;
  // Losses are told by reports: over less than a report's distance, one report's losses stand against a few packets.
  const Nanos window = std::max({reading.srtt, reading.feedback_interval, window_min});
  if (reading.at - window_.at < window || sent < packets_min) return cap_;
  follow_mac(reading.mac);
  close_slice(reading);

  const double loss = ratio(reading.packets_lost_total - window_.packets_lost_total, sent);
  const double sigma = std::sqrt(loss * (1.0 - loss) / static_cast<double>(sent));
  if (reading.receiver_drops_total > window_.receiver_drops_total) {
    brake(reading, {});
  } else if ((has_mac_loss_ || slice_count_ > 0) && loss > 1.5 * expected_loss() + 3.0 * sigma) {
    const Gain arrived{static_cast<std::int64_t>((1.0 - loss) * 1000.0)};
    brake(reading, reading.drain * arrived * gain_brake);
  } else {
    release(reading);
  }
  window_ = reading;
  window_.mac = nullptr;
  return cap_;
}

void LossBrake::release(const LossReading& reading) noexcept {
  if (!cap_) return;
  cap_ = *cap_ * gain_release;
  if (*cap_ > reading.wanted) cap_.reset();
}

void LossBrake::brake(const LossReading& reading, BytesPerSecond floor) noexcept {
  overload_total_ += reading.packets_lost_total - window_.packets_lost_total;
  const BytesPerSecond now = cap_ ? std::min(*cap_, reading.wanted) : reading.wanted;
  cap_ = std::max({now * gain_brake, floor, reading.rate_min});
  if (*cap_ >= reading.wanted) cap_.reset();
}

void LossBrake::follow_mac(const MacCounters* mac) noexcept {
  if (mac == nullptr) {
    has_mac_ = has_mac_loss_ = false;
    return;
  }
  const bool is_grown = has_mac_ && mac->tx_frames_total > mac_.tx_frames_total && mac->tx_failed_total >= mac_.tx_failed_total;
  if (is_grown) {
    const double sample = ratio(mac->tx_failed_total - mac_.tx_failed_total, mac->tx_frames_total - mac_.tx_frames_total);
    mac_loss_ = has_mac_loss_ ? mac_loss_ + mac_gain * (sample - mac_loss_) : sample;
    has_mac_loss_ = true;
  }
  if (!has_mac_ || is_grown || mac->tx_frames_total < mac_.tx_frames_total) mac_ = *mac;
  has_mac_ = true;
}

void LossBrake::close_slice(const LossReading& reading) noexcept {
  if (reading.at - slice_.at < slice_span) return;
  const std::uint64_t sent = reading.packets_sent_total - slice_.packets_sent_total;
  if (sent >= packets_min) {
    slices_[slice_next_] = ratio(reading.packets_lost_total - slice_.packets_lost_total, sent);
    slice_next_ = (slice_next_ + 1) % slices_max;
    slice_count_ = std::min(slice_count_ + 1, slices_max);
  }
  slice_ = reading;
  slice_.mac = nullptr;
}

double LossBrake::expected_loss() const noexcept {
  // What the path always loses is no overload, whatever the MAC says of its own part.
  const double always = slice_count_ == 0 ? 0.0
      : *std::min_element(slices_.begin(), slices_.begin() + static_cast<std::ptrdiff_t>(slice_count_));
  return has_mac_loss_ ? std::max(mac_loss_, always) : always + unknown_margin;
}

}  // namespace onehop::law
