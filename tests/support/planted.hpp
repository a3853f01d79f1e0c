// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Two contents of one length and one XXH3-128, for tests of what may not be trusted to it.
//
//   acc[i]     += low32(data ^ secret) * high32(data ^ secret)      per lane of 8 bytes, in stripes
//   acc[i ^ 1] += data                                              of 8 lanes
//
// The secret is public. Where the upper half of a lane is the secret's, its product is zero. Two
// such lanes, one below the other, can then be changed at will as long as their sum stays.
#pragma once

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

namespace onehop::test {

namespace planted_detail {
inline constexpr std::size_t stripe_bytes = 64, secret_step_bytes = 8;
/// The first lane of stripe `stripe`: the secret's upper half, and a lower half of one's own.
inline std::uint64_t lane_of(std::size_t stripe, std::uint32_t low) {
  std::uint64_t secret;
  std::memcpy(&secret, XXH3_kSecret + stripe * secret_step_bytes, sizeof secret);
  return (secret & ~std::uint64_t{0xffff'ffff}) | low;
}
inline void put(std::string& content, std::size_t stripe, std::uint64_t lane) {
  std::memcpy(content.data() + stripe * stripe_bytes, &lane, sizeof lane);
}
}  // namespace planted_detail

/// plantable makes `content` one that can be planted: it changes 16 of its first 128 bytes.
inline std::string plantable(std::string content) {
  for (const std::size_t stripe : {0U, 1U})
    planted_detail::put(content, stripe, planted_detail::lane_of(stripe, 0x8000'0000));
  return content;
}

/// planted_for gives other bytes with the length and the XXH3-128 of a plantable content.
inline std::string planted_for(std::string content, std::uint32_t change = 0x1234'5678) {
  planted_detail::put(content, 0, planted_detail::lane_of(0, 0x8000'0000 + change));
  planted_detail::put(content, 1, planted_detail::lane_of(1, 0x8000'0000 - change));
  return content;
}

}  // namespace onehop::test
