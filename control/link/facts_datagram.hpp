// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// The datagram by which a model of a link publishes the link's facts to `onehop` on the same
// machine. Pure: bytes in, values out.
//
// Version 2, integers big endian:
//
//   0  magic "OHLF"    4  version u8 = 2    5  medium u8
//   6  present u16: bit i, the i-th fact below follows
//   8  the facts that are present, each: at u64 (CLOCK_MONOTONIC in ns), period u32 (us; 0: never
//      grows old), then
//        0 exact_queue    occupancy, drained_total, capacity, refused_total, foreign u64
//        1 phy_rate       bytes per second u64
//        2 channel        active_total u64 (ns), flags u8 (1: busy follows), busy_total u64
//        3 own_airtime    flags u8 (1: tx, 2: rx follow), tx_total u64, rx_total u64
//        4 mac            tx_frames_total, tx_retries_total, tx_failed_total u64
//        5 stations       u32
//        6 aggregate_max  u64
//        7 exchange       u64 (ns)
//
// A datagram is accepted whole or not at all: an unknown version, medium, bit or flag, a value out
// of bounds, or a wrong length refuse it. There is one encoding of each content. It does not carry
// the queue's sensor: the receiver of a model's datagram knows that it is a model.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "control/law/link_facts.hpp"

namespace onehop::link {

/// each_carried_fact calls f(pointer to member of LinkFacts) for each fact that a datagram carries,
/// in the order of the bits: all but `host` and `lower_queue`, which are not the link's.
template <class F>
constexpr void each_carried_fact(F&& f) {
  f(&law::LinkFacts::exact_queue), f(&law::LinkFacts::phy_rate), f(&law::LinkFacts::channel);
  f(&law::LinkFacts::own_airtime), f(&law::LinkFacts::mac), f(&law::LinkFacts::stations);
  f(&law::LinkFacts::aggregate_max), f(&law::LinkFacts::exchange);
}
inline constexpr unsigned carried_facts = 8;

inline constexpr std::size_t facts_datagram_bytes_max = 352;
/// Specification constants: bounds of what is accepted. Larger is nonsense: 10 TB/s, 65,536
/// stations, a second of frame exchange, and 10 s between two readings.
inline constexpr std::uint64_t facts_rate_max = 10'000'000'000'000, facts_stations_max = 65'536;
inline constexpr Nanos facts_exchange_max = 1s, facts_period_max = 10s;

/// encode_facts returns the bytes written: never more than fit. Values are clamped to the bounds.
[[nodiscard]] std::size_t encode_facts(const law::LinkFacts& facts,
                                       std::span<std::byte, facts_datagram_bytes_max> out) noexcept;
[[nodiscard]] std::optional<law::LinkFacts> decode_facts(std::span<const std::byte> bytes) noexcept;

}  // namespace onehop::link
