// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// PollBudget: when a sensor may be read again. A reading that costs much is taken less often, so
// that no sensor takes more than 2 % of the control thread: a station dump is 20 us if mac80211
// answers and milliseconds if the driver asks its firmware. Owned by a source; control thread only.
#pragma once

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

#include "engine/base/time.hpp"

namespace onehop::link {

class PollBudget {
 public:
  /// Implementation constants. Share of time: one part in 50. Too low a divisor: the control thread
  /// does little else. Too high: a slow driver's facts are old when they come. Never rarer than
  /// once a second, or facts would be useless.
  static constexpr std::int64_t cost_divisor = 50;
  static constexpr Nanos period_max = 1s;

  /// `stopwatch` measures what a reading costs; a test gives one of its own. What is decided with a
  /// reading's age is decided with the `now` that a source is given.
  explicit PollBudget(Nanos period_min, std::function<Instant()> stopwatch = monotonic_now)
      : period_min_{period_min}, stopwatch_{std::move(stopwatch)} {}

  /// run reads the sensor by `f`, if that is due, and learns what it cost. Returns whether it did.
  template <class F>
  bool run(Instant now, F&& f) {
    if (read_at_ && now - *read_at_ < period_) return false;
    read_at_ = now;
    began_ = stopwatch_();
    f();
    cost_ = cost();
    period_ = period_at(cost_);
    began_.reset();
    return true;
  }

  /// period is how far away the next reading is: what goes into Fact::period. Within a reading, by
  /// what it has cost until now, or its facts would be dropped before the next one comes.
  [[nodiscard]] Nanos period() const { return began_ ? period_at(cost()) : period_; }

 private:
  // One slow reading (a lock held by others) is not the sensor's price: an average of eight, from
  // the first reading on.
  [[nodiscard]] Nanos cost() const {
    const Nanos last = stopwatch_() - *began_;
    return cost_ == Nanos{0} ? last : cost_ + (last - cost_) / 8;
  }
  [[nodiscard]] Nanos period_at(Nanos cost) const noexcept {
    return std::clamp(cost * cost_divisor, period_min_, std::max(period_max, period_min_));
  }

  Nanos period_min_;
  Nanos period_ = period_min_;
  Nanos cost_{0};
  std::optional<Instant> read_at_, began_;  // began_: of the reading that is under way
  std::function<Instant()> stopwatch_;
};

}  // namespace onehop::link
