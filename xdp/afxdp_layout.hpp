// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// How frames lie in chunks. Pure arithmetic, for bring-up and data path.
//
//   TX chunk   | unused | headers 42 or 62 | sealed frame ...   |   it starts on a cache line
//              0                           64
//   RX chunk   | kernel's headroom 256 | Ethernet frame ...     |
//
// A frame that is larger than a chunk is sent from adjacent chunks, so it is sealed in one go, and
// takes a descriptor per chunk. It arrives in chunks anywhere, each with headroom.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "engine/wire/l2_l4.hpp"

namespace onehop::xdp {

inline constexpr std::uint32_t tx_payload_offset_bytes = 64;
static_assert(tx_payload_offset_bytes >= wire::ethernet_ipv6_udp_bytes);
inline constexpr std::uint32_t ethernet_header_bytes = 14;

/// What the kernel keeps free in front of each received frame (XDP_PACKET_HEADROOM).
inline constexpr std::uint32_t packet_headroom_bytes = 256;

/// Chunks per frame. Too few: an MTU is not used in full. Too many: memory in frames that are never
/// sent. 4 of 4096 bytes take a frame of 15 KB; the jumbo frames of Ethernet are 9 KB.
inline constexpr std::uint32_t frame_chunks_max = 4;

/// rx_frame_bytes_max: the largest Ethernet frame that arrives in one chunk.
[[nodiscard]] constexpr std::uint32_t rx_frame_bytes_max(std::uint32_t chunk_bytes) noexcept {
  return chunk_bytes - packet_headroom_bytes;
}

/// chunks_of: how many chunks an Ethernet frame takes where each holds `room_bytes` of it.
[[nodiscard]] constexpr std::uint32_t chunks_of(std::uint32_t wire_bytes,
                                                std::uint32_t room_bytes) noexcept {
  return (wire_bytes + room_bytes - 1) / room_bytes;
}

/// frame_chunks: how many chunks a full frame takes at this MTU. It arrives in as many, or more.
/// More than one need a multi-buffer program and socket.
[[nodiscard]] constexpr std::uint32_t frame_chunks(std::uint32_t mtu_bytes,
                                                   std::uint32_t chunk_bytes) noexcept {
  return std::min(chunks_of(mtu_bytes + ethernet_header_bytes, rx_frame_bytes_max(chunk_bytes)),
                  frame_chunks_max);
}

/// payload_bytes_max: the largest UDP payload that both directions carry in `chunks` chunks.
[[nodiscard]] constexpr std::size_t payload_bytes_max(std::uint32_t chunk_bytes,
                                                      std::uint32_t chunks,
                                                      std::uint32_t wire_overhead) noexcept {
  return std::min(chunks * chunk_bytes - tx_payload_offset_bytes,
                  chunks * rx_frame_bytes_max(chunk_bytes) - wire_overhead);
}

/// wire_frame_bytes: a full frame of ours at this MTU.
[[nodiscard]] constexpr std::uint32_t wire_frame_bytes(std::uint32_t mtu_bytes,
                                                       std::uint32_t chunk_bytes,
                                                       std::uint32_t chunks) noexcept {
  return std::min(mtu_bytes + ethernet_header_bytes, chunks * rx_frame_bytes_max(chunk_bytes));
}

/// chunk_bytes_for: the smallest chunk that takes the MTU, or the largest one. Zero-copy drivers
/// get 4096: they may round the buffer down to a power of two (igb: 1024 bytes of 2048).
[[nodiscard]] constexpr std::uint32_t chunk_bytes_for(std::uint32_t mtu_bytes,
                                                      bool is_zero_copy) noexcept {
  return is_zero_copy || frame_chunks(mtu_bytes, 2048) > 1 ? 4096 : 2048;
}

/// copy_truesize_bytes: what the kernel charges for the copy of a chunk (2304 measured for
/// 1514-byte frames); of a frame in several, less for each further one.
[[nodiscard]] constexpr int copy_truesize_bytes(std::uint32_t chunk_bytes) noexcept {
  return chunk_bytes <= 2048 ? 2304 : 8448;
}

}  // namespace onehop::xdp
