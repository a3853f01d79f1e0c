// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// AggregateRoom: r, the room above one aggregate in the backlog limit a + r L.
//
// The queue is a saw whose tooth is an aggregate, and the next one must be whole when the medium is
// won. r = 1 is enough for a core that comes at any moment; a core that comes when the link has
// drained needs far less. Per window of 32 readings of AggregateMeter:
//
//   aggregates at least 98.5 % full   r falls by 0.02, by 0.2 from the second such window on
//   ... and one took all there was    r rises by 0.02 instead
//   shorter, at the backlog limit     r rises by 0.1
//
//   r in 0 .. 1.75;  0 .. 0.75 while the MAC repeats p > 2 % of its frames: its window, which waits
//   for them, is then what keeps aggregates short;  at least 0.25 beside others
//
// Beside others the bytes behind an aggregate keep our place: otherwise a router that serves its
// stations in order of arrival would answer another station's upload before each aggregate of ours.
// More room carries more there and waits longer: column "router" of configs/ns3/shared-air.toml.
//
// Source: measured in ns-3 (wdtcp-delay-load in configs/ns3): eight greedy pairs wait longer
// with more room, and carry no more. Pure; wire bytes.
#pragma once

#include <algorithm>

#include "control/law/estimate/aggregate_meter.hpp"
#include "control/law/link_facts.hpp"

namespace onehop::law {

class AggregateRoom {
 public:
  struct Reading {
    Bytes backlog{}, backlog_max{};  ///< q and its limit
    Bytes limit{};                   ///< L
    bool has_others = false;         ///< on the medium
  };
  /// step takes `mac` as null where the MAC counts nothing.
  void step(const AggregateMeter& aggregates, const Reading& reading,
            const MacCounters* mac) noexcept {
    highest_ = std::max(highest_, reading.backlog);
    if (aggregates.windows_total() == windows_seen_) return;
    windows_seen_ = aggregates.windows_total();
    // Where the queue never came near its limit something else keeps the aggregates short, and more
    // room would not help.
    const bool has_reached_limit = highest_ * reached_gain >= reading.backlog_max;
    highest_ = {};
    const double least = reading.has_others ? room_beside : 0;
    const double most = is_repeating(mac) ? room_max_repeating : room_max;
    if (aggregates.mean_burst() <= Bytes{0}) return;
    const bool is_full = aggregates.is_full(reading.limit);
    full_windows_ = is_full && !aggregates.has_run_dry() ? full_windows_ + 1 : 0;
    if (is_full) {
      const double fall = full_windows_ > full_windows_sure ? room_fall_fast : room_fall;
      room_ = std::clamp(room_ + (aggregates.has_run_dry() ? room_fall : -fall), least, most);
    } else if (has_reached_limit) {
      room_ = std::min(room_ + room_rise, most);
    }
  }
  [[nodiscard]] double room() const noexcept { return room_; }  ///< r, in aggregates

 private:
  // Measured in ns-3, see above. Low: aggregates leave short among many senders. High: delay, for
  // nothing.
  static constexpr double room_fall = 0.02, room_fall_fast = 0.2, room_rise = 0.1, room_max = 1.75;
  // Measured in ns-3. Low: short aggregates at 10 % loss. High: more room buys 0.6 % of goodput
  // there, and half as much delay again.
  static constexpr double room_max_repeating = 0.75, repeats_max = 0.02;
  // Derived: a batch of the core, which fills what is above an aggregate in whole batches alone.
  // Low: nothing is left behind. High: delay, for nothing up to a second aggregate.
  static constexpr double room_beside = 0.25;
  // Ours. Low: room falls fast after one lucky window. High: eight greedy senders wait longer.
  static constexpr std::int32_t full_windows_sure = 1;
  // Ours. Low: room grows although a cap or the source keeps the queue short. High: it never grows
  // under a core that naps.
  static constexpr Gain reached_gain{1300};

  [[nodiscard]] bool is_repeating(const MacCounters* mac) noexcept {
    if (mac == nullptr) return false;
    const std::uint64_t frames = mac->tx_frames_total - mac_.tx_frames_total,
                        retries = mac->tx_retries_total - mac_.tx_retries_total;
    mac_ = *mac;
    if (frames > 0)
      repeats_ += (static_cast<double>(retries) / static_cast<double>(frames) - repeats_) / 8;
    return repeats_ > repeats_max;
  }

  double room_ = 1;     // r
  double repeats_ = 0;  // p
  MacCounters mac_{};
  Bytes highest_{};  // of the backlog, in this window
  std::int32_t full_windows_ = 0;
  std::uint64_t windows_seen_ = 0;
};

}  // namespace onehop::law
