// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// RingBacklog: whether the receive ring holds frames that stay there. A burst that one turn reads
// is no backlog.
//
//   windows of report_min at least:   │ never empty │ never empty │ was empty │
//   is_backlogged                                   └──── true ───┘
//
// Pure. Called by the engine core through ReceiverLoop.
#pragma once

#include "engine/base/units.hpp"
#include "engine/transfer/reports.hpp"

namespace onehop::run {

class RingBacklog {
 public:
  /// on_turn: a turn has read the ring. `is_drained`: until it was empty.
  void on_turn(Instant now, bool is_drained) noexcept {
    was_empty_ = was_empty_ || is_drained;
    // Reports for the credit are too close together: between two the ring may hold one burst.
    is_window_over_ = now - window_at_ >= transfer::report_min;
    if (is_window_over_) was_backlogged_ = !was_empty_;
  }
  /// is_backlogged in this window so far and in the whole of the one before.
  [[nodiscard]] bool is_backlogged() const noexcept { return was_backlogged_ && !was_empty_; }
  /// on_report: a report goes out; a window that is over ends with it.
  void on_report(Instant now) noexcept {
    if (!is_window_over_) return;
    was_empty_ = false;
    window_at_ = now;
  }

 private:
  Instant window_at_{};
  bool was_empty_ = false, was_backlogged_ = false, is_window_over_ = false;
};

}  // namespace onehop::run
