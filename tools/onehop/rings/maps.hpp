// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Which AF_XDP rings a process has mapped, by the text of its /proc/PID/maps:
//
//   7f0c10000000-7f0c10009000 rw-s 100000000 00:08 31337      socket:[31337]
//   address, from to               page offset     inode      what is mapped
//
// The page offset says which ring of the socket it is (XDP_PGOFF_RX_RING and its kin). A file can
// have nearly any name; the kernel writes a newline in it as \012, and a path begins with a slash.
// Pure.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace onehop::rings {

enum class RingKind : std::uint8_t { rx, tx, fill, completion };
inline constexpr std::size_t ring_kinds = 4;
inline constexpr std::array<std::string_view, ring_kinds> ring_names{"rx", "tx", "fill",
                                                                     "completion"};

struct RingMapping {
  std::uint64_t inode = 0;  ///< of the socket that the ring belongs to
  RingKind kind = RingKind::rx;
  std::uint64_t address = 0, bytes = 0;
  friend bool operator==(const RingMapping&, const RingMapping&) = default;
};

/// mappings_in lists what may be a ring, in the order of the addresses: one of each kind per inode,
/// a mapping that mprotect() has cut in pieces as one. A socket of which only offset 0 is mapped
/// may be one of another family (AF_PACKET, TCP): the caller asks it.
[[nodiscard]] std::vector<RingMapping> mappings_in(std::string_view maps);

}  // namespace onehop::rings
