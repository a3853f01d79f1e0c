// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Rtt: the smoothed round-trip time of PING and PONG. //= RFC 6298 §2 (alpha = 1/8)
#pragma once

#include "engine/base/units.hpp"

namespace onehop::transfer {

class Rtt {
 public:
  static constexpr Nanos sample_max = 10s;  // longer says nothing of the path now
  /// add takes one sample with the peer's hold time already taken off; returns false for an absurd one.
  bool add(Nanos sample) noexcept {
    if (sample <= 0ns || sample > sample_max) return false;
    newest_ = sample;
    srtt_ = srtt_ == 0ns ? sample : srtt_ + (sample - srtt_) / 8;
    return true;
  }
  [[nodiscard]] Nanos srtt() const noexcept { return srtt_; }  ///< 0: no sample
  [[nodiscard]] Nanos newest() const noexcept { return newest_; }

 private:
  Nanos srtt_{0}, newest_{0};
};

}  // namespace onehop::transfer
