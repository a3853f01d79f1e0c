// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// RecentRate: the rate of a growing count over about the last second, and over about the last five
// for forecasts. Pure.
#pragma once

#include <cmath>
#include <cstdint>

#include "engine/base/units.hpp"

namespace onehop::transfer {

class RecentRate {
 public:
  /// add takes the count at `now`; a count that fell begins anew.
  void add(Instant now, std::uint64_t count) noexcept {
    if (!has_count_ || count < count_) {
      *this = {};
      has_count_ = true;
    } else if (now > at_) {
      const double seconds = std::chrono::duration<double>(now - at_).count();
      const double rate = static_cast<double>(count - count_) / seconds;
      fast_ = is_warm_ ? fast_ + (rate - fast_) * (1 - std::exp(-seconds / fast_seconds)) : rate;
      slow_ = is_warm_ ? slow_ + (rate - slow_) * (1 - std::exp(-seconds / slow_seconds)) : rate;
      is_warm_ = true;
    }
    at_ = now;
    count_ = count;
  }
  [[nodiscard]] BytesPerSecond now() const noexcept { return {static_cast<std::int64_t>(fast_)}; }
  /// trend_per_s is steadier: what an estimate of the time left divides by. Of any count, with its
  /// fractions.
  [[nodiscard]] double trend_per_s() const noexcept { return slow_; }

 private:
  // Time constants. Shorter: the digits cannot be read; longer: a link that changed shows late.
  static constexpr double fast_seconds = 0.5, slow_seconds = 5;
  bool has_count_ = false, is_warm_ = false;
  Instant at_{};
  std::uint64_t count_ = 0;
  double fast_ = 0, slow_ = 0;
};

}  // namespace onehop::transfer
