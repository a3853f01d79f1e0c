// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// ProgressFloor: whether a session moves at all. It must bring so many bytes in each window, however they are spread; a session
// that has just begun has one window to begin in. Pure; the caller gives the time.
#pragma once

#include <chrono>
#include <cstdint>

#include "engine/base/units.hpp"

namespace onehop::plane {

class ProgressFloor {
 public:
  using Clock = std::chrono::steady_clock;
  ProgressFloor(std::uint64_t floor_bytes, Nanos window, Clock::time_point now)
      : floor_bytes_{floor_bytes}, window_{window}, reached_at_{now} {}

  /// note takes what came in all. Less than before: counting began anew, which is no progress.
  void note(std::uint64_t bytes_total, Clock::time_point now) noexcept {
    if (bytes_total < mark_bytes_) mark_bytes_ = bytes_total;
    if (bytes_total - mark_bytes_ < floor_bytes_) return;
    mark_bytes_ = bytes_total;
    reached_at_ = now;
  }
  /// excuse: that nothing comes is not the sender's doing. The window begins anew.
  void excuse(Clock::time_point now) noexcept { reached_at_ = now; }
  [[nodiscard]] bool is_below(Clock::time_point now) const noexcept { return now - reached_at_ >= window_; }

 private:
  const std::uint64_t floor_bytes_;
  const Nanos window_;
  std::uint64_t mark_bytes_ = 0;
  Clock::time_point reached_at_;
};

}  // namespace onehop::plane
