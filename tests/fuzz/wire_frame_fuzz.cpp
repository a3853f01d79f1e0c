// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// N1: any bytes may arrive as a frame. What decode_header accepts, encode_header writes back byte
// for byte.
#include <algorithm>
#include <array>
#include <cstring>
#include <random>

#include "engine/base/check.hpp"
#include "engine/wire/frame.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace onehop;

std::uint64_t fuzz::accepted_total = 0;

std::size_t fuzz::make_valid(std::uint64_t seed, std::span<std::byte, input_bytes_max> out) {
  std::mt19937_64 random{seed};
  const std::uint64_t number = random() >> (2 + random() % 62);
  wire::encode_header({.type = static_cast<wire::FrameType>(1 + random() % 4),
                       .key_phase = random() % 2 == 0,
                       .is_end_of_block = random() % 2 == 0,
                       .is_nack_requested = random() % 2 == 0,
                       .nack_round = random() % 2 == 0,
                       .file = static_cast<std::uint32_t>(random()),
                       .packet_number = number,
                       .settled = number - std::min<std::uint64_t>(number, random() & 0xffff'ffff),
                       .offset = random()},
                      out.first<wire::header_bytes>());
  return wire::frame_bytes_min + random() % 100;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span frame{reinterpret_cast<const std::byte*>(data), size};
  const auto header = wire::decode_header(frame);
  if (!header) return 0;
  ++fuzz::accepted_total;
  ONEHOP_CHECK(header->settled <= header->packet_number);
  ONEHOP_CHECK(header->packet_number <= wire::packet_number_max);
  std::array<std::byte, wire::header_bytes> again;
  wire::encode_header(*header, again);
  ONEHOP_CHECK(std::memcmp(again.data(), data, again.size()) == 0);
  return 0;
}
