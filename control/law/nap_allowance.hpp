// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// NapAllowance: D, for how long a short queue has to last. The mean time between two visits of the
// engine core says nothing of the longest: on a busy machine a core is now and then late by more
// than a short queue holds.
//
//   a visit finds dry what the last one had filled   D <- 1.15 of what that queue lasted
//   else                                             D falls by 10 % a second
//
// Only a queue that was filled to its limit tells: a lower one ran dry for want of rate or of data.
// Pure; bytes as the report counts them (wire).
#pragma once

#include <algorithm>

#include "engine/base/path.hpp"

namespace onehop::law {

class NapAllowance {
 public:
  /// step takes each report once. `limit`: the backlog limit that the last visit filled up to;
  /// `drain`: what the queue's consumer takes; `most`: D's bound.
  void step(const PathReport& path, Bytes limit, BytesPerSecond drain, Nanos most) noexcept {
    if (path.at == at_ || drain <= BytesPerSecond{0}) return;
    const Nanos span = at_ == Instant{} ? Nanos{0} : std::min<Nanos>(path.at - at_, relax);
    at_ = path.at;
    const Bytes stood = path.tx_step_backlog;
    const bool was_full = stood > Bytes{0} && stood * full_part >= limit * (full_part - 1);
    if (was_full && path.tx_step >= stood && path.offered > Bytes{0})
      lasting_ = std::max(lasting_, time_for(stood, drain) * growth_permille / 1000);
    else
      lasting_ -= lasting_ / 1000 * (span * decay_permille / relax);
    lasting_ = std::min(lasting_, most);
  }
  [[nodiscard]] Nanos lasting() const noexcept { return lasting_; }  ///< D; 0: no queue ran dry

 private:
  // Ours. Low: many dry visits until D is long enough. High: delay that nothing asked for.
  static constexpr std::int64_t growth_permille = 1150;
  // Ours, of D in a second. Low: one late visit is paid for to the file's end. High: each late
  // visit costs rate.
  static constexpr std::int64_t decay_permille = 100;
  // Ours: the second of the above, and the longest pause that it falls in. Low and high: as above.
  static constexpr Nanos relax{1s};
  // Ours: full to a quarter. Low: a queue without data passes for a full one. High: a batch that
  // waits for room hides each dry visit.
  static constexpr std::int64_t full_part = 4;

  Nanos lasting_{0};
  Instant at_{};
};

}  // namespace onehop::law
