// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// HiddenQueue: whether an exact queue shows what the port has below it, or hides it.
//
//   port ──▶ [ exact queue ] ──▶ [ driver's own queue ] ──▶ link
//              always empty       all of our backlog
//
// mac80211 hands a frame on as soon as the driver takes it. A driver that takes all there is leaves
// the station's queue empty, whatever waits for the air. Such a reading says nothing of our
// backlog, and a law that took it for the backlog would believe that the link is never limited. The
// exact queue shows our bytes if a quarter of the port's are in it at any moment of 50 ms. Pure.
#pragma once

#include "control/law/estimate/queue_view.hpp"

namespace onehop::law {

class HiddenQueue {
 public:
  /// step corrects the view's least backlog where the exact queue hides it.
  void step(Instant now, Bytes frame, QueueView& view) noexcept {
    const bool has_backlog =
        view.has_push_back && view.is_exact && view.queue.occupancy >= frame * backlog_frames_min;
    const bool is_shown =
        view.backlog_least.count * 1000 >= view.queue.occupancy.count * shown_permille;
    if (has_backlog && is_shown) is_hidden_ = false;
    // A short backlog is no proof of either, and nor is the first reading.
    if (!has_backlog || is_shown || since_ == Instant{}) since_ = now;
    if (now - since_ >= span) is_hidden_ = true;
    if (is_hidden_ && view.has_push_back) view.backlog_least = view.queue.occupancy;
  }

 private:
  // Ours: several exchanges of any link, and some 25 readings. Low: readings between two aggregates
  // are the verdict. High: the start learns nothing of the link for so long.
  static constexpr Nanos span{50ms};
  // Ours. Low: a driver that is fed a little at a time passes for an exact queue. High: readings of
  // different moments pass for a hidden queue.
  static constexpr std::int64_t shown_permille = 250;

  bool is_hidden_ = false;
  Instant since_{};
};

}  // namespace onehop::law
