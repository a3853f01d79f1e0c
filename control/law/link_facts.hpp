// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// LinkFacts: what is known of the link besides the queues of our own port. Fact sources (qdisc,
// nl80211, ethtool, ns-3's MAC, the laboratory's model) fill it on the control thread; laws read it
// through LinkSample.
//
//   qdisc dump   ── lower queue                          ─┐
//   station dump ── phy_rate, mac counters, own airtime  ─┤
//   survey       ── channel airtime                      ─┼─▶ LinkFacts ─▶ laws
//   TXQ, MAC     ── exact queue, aggregate limit         ─┤
//   station list ── stations                             ─┘
//
// Rule: a fact that was not read is absent. It is never zero, never a default, and never the last
// value of a sensor that went away: the source of a fact sets `at` and `period`, and a law calls
// fresh() instead of reading the optional. A source does not touch what it could not read; the fact
// then grows old and expires by itself. Only the exact queue's capacity outlives its reading,
// because it is a length and not a state. Units: queues and rates in L2 (wire) bytes, like
// PathReport::tx_queue. Times on our monotonic clock.
#pragma once

#include <cstdint>
#include <optional>

#include "engine/base/telemetry.hpp"
#include "engine/base/units.hpp"

namespace onehop::law {

/// Fact: one reading with its time. `period` is the nominal distance between readings; zero marks
/// what does not change while the link is up (a negotiated limit), which never grows old.
template <class T>
struct Fact {
  T value{};
  Instant at{};
  Nanos period{0};

  /// A reading lives for two periods: one may come late, two missing ones mean that the sensor is
  /// gone.
  [[nodiscard]] constexpr bool is_valid(Instant now) const noexcept {
    return period == Nanos{0} || now - at <= period * 2;
  }
};

template <class T>
using MaybeFact = std::optional<Fact<T>>;

/// fresh gives the value of a fact that is there and not too old, else nullptr. The pointer is into
/// `fact`.
template <class T>
[[nodiscard]] constexpr const T* fresh(const MaybeFact<T>& fact, Instant now) noexcept {
  return fact && fact->is_valid(now) ? &fact->value : nullptr;
}

/// QueueSensor names the sensor of a queue, for traces and notices.
enum class QueueSensor : std::uint8_t {
  none,
  port,   ///< the port's own outstanding bytes (not a fact; named here because traces name it)
  qdisc,  ///< RTM_GETQDISC dump
  txq,    ///< mac80211's per-station queue, by nl80211
  mac,    ///< the MAC queue itself (ns-3)
  ring,   ///< a NIC's ring whose completions mean "sent"
  model,  ///< the laboratory's model of the link
};

/// QueueReading: one queue below our port, all flows together, as one sensor read it.
struct QueueReading {
  QueueTelemetry queue;  ///< `at` as the fact's; scope lower_queue; capacity 0 where unknown
  Bytes foreign{};       ///< of other flows, within queue.occupancy, as far as they can be
                         ///< distinguished
  QueueSensor sensor = QueueSensor::none;
};

/// ChannelAirtime: growing totals of the operating channel's survey. Each is absent where the
/// driver does not count it.
struct ChannelAirtime {
  Nanos active_total{0};            ///< time the radio was on this channel
  std::optional<Nanos> busy_total;  ///< ... and it was busy: our own frames, others' frames, noise
};

/// OwnAirtime: growing totals of the air that our link to the peer took, both directions.
struct OwnAirtime {
  std::optional<Nanos> tx_total;
  std::optional<Nanos> rx_total;
};

/// MacCounters: growing totals of the peer's station entry. Frames are as the MAC counts them.
struct MacCounters {
  std::uint64_t tx_frames_total = 0;
  std::uint64_t tx_retries_total = 0;
  std::uint64_t tx_failed_total = 0;  ///< given up after the last retry
};

/// HostCounters: growing totals of this host's own network stack, all CPUs and interfaces
/// (softnet). A frame lost there is no fault of the link.
struct HostCounters {
  std::uint64_t dropped_total = 0;   ///< a CPU's backlog was full
  std::uint64_t squeezed_total = 0;  ///< a round of receiving had no budget left, but frames
};

enum class Medium : std::uint8_t { unknown, wired, wifi };

struct LinkFacts {
  // RateLoop makes refused_total of both queues count from the first reading on.

  /// The queue from which the link itself takes, with no hidden queue below. Its drained_total
  /// grows when the link has taken a frame for good (Block Ack, DMA done), not when a driver copied
  /// it.
  MaybeFact<QueueReading> exact_queue;
  /// The first queue below our port, with hidden queues below it (a qdisc). RateLoop fills in
  /// `foreign` and takes the fact away when it is 100 ms old.
  MaybeFact<QueueReading> lower_queue;
  /// Transmit rate of the physical layer now (nl80211 tx bitrate, ethtool speed).
  MaybeFact<BytesPerSecond> phy_rate;
  MaybeFact<ChannelAirtime> channel;
  MaybeFact<OwnAirtime> own_airtime;
  MaybeFact<MacCounters> mac;
  /// Stations that are active on the channel, ourselves included, as an access point or group owner
  /// counts them (more than 5 % of the air or 1 Mbit/s in the last second). Absent for a client,
  /// which cannot count; 1 on a private channel.
  MaybeFact<std::int32_t> stations;
  MaybeFact<Bytes> aggregate_max;  ///< negotiated limit of one A-MPDU
  MaybeFact<Nanos> exchange;  ///< one frame exchange: wait for the medium, data, acknowledgement
  MaybeFact<HostCounters> host;
  Medium medium = Medium::unknown;
};

}  // namespace onehop::law
