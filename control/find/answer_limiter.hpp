// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// AnswerLimiter: how often questions are answered, whatever is asked. Pure but for the time that it
// is given; one thread.
//
// Whoever forges the sender of a question has the answer go to somebody else. So few leave in a
// second that this is no weapon, and as many are remembered as left in that second: no more.
#pragma once

#include <cstddef>
#include <deque>

#include "engine/base/system/address.hpp"
#include "engine/base/time.hpp"

namespace onehop::find {

class AnswerLimiter {
 public:
  /// Too low: a room full of people who all look at once is not answered. Too high: see above.
  static constexpr std::size_t per_asker_max = 10, total_max = 50;
  static constexpr Nanos window = 1s;

  /// take: this asker may be answered now, and it is counted. All of an IPv6 /64 are one asker.
  [[nodiscard]] bool take(IpAddress asker, Instant now);

 private:
  struct Answered {
    Instant at;
    IpAddress asker;
  };
  std::deque<Answered> answered_;  // within the window, oldest first
};

}  // namespace onehop::find
