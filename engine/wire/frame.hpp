// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// The frames of the data path: layout and codec. Pure functions on spans; no state, no clock.
//
// A frame is the payload of one UDP datagram. Its fixed header is sent in clear and is the AEAD's associated data;
// the body is ciphertext; the tag is last. Integers are big endian.
//
//    0      1      2          4          8                16           20                28
//    | type | flags| reserved | file u32 | packet number  | settled    | offset u64      | body ...   | tag 16 |
//    |  u8  |  u8  |  u16 = 0 |          |     u64        | lag u32    |                 |            |        |
//
// type: 1 data, 2 feedback, 3 ping, 4 pong. flags: bit 0 key phase, bit 1 end_of_block, bit 2 nack_request.
// settled lag = packet number - settled, so settled is at most 2^32-1 behind. file and offset are zero but in data
// frames. The header has one size for every type, so a GSO batch can be sealed at fixed strides.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace onehop::wire {

inline constexpr std::size_t header_bytes = 28;
inline constexpr std::size_t tag_bytes = 16;
inline constexpr std::size_t overhead_bytes = header_bytes + tag_bytes;
inline constexpr std::size_t frame_bytes_min = overhead_bytes;
inline constexpr std::size_t ethernet_ipv4_udp_bytes = 14 + 20 + 8;
inline constexpr std::size_t ethernet_ipv6_udp_bytes = 14 + 40 + 8;

enum class FrameType : std::uint8_t { data = 1, feedback = 2, ping = 3, pong = 4 };

struct FrameHeader {
  FrameType type = FrameType::data;
  bool key_phase = false;
  bool is_end_of_block = false;
  bool is_nack_requested = false;
  std::uint32_t file = 0;
  std::uint64_t packet_number = 0;
  std::uint64_t settled = 0;
  std::uint64_t offset = 0;
};

/// encode_header writes header_bytes at `out`. settled must be at most packet_number; a lag that does not fit is
/// clamped (the receiver then keeps a gap longer, which is harmless).
void encode_header(const FrameHeader& header, std::span<std::byte, header_bytes> out) noexcept;

/// decode_header rejects unknown types, unknown flags, a non-zero reserved field, and a lag larger than the number.
[[nodiscard]] std::optional<FrameHeader> decode_header(std::span<const std::byte> frame) noexcept;

/// frame_payload_bytes: the file bytes of a full frame when `body_max` fit: blocks are cut into equal frames, so that
/// a block ends with a frame of (almost) full size and a batch of one block is one GSO batch.
[[nodiscard]] std::size_t frame_payload_bytes(std::size_t body_max, std::size_t block) noexcept;

}  // namespace onehop::wire
