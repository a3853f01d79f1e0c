// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// StarvationProbe: g and m, for a queue that runs dry although data waits. Once per T:
//
//   q < a/4, and 7/10 of what was granted was sent   g <- min(1.25 g, 4)    v_1 was too small
//   likewise, and g is 4                             m <- min(1.25 m, 4)    the band is too small
//   else, q >= a                                     g <- max(0.9 g, 1)
//   else                                             m falls by 2 % a second, down to 1
//
// g multiplies v_1: it understates at a start, or where a counter lies, and v_1 + v_1/2 would be a
// fixed point below the link. m multiplies a and b: the core naps, or the link has long gaps. Pure.
#pragma once

#include <algorithm>

#include "engine/base/units.hpp"

namespace onehop::law {

class StarvationProbe {
 public:
  struct Reading {
    Instant at{};
    Bytes sent_total{};
    BytesPerSecond granted{};  ///< in the step before
    bool is_empty = false;     ///< q < a/4 with data waiting
    bool is_above = false;     ///< q >= a
  };
  void begin(Instant at, Bytes sent_total) noexcept {
    at_ = at;
    sent_ = sent_total;
  }
  void reset() noexcept { growth_ = margin_ = 1; }
  void step(const Reading& reading, Nanos time_constant) noexcept {
    const Nanos span = reading.at - at_;
    if (span < time_constant) return;
    const BytesPerSecond injection = (reading.sent_total - sent_) / span;
    begin(reading.at, reading.sent_total);
    if (reading.is_empty && injection >= reading.granted * used) {
      growth_ = std::min(growth_ * growth_step, growth_max);
      if (growth_ >= growth_max) margin_ = std::min(margin_ * margin_step, margin_max);
      return;
    }
    if (reading.is_above) growth_ = std::max(growth_ * growth_decay, 1.0);
    const double decay = 1.0 - (1.0 - margin_decay) * static_cast<double>(span.count()) /
                                   static_cast<double>(margin_relax.count());
    margin_ = std::max(margin_ * decay, 1.0);
  }
  [[nodiscard]] double growth() const noexcept { return growth_; }  ///< g
  [[nodiscard]] double margin() const noexcept { return margin_; }  ///< m

 private:
  // Ours. Low: a counter that lies holds the rate down for long. High: a late core's dry queue
  // multiplies the rate.
  static constexpr double growth_step = 1.25, growth_max = 4.0, growth_decay = 0.9;
  // Ours. Low: a core that naps runs the queue dry for seconds. High: one starved second is paid
  // for in delay.
  static constexpr double margin_step = 1.25, margin_max = 4.0, margin_decay = 0.98;
  // Ours. Low: m is gone before the next long nap. High: delay for the rest of the file.
  static constexpr Nanos margin_relax{1s};
  // Ours, of what was granted. Low: a source that limits us makes g grow. High: a pacer's rounding
  // keeps it from growing.
  static constexpr Gain used{700};

  double growth_ = 1, margin_ = 1;
  Instant at_{};
  Bytes sent_{};
};

}  // namespace onehop::law
