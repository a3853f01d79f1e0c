// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Tally: what schedules came to, summed. Plain data, so that a worker process can keep it in memory
// that its parent reads.
#pragma once

#include <array>
#include <cstdint>
#include <type_traits>

#include "engine/base/histogram.hpp"
#include "tools/labs/stress/schedule.hpp"

namespace onehop::stress {

struct Tally {
  std::uint64_t schedules = 0, schedules_with_all = 0, events = 0;
  std::array<std::uint64_t, faults> schedules_with{};
  std::array<std::uint64_t, faults> events_of{};
  std::uint64_t virtual_us = 0;
  std::uint64_t bytes = 0, retransmitted_bytes = 0, frames = 0;
  // While data could flow: bytes of the file in each buffer, one count per microsecond.
  LogLinearHistogram tx_queue, rx_ring, app_buffer;
  std::uint64_t below_us = 0, inside_us = 0,
                above_us = 0;      ///< of the safe range of the lower queue
  std::uint64_t underflow_us = 0;  ///< data waits and the lower queue is empty
  std::uint64_t tx_refused_frames = 0, rx_refused_frames = 0;
  LogLinearHistogram recovery_us;  ///< from the end of the faults until 90 % of the link's rate
  std::uint64_t unrecovered = 0;   ///< ended before it was back there

  void merge(const Tally& other) noexcept {
    schedules += other.schedules;
    schedules_with_all += other.schedules_with_all;
    events += other.events;
    for (std::size_t i = 0; i < faults; ++i) {
      schedules_with[i] += other.schedules_with[i];
      events_of[i] += other.events_of[i];
    }
    virtual_us += other.virtual_us;
    bytes += other.bytes;
    retransmitted_bytes += other.retransmitted_bytes;
    frames += other.frames;
    tx_queue.merge(other.tx_queue);
    rx_ring.merge(other.rx_ring);
    app_buffer.merge(other.app_buffer);
    below_us += other.below_us;
    inside_us += other.inside_us;
    above_us += other.above_us;
    underflow_us += other.underflow_us;
    tx_refused_frames += other.tx_refused_frames;
    rx_refused_frames += other.rx_refused_frames;
    recovery_us.merge(other.recovery_us);
    unrecovered += other.unrecovered;
  }
};
static_assert(std::is_trivially_copyable_v<Tally>);

}  // namespace onehop::stress
