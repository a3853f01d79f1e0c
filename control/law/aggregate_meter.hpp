// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// AggregateMeter: L, the bytes that the link takes at one instant (an A-MPDU), from the lower queue's readings.
//
// Between two transmissions nothing leaves the queue, and at the end of one everything it carried leaves at once. So over
// stretches of length t the drained bytes are k L or (k+1) L, and less the smooth part v t they jump by L from stretch to
// stretch. L is the typical jump: the median of the large ones among 32. A stretch shorter than a transmission needs no
// such argument: what left in it left at once, and the largest of them is L.
//
//   L_sample <- median |e_i - e_{i-1}| of those above a quarter of the largest,  e = drained - v t
//   L        <- L + (L_sample - L)/2 upwards, /8 downwards
//
// A limit that was negotiated is better than any estimate and replaces it; a station's air time limit bounds both.
// Called by laws with each new reading; reads no clock.
#pragma once

#include <array>
#include <cstddef>

#include "engine/base/units.hpp"

namespace onehop::law {

struct AggregateParams {
  Bytes start{64 * 1024};       ///< one full HT aggregate; also what many drivers stay at
  Bytes least{16 * 1024};       ///< below it a queue is a few frames and every nap of the core runs it dry
  Bytes most{4 * 1024 * 1024};  ///< HE's limit
  Nanos instant{100us};         ///< shorter than the shortest frame exchange (about 200 us with its overhead)
};

class AggregateMeter {
 public:
  explicit AggregateMeter(const AggregateParams& params) noexcept : params_{params}, learnt_{params.start} {}

  /// add takes one reading; `drain` is the smooth rate v, zero while it is unknown.
  void add(Instant at, Bytes drained_total, Bytes occupancy, BytesPerSecond drain) noexcept;

  /// limit is L: negotiated where `negotiated` says so, else learnt, and never more than 5.484 ms of air at `drain`.
  [[nodiscard]] Bytes limit(const Bytes* negotiated, BytesPerSecond drain) const noexcept;
  [[nodiscard]] Bytes learnt() const noexcept { return learnt_; }

 private:
  static constexpr std::size_t jumps_max = 32;
  void learn(Bytes sample, bool may_lower) noexcept;
  void close_window(BytesPerSecond drain) noexcept;

  AggregateParams params_;
  Bytes learnt_;
  std::array<std::int64_t, jumps_max> jumps_{};
  std::size_t jumps_count_ = 0;
  Nanos span_{0};                // of the stretches in this window
  Bytes instant_largest_{};
  std::size_t instant_count_ = 0;
  Instant at_{};
  Bytes drained_total_{};
  Bytes occupancy_{};
  Bytes excess_{};
  bool has_reading_ = false;
  bool has_excess_ = false;
};

}  // namespace onehop::law
