// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// The frames of the data path: layout and codec. Pure functions on spans; no state, no clock.
//
// A frame is the payload of one UDP datagram. Its fixed header is sent in clear and is the AEAD's
// associated data; the body is ciphertext; the tag is last. Integers are big endian.
//
//    0      1       2          4          8               16            20           28
//    | type | flags | reserved | file u32 | packet number | settled lag | offset u64 | body | tag |
//    |  u8  |  u8   |  u16 = 0 |          |      u64      |     u32     |            | ...  | 16  |
//
// type: 1 data, 2 feedback, 3 ping, 4 pong. flags: bit 0 key phase, bit 1 end_of_block, bit 2
// nack_request, bit 3 nack_round (it changes with each round of lazy repair, so that what repeats a
// request differs from the next one; else 0). settled lag = packet number - settled, so settled is
// at most 2^32-1 behind. file and offset are zero but in data frames. The header has one size for
// every type, so a GSO batch can be sealed at fixed strides.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>

#include "engine/base/byte_codec.hpp"
#include "engine/base/check.hpp"

namespace onehop::wire {

inline constexpr std::size_t header_bytes = 28;
inline constexpr std::size_t tag_bytes = 16;
inline constexpr std::size_t overhead_bytes = header_bytes + tag_bytes;
inline constexpr std::size_t frame_bytes_min = overhead_bytes;
/// The largest UDP payload: an IPv4 packet of 65535 bytes less its headers.
inline constexpr std::size_t datagram_bytes_max = 65'507;
/// The largest packet number: one more, differences and sums of two fit 64 bits, signed or not.
inline constexpr std::uint64_t packet_number_max = (std::uint64_t{1} << 62) - 1;
inline constexpr std::size_t ethernet_ipv4_udp_bytes = 14 + 20 + 8;
inline constexpr std::size_t ethernet_ipv6_udp_bytes = 14 + 40 + 8;

enum class FrameType : std::uint8_t { data = 1, feedback = 2, ping = 3, pong = 4 };

struct FrameHeader {
  FrameType type = FrameType::data;
  bool key_phase = false;
  bool is_end_of_block = false;
  bool is_nack_requested = false;
  bool nack_round = false;
  std::uint32_t file = 0;
  std::uint64_t packet_number = 0;
  std::uint64_t settled = 0;
  std::uint64_t offset = 0;
};

namespace detail {
inline constexpr std::size_t type_at = 0, flags_at = 1, reserved_at = 2, file_at = 4, number_at = 8,
                             lag_at = 16, offset_at = 20;
static_assert(offset_at + sizeof(std::uint64_t) == header_bytes);
inline constexpr std::uint8_t key_phase_flag = 1, end_of_block_flag = 2, nack_request_flag = 4,
                              nack_round_flag = 8, flags_known = 15;
}  // namespace detail

/// encode_header writes header_bytes at `out`. settled must be at most packet_number; a lag that
/// does not fit is clamped (a gap is then kept longer, which is harmless). What belongs to data
/// frames only (file, offset, end_of_block) is zero in others, nack_round where nothing is
/// requested.
inline void encode_header(const FrameHeader& header,
                          std::span<std::byte, header_bytes> out) noexcept {
  ONEHOP_CHECK(header.settled <= header.packet_number);
  const bool is_data = header.type == FrameType::data;
  const std::uint64_t lag = std::min<std::uint64_t>(header.packet_number - header.settled,
                                                    std::numeric_limits<std::uint32_t>::max());
  const unsigned flags =
      (header.key_phase ? detail::key_phase_flag : 0U) |
      (is_data && header.is_end_of_block ? detail::end_of_block_flag : 0U) |
      (header.is_nack_requested ? detail::nack_request_flag : 0U) |
      (header.is_nack_requested && header.nack_round ? detail::nack_round_flag : 0U);
  std::byte* const at = out.data();
  at[detail::type_at] = static_cast<std::byte>(header.type);
  at[detail::flags_at] = static_cast<std::byte>(flags);
  store_be<std::uint16_t>(at + detail::reserved_at, 0);
  store_be<std::uint32_t>(at + detail::file_at, is_data ? header.file : 0);
  store_be<std::uint64_t>(at + detail::number_at, header.packet_number);
  store_be<std::uint32_t>(at + detail::lag_at, static_cast<std::uint32_t>(lag));
  store_be<std::uint64_t>(at + detail::offset_at, is_data ? header.offset : 0);
}

/// decode_header takes a whole frame and rejects one without room for header and tag, unknown
/// types, unknown flags, a non-zero reserved field, a number above packet_number_max, a lag larger
/// than the number, fields of data frames that are set in others, and a round without a request.
[[nodiscard]] inline std::optional<FrameHeader> decode_header(
    std::span<const std::byte> frame) noexcept {
  if (frame.size() < frame_bytes_min) return std::nullopt;
  const std::byte* const at = frame.data();
  const auto type = std::to_integer<std::uint8_t>(at[detail::type_at]);
  const auto flags = std::to_integer<std::uint8_t>(at[detail::flags_at]);
  if (type < static_cast<std::uint8_t>(FrameType::data) ||
      type > static_cast<std::uint8_t>(FrameType::pong))
    return std::nullopt;
  if ((flags & ~detail::flags_known) != 0 || load_be<std::uint16_t>(at + detail::reserved_at) != 0)
    return std::nullopt;
  FrameHeader header;
  header.type = static_cast<FrameType>(type);
  header.key_phase = (flags & detail::key_phase_flag) != 0;
  header.is_end_of_block = (flags & detail::end_of_block_flag) != 0;
  header.is_nack_requested = (flags & detail::nack_request_flag) != 0;
  header.nack_round = (flags & detail::nack_round_flag) != 0;
  if (header.nack_round && !header.is_nack_requested) return std::nullopt;
  header.file = load_be<std::uint32_t>(at + detail::file_at);
  header.packet_number = load_be<std::uint64_t>(at + detail::number_at);
  const std::uint32_t lag = load_be<std::uint32_t>(at + detail::lag_at);
  if (header.packet_number > packet_number_max || lag > header.packet_number) return std::nullopt;
  header.settled = header.packet_number - lag;
  header.offset = load_be<std::uint64_t>(at + detail::offset_at);
  if (header.type != FrameType::data &&
      (header.file != 0 || header.offset != 0 || header.is_end_of_block))
    return std::nullopt;
  return header;
}

/// frame_payload_bytes: the file bytes of a full frame when `body_max` fit: blocks are cut into
/// equal frames, so that a batch of one block is one GSO batch. Both must be positive.
[[nodiscard]] inline std::size_t frame_payload_bytes(std::size_t body_max,
                                                     std::size_t block) noexcept {
  ONEHOP_CHECK(body_max > 0);
  ONEHOP_CHECK(block > 0);
  const std::size_t frames = (block + body_max - 1) / body_max;
  return (block + frames - 1) / frames;
}

}  // namespace onehop::wire
