// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// NapAllowance: D, how long a short queue must last so that the link is never idle. The mean time
// between two visits of the engine core does not show it: now and then a core is late by more than
// a short queue holds. The bytes that leave show it. Each T, while data waits and this queue
// limits:
//
//   less left than 0.98 v_1 T     D <- 1.05 v_1 T / left, of what the queue lasted; at most twice
//   else                          D falls by 30 % each T; half as fast after each time above, but
//                                 never below 0.5 %, which is 10 % a second
//
// It starts at its largest value: finding D from below would cost a short file too much time.
//
// It needs a v_1 that is the link's. If a driver reports what has left later than the queue lasts,
// v_1 is what the limit lets through, and D stays too short: use --target under for these.
//
// Pure; bytes as the report counts them (wire).
#pragma once

#include <algorithm>

#include "engine/base/path.hpp"

namespace onehop::law {

class NapAllowance {
 public:
  struct Reading {
    const PathReport& path;
    BytesPerSecond drain{};    ///< v_1
    Bytes limit{};             ///< the backlog limit that was granted
    bool is_deciding = false;  ///< data waits, and this queue sets the rate
  };
  /// step takes each report once. `most` bounds D.
  void step(const Reading& reading, Nanos most) noexcept {
    const QueueTelemetry& queue = reading.path.tx_queue;
    if (queue.at == at_) return;
    const Nanos span = queue.at - at_;
    const Bytes left = queue.drained_total - drained_total_;
    at_ = queue.at;
    drained_total_ = queue.drained_total;
    if (!reading.is_deciding || span > pause_min || left < Bytes{0}) {
      restart();
      return;
    }
    if (lasting_ < Nanos{0}) lasting_ = most;
    span_ += span;
    left_ += left;
    expected_ += reading.drain * span;
    if (span_ < period) return;
    if (left_ < expected_ * full) {
      lasting_ =
          std::max(lasting_, time_for(reading.limit, reading.drain)) * growth_permille() / 1000;
      fall_permille_ = std::max(fall_permille_ / 2, fall_min_permille);
    } else {
      lasting_ -= lasting_ * fall_permille_ / 1000;
    }
    lasting_ = std::min(lasting_, most);
    restart();
  }
  [[nodiscard]] Nanos lasting() const noexcept { return std::max(lasting_, Nanos{0}); }  ///< D

 private:
  [[nodiscard]] std::int64_t growth_permille() const noexcept {
    return std::min(expected_.count * growth_more_permille / std::max<std::int64_t>(left_.count, 1),
                    growth_max_permille);
  }
  void restart() noexcept {
    span_ = {};
    left_ = expected_ = {};
  }
  // Ours, T. Low: at 20 Mbit/s one frame more or less decides. High: seconds until D is found.
  static constexpr Nanos period{50ms};
  // Ours. Low: rate is lost. High: what v_1 is wrong by passes for an idle link.
  static constexpr Gain full{980};
  // Ours, beyond what was missing, and at most in a step. Low: seconds until D is long enough.
  // High: delay that nothing asked for.
  static constexpr std::int64_t growth_more_permille = 1050, growth_max_permille = 2000;
  // Ours, of D in each T, at first and in the end. Low: needless delay during the first second; one
  // late visit costs delay to the file's end. High: D falls too low before that shows, and each
  // late visit costs rate.
  static constexpr std::int64_t fall_max_permille = 300, fall_min_permille = 5;
  // Ours. Low: a core's long nap hides what it cost. High: an outage passes for an idle link.
  static constexpr Nanos pause_min{50ms};

  Nanos lasting_{-1};  // below zero: not begun
  std::int64_t fall_permille_ = fall_max_permille;
  Instant at_{};
  Bytes drained_total_{};
  Nanos span_{0};
  Bytes left_{}, expected_{};
};

}  // namespace onehop::law
