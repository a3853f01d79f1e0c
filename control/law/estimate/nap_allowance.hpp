// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// NapAllowance: D, how long a short queue must last so that the link is never idle. The mean time
// between two visits of the engine core does not show it: now and then a core is late by more than
// a short queue holds. A visit that finds all gone which the last one left shows it. Each T, while
// data waits and this queue limits, m is what v_1 would have taken and did not, of these visits
// alone:
//
//   m > 0.02 v_1 T   D <- 1.05 v_1 T / (v_1 T - m), of what the queue lasted; at most twice
//   else             D falls by 30 % each T; half as fast after each time above, but never below
//                    0.5 %, which is 10 % a second
//
// It starts at its largest value: finding D from below would cost a short file too much time.
//
// What left in all of T is not compared with v_1. A queue as short as this one is metered by few
// aggregates, and a link whose rate changes is metered late: v_1 is wrong by more than what is
// sought.
//
// A driver that reports what has left later than the queue lasts hides that it ran dry, and D stays
// too short: use --target under for these.
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
    bool is_deciding = false;  ///< data waits, and this queue sets the rate and is held short
  };
  /// step takes each report once. `most` bounds D.
  void step(const Reading& reading, Nanos most) noexcept {
    const PathReport& path = reading.path;
    if (path.at == at_) return;
    const Nanos pause = path.at - at_;
    at_ = path.at;
    if (!reading.is_deciding || pause > pause_min || path.tx_step < Bytes{0}) {
      restart();
      return;
    }
    if (lasting_ < Nanos{0}) lasting_ = most;
    span_ += pause;
    const Bytes expected = reading.drain * path.tx_step_span;
    expected_ += expected;
    // A visit that left nothing behind tells nothing.
    const bool was_dry = path.tx_step_backlog > Bytes{0} && path.tx_step >= path.tx_step_backlog;
    if (was_dry) missing_ += std::max(expected - path.tx_step, Bytes{0});
    if (span_ < period) return;
    if (missing_ > expected_ * idle) {
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
    return std::min(expected_.count * growth_more_permille /
                        std::max<std::int64_t>((expected_ - missing_).count, 1),
                    growth_max_permille);
  }
  void restart() noexcept {
    span_ = {};
    missing_ = expected_ = {};
  }
  // Ours, T. Low: at 20 Mbit/s one frame more or less decides. High: seconds until D is found.
  static constexpr Nanos period{50ms};
  // Ours. Low: D is longer for what v_1 is wrong by in those visits. High: rate is lost.
  static constexpr Gain idle{20};
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
  Nanos span_{0};
  Bytes missing_{}, expected_{};
};

}  // namespace onehop::law
