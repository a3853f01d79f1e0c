// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// AnswerLimiter limits how often questions are answered, whatever is asked. Pure; the caller gives
// the time; one thread.
//
// A forged sender address redirects an answer to a victim. So the number of answers per second is
// too small for an attack, and only the askers of the last second are remembered.
#pragma once

#include <cstddef>
#include <deque>

#include "engine/base/system/address.hpp"
#include "engine/base/time.hpp"

namespace onehop::find {

class AnswerLimiter {
 public:
  /// Too low: many users who search at once get no answer. Too high: see above.
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
