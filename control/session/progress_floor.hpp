// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// ProgressFloor: whether a session makes progress. In each window it must bring floor_bytes,
// however they are spread; a new session has one window to start. Pure; the caller gives the time.
#pragma once

#include <cstdint>

#include "engine/base/units.hpp"

namespace onehop::session {

class ProgressFloor {
 public:
  ProgressFloor(std::uint64_t floor_bytes, Nanos window, Instant now)
      : floor_bytes_{floor_bytes}, window_{window}, reached_at_{now} {}

  /// note takes the total received. If it is less than before, counting restarted: no progress.
  void note(std::uint64_t bytes_total, Instant now) noexcept {
    if (bytes_total < mark_bytes_) mark_bytes_ = bytes_total;
    if (bytes_total - mark_bytes_ < floor_bytes_) return;
    mark_bytes_ = bytes_total;
    reached_at_ = now;
  }
  /// excuse: the lack of data is not the sender's fault. The window starts again.
  void excuse(Instant now) noexcept { reached_at_ = now; }
  [[nodiscard]] bool is_below(Instant now) const noexcept { return now - reached_at_ >= window_; }

 private:
  const std::uint64_t floor_bytes_;
  const Nanos window_;
  std::uint64_t mark_bytes_ = 0;
  Instant reached_at_;
};

}  // namespace onehop::session
