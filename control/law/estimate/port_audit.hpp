// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// PortAudit: whether a port's counters add up to what we handed it. What a queue took in has left
// it or is its backlog. A port that counts otherwise by a quarter cannot be trusted with a queue of
// one aggregate; safe-range's 8 ms forgive it. Pure.
#pragma once

#include <cstdlib>
#include <optional>

#include "control/law/estimate/queue_view.hpp"

namespace onehop::law {

class PortAudit {
 public:
  /// step returns whether the port is credible. A queue that is not the port's always is.
  [[nodiscard]] bool step(const PathReport& path, const QueueView& view) noexcept {
    if (!view.has_push_back) {
      begun_at_.reset();
      return is_credible_ = true;
    }
    const Bytes handed = handed_total(path);
    const Bytes counted = view.queue.drained_total + view.queue.occupancy;
    const Bytes ours = handed - handed_, theirs = counted - counted_;
    // Frames and not time alone: a drain that is reported too small slows us down before the span
    // is over.
    if (begun_at_ && (view.queue.at - *begun_at_ < span || ours < path.wire_per_frame * frames_min))
      return is_credible_;
    if (begun_at_)
      is_credible_ = std::abs((ours - theirs).count) * 1000 <= ours.count * difference_permille;
    handed_ = handed;
    counted_ = counted;
    begun_at_ = view.queue.at;
    return is_credible_;
  }

 private:
  // Ours. Low: a burst between two readings, or rounding, is the difference. High: a port that lies
  // is believed for longer, and by more.
  static constexpr Nanos span{50ms};
  static constexpr std::int64_t difference_permille = 250;  // ours; low and high: as above
  static constexpr std::int64_t frames_min = 32;            // ours; low and high: as above

  bool is_credible_ = true;
  Bytes handed_{}, counted_{};
  std::optional<Instant> begun_at_;
};

}  // namespace onehop::law
