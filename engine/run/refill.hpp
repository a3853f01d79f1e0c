// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// When the sending loop refills the lower queue next. Pure. Engine core only.
#pragma once

#include <algorithm>

#include "engine/base/path.hpp"
#include "engine/base/units.hpp"
#include "engine/protocol/pacer.hpp"

namespace onehop::run {

// Implementation constants.
// Shorter: timer wake-ups cost more than the frames they send.
inline constexpr Nanos refill_nap_min = 200us;
// Longer: the refill becomes coarse against the 8-ms target.
inline constexpr Nanos refill_nap_max = 4ms;
// While the rate is the limit. Longer: a growing rate is followed late.
inline constexpr Nanos refill_nap_rate_max = 500us;
// While a user's limit is the limit, a nap may last until this much may be sent: what 100 Mbit/s
// sends in refill_nap_rate_max, so that faster ones nap as without it. Less: wake-ups for which not
// one frame may leave; more: a burst that the slow link has to hold.
inline constexpr Bytes refill_nap_bytes{6'250};
// Refill when this part of the backlog limit has drained. Larger: what is left, now 3 ms of an 8-ms
// target, has to last when a turn comes late. Smaller: more wake-ups.
inline constexpr Gain refill_share{600};
// Below this part of the backlog limit the queue could run dry before the next turn: 2 ms of an
// 8-ms target. A link that takes more at one instant says so by backlog_low.
inline constexpr std::int64_t low_part = 4;

/// LowerQueue: what the loop sees of the queue below. Wire bytes.
struct LowerQueue {
  Bytes backlog{};  ///< our own bytes in it
  Bytes frame{};    ///< a full frame
  /// The port sees the queue that shapes the link, so `backlog` is kept below the grant's limit.
  bool has_back_pressure = false;
};

/// is_batch_worth: whether a batch may begin where there is room for `room` wire bytes. One of less
/// than `batch` waits for the next turn as long as the queue lasts: to the queues below a batch is
/// one packet, and a shaper or a driver takes a timer or an interrupt for each, however small. A
/// queue of less than what the link takes at once does not last: an aggregate that leaves short is
/// air lost. For new data: repairs are not to wait.
[[nodiscard]] inline bool is_batch_worth(const RateGrant& grant, const LowerQueue& queue,
                                         Bytes room, Bytes batch) noexcept {
  // Never more than what refill_at() waits for: else a limit of few batches is polled.
  const Bytes enough = std::min(batch, grant.backlog_max * refill_share);
  return room >= enough || !queue.has_back_pressure ||
         queue.backlog < std::max(grant.backlog_max / low_part, grant.backlog_low);
}

/// is_well_filled: the queue below lasts until refill_at(), so that reports may wait until then.
/// What they tell of (a loss, a buffer of the peer) is answered by frames that stand behind this
/// queue anyway, and each would wake an idle core.
[[nodiscard]] inline bool is_well_filled(const RateGrant& grant, const LowerQueue& queue) noexcept {
  return queue.has_back_pressure && queue.backlog >= grant.backlog_max * refill_share;
}

/// refill_at: the moment when a worthwhile part of the backlog limit will have drained, by the
/// granted rate. Where the rate is what holds us back, the queue has room all the time: then it is
/// the moment when that part may be sent again, but soon enough to notice that the law has found
/// out more: at the start each millisecond triples the rate.
[[nodiscard]] inline Instant refill_at(Instant now, const RateGrant& grant, protocol::Pacer& pacer,
                                       const LowerQueue& queue) noexcept {
  const Bytes quantum = std::max(grant.backlog_max * refill_share, queue.frame);
  Bytes excess = quantum;
  if (queue.has_back_pressure)
    excess = std::max(queue.backlog + quantum - grant.backlog_max, Bytes{0});
  Instant at = now + std::min(time_for(excess, grant.rate), refill_nap_max);
  if (pacer.allowance(now) < queue.frame) {
    const Nanos nap = grant.is_rate_final
                          ? std::max(time_for(refill_nap_bytes, grant.rate), refill_nap_rate_max)
                          : refill_nap_rate_max;
    at = std::max(at, std::min(pacer.ready_at(quantum), now + std::min(nap, refill_nap_max)));
  }
  if (grant.poll_interval > Nanos{0}) at = std::min(at, now + grant.poll_interval);
  return std::clamp(at, now + refill_nap_min, now + refill_nap_max);
}

}  // namespace onehop::run
