// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// DelayBound: the most that may be sent where no queue can be read, by its delay and by the peer's
// arrivals.
//
//   D = rtt - least rtt             the queue, in time, wherever it is
//   C = arrivals over 50 ms         kept while the rate is not used: a source that pauses says
//                                   nothing of the link
//
//   the peer has reported nothing   r <= the start rate
//   D was never above D_target      r <= 2 x the arrival rate of the last round trip
//   since then                      r <= C (1 + (D_target - D) / T), at least 0.75 C
//
// While there is a queue, C is the link's rate whatever we send, so D' = (D_target - D) / T: D
// settles at D_target, and the link never runs dry. T must be longer than a PING's distance and the
// 50 ms together, or D swings. The least round trip of the session is kept for good: one hop does
// not grow longer, and our own queue, which is always there, would become the least in any window.
// Pure.
#pragma once

#include <optional>

#include "engine/base/units.hpp"

namespace onehop::law {

struct DelayReading {
  Nanos rtt{0};                   ///< newest sample; 0: none
  Bytes arrived_total{};          ///< payload at the peer
  Instant arrived_at{};           ///< on the peer's clock; epoch: nothing was reported
  BytesPerSecond arrival_rate{};  ///< of the last round trip; 0: unknown
  BytesPerSecond rate_start{};    ///< for as long as nothing was measured
  bool is_used = false;           ///< what was allowed was sent
  bool is_outage = false;         ///< what is reported now is of an outage (OutageWatch)
};

class DelayBound {
 public:
  /// step returns the bound, or nothing where the delay is not known.
  [[nodiscard]] std::optional<BytesPerSecond> step(const DelayReading& reading) noexcept;

 private:
  void follow_arrivals(const DelayReading& reading) noexcept;

  Nanos rtt_min_{0};
  BytesPerSecond arrival_{};  // C; 0: not measured
  Bytes arrived_{};
  Instant arrived_at_{};
  bool was_used_ = false;   // throughout the window
  bool had_queue_ = false;  // D was above D_target
};

}  // namespace onehop::law
