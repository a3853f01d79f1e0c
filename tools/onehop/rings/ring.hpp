// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// A ring as it is seen from outside: how many entries it has, how many are in it, and what was seen
// over time.
//
//   mapping   [ producer | consumer | flags | entry 0 | entry 1 ... | up to the end of a page ]
//
// Indices run freely through all 32 bits; their difference is what the ring holds. Pure.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "engine/base/histogram.hpp"
#include "tools/onehop/rings/maps.hpp"

namespace onehop::rings {

/// entry_bytes_of: a descriptor in rx and tx, an address in fill and completion.
[[nodiscard]] constexpr std::size_t entry_bytes_of(RingKind kind) noexcept {
  return kind == RingKind::rx || kind == RingKind::tx ? 16 : 8;
}

/// Capacity: how many entries a ring has, as far as that is known. Always powers of two.
struct Capacity {
  std::uint32_t least = 1, most = 1;
  [[nodiscard]] bool is_known() const noexcept { return least == most; }
  friend bool operator==(const Capacity&, const Capacity&) = default;
};

/// capacity_of: what a mapping of that length leaves open. The kernel makes rings of whole pages,
/// so within one page several sizes look alike.
[[nodiscard]] Capacity capacity_of(std::uint64_t mapping_bytes, std::uint64_t entries_at,
                                   std::size_t entry_bytes, std::uint64_t page_bytes) noexcept;

/// narrowed: what the entries tell. The kernel hands out a ring of zeros, so where entries went
/// round and no slot behind the first N was ever written, the ring has N. `slots`: as many as there
/// may be. `producer`: entries that were put in, unless it has wrapped.
[[nodiscard]] Capacity narrowed(Capacity capacity, std::span<const std::byte> slots,
                                std::size_t entry_bytes, std::uint32_t producer) noexcept;

/// Indices: the producer was read first.
struct Indices {
  std::uint32_t producer = 0, consumer = 0, flags = 0;
};

/// held_in is how many entries a ring of at most `entries_max` holds. Nothing: the two indices do
/// not belong together, for the ring moved on between the two reads; the next sample will do.
[[nodiscard]] std::optional<std::uint32_t> held_in(const Indices& indices,
                                                   std::uint32_t entries_max) noexcept;

/// RingUse: what was seen of a ring since the last clear().
struct RingUse {
  Capacity capacity;
  LogLinearHistogram held;
  std::uint32_t now = 0, least = UINT32_MAX;
  std::uint64_t moved = 0;  ///< entries that were taken out
  std::optional<Indices> last;

  void add(const Indices& indices) noexcept;
  /// clear begins a new span of time; the indices stay, to count from.
  void clear() noexcept;
  [[nodiscard]] double percent(std::uint32_t entries) const noexcept {
    return 100.0 * entries / capacity.most;
  }
};

}  // namespace onehop::rings
