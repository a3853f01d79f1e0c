// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// PhyMode: how long frames of 802.11ac and 802.11ax last on the air. Pure.
//
//   D = preamble + t_symbol * ceil((16 + 8 * psdu_bytes) / n_dbps)
//                                   16: SERVICE; LDPC has no tail bits
//   R = n_dbps / t_symbol
//
//          preamble in us, 2 streams
//   11ac   20 legacy + 8 VHT-SIG-A + 4 VHT-STF + 4/LTF + 4 VHT-SIG-B
//   11ax   20 legacy + 4 RL-SIG + 8 HE-SIG-A + 4 HE-STF + 8/LTF
//
//          t_symbol            subcarriers
//   11ac   3.6 us (GI 0.4)     52, 108, 234, 468
//   11ax   13.6 us (GI 0.8)    234, 468, 980, 1960
//
// Subcarriers are those that carry data, of 20, 40, 80 and 160 MHz.
//
// Source: IEEE Std 802.11-2020 clause 21 (VHT) and 802.11ax-2021 clause 27 (HE). An HE-LTF
// lasts 7.2 us with the shorter guard interval; it is counted as 8 us, as ns-3 3.37 does, with
// whose results the lab is compared.
#pragma once

#include <cstdint>

#include "engine/base/units.hpp"

namespace onehop::lab::air {

enum class Standard : std::uint8_t { ac, ax };

struct PhyMode {
  Standard standard = Standard::ax;
  int width_mhz = 80;  ///< 20, 40, 80 or 160
  int mcs = 11;        ///< up to 9 (11ac), 11 (11ax)
  int streams = 2;     ///< 1 or 2
};

[[nodiscard]] constexpr int mcs_max(Standard standard) noexcept {
  return standard == Standard::ac ? 9 : 11;
}

/// Specification constants: OFDM in the 5 GHz band and the best-effort access category.
inline constexpr Nanos slot_time = 9us, sifs = 16us, aifs = sifs + 3 * slot_time;
inline constexpr int cw_min = 15, cw_max = 1023;
inline constexpr Nanos ppdu_time_max = 5484us;

/// data_bits_per_symbol is n_dbps above.
[[nodiscard]] std::int64_t data_bits_per_symbol(const PhyMode& mode) noexcept;
[[nodiscard]] BytesPerSecond phy_rate(const PhyMode& mode) noexcept;
/// ppdu_time is D above: preamble and payload of one transmission.
[[nodiscard]] Nanos ppdu_time(const PhyMode& mode, Bytes psdu) noexcept;
/// psdu_max is the largest payload that ends within ppdu_time_max.
[[nodiscard]] Bytes psdu_max(const PhyMode& mode) noexcept;
/// control_time is a control frame at 24 Mbit/s, as an acknowledgement goes: 20 us + 4 us per 96
/// bits.
[[nodiscard]] Nanos control_time(Bytes frame) noexcept;
/// ack_time: 14 bytes. block_ack_time: 32 bytes for a bitmap of 64, 56 bytes for 256.
[[nodiscard]] Nanos ack_time() noexcept;
[[nodiscard]] Nanos block_ack_time(int window_mpdus) noexcept;
/// mpdu_bytes is what an Ethernet frame of `frame` bytes takes of an A-MPDU: LLC 8, QoS header 26,
/// FCS 4 and delimiter 4 for the Ethernet header's 14, padded to 4.
[[nodiscard]] Bytes mpdu_bytes(Bytes frame) noexcept;

}  // namespace onehop::lab::air
