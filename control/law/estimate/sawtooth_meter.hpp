// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// SawtoothMeter: how the engine core's visits move its lower queue. The core refills up to the
// backlog limit once per wake-up, so the queue is a saw of height S = P v_1 below that limit, and a
// limit of less than S runs dry. Pure; bytes as the caller counts them.
#pragma once

#include <algorithm>
#include <cstdint>

#include "engine/base/path.hpp"

namespace onehop::law {

class SawtoothMeter {
 public:
  /// add takes the report that a new reading came with; `drained` is what left since the last one.
  void add(const PathReport& path, Bytes drained) noexcept {
    if (path.at == at_) return;
    const std::uint64_t wakeups = path.counters.wakeups_total - wakeups_total_;
    const std::uint64_t turns = path.counters.turns_total - turns_total_;
    const Nanos span = path.at - at_;
    const bool is_usable =
        has_reading_ && span > Nanos{0} && span < report_gap_max && drained > Bytes{0};
    wakeups_total_ = path.counters.wakeups_total;
    turns_total_ = path.counters.turns_total;
    at_ = path.at;
    has_reading_ = true;
    if (!is_usable) return;
    // A core that never waits has no wake-ups; then each turn is a visit.
    const auto visits = static_cast<std::int64_t>(
        std::clamp<std::uint64_t>(wakeups > 0 ? wakeups : turns, 1, 1'000'000));
    amplitude_ += (drained / visits - amplitude_) / 8;
    period_ += (span / visits - period_) / 8;
  }
  [[nodiscard]] Bytes amplitude() const noexcept { return amplitude_; }  ///< S
  [[nodiscard]] Nanos period() const noexcept { return period_; }        ///< P

 private:
  // Ours. Low: slow cores have no saw. High: a core that was away passes for a slow one.
  static constexpr Nanos report_gap_max{20ms};

  Bytes amplitude_{};
  Nanos period_{1ms};
  std::uint64_t turns_total_ = 0, wakeups_total_ = 0;
  Instant at_{};
  bool has_reading_ = false;
};

}  // namespace onehop::law
