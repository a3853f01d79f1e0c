// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/onehop/rings/ring.hpp"

#include <bit>
#include <limits>

namespace onehop::rings {

Capacity capacity_of(std::uint64_t mapping_bytes, std::uint64_t entries_at, std::size_t entry_bytes,
                     std::uint64_t page_bytes) noexcept {
  if (mapping_bytes < entries_at + entry_bytes) return {};
  const std::uint64_t room =
      std::min<std::uint64_t>((mapping_bytes - entries_at) / entry_bytes, std::uint64_t{1} << 31);
  const auto most = static_cast<std::uint32_t>(std::bit_floor(room));
  // Half as many entries take fewer pages, but for rings within one page.
  return {.least = mapping_bytes > page_bytes ? most : 1, .most = most};
}

Capacity narrowed(Capacity capacity, std::span<const std::byte> slots, std::size_t entry_bytes,
                  std::uint32_t producer) noexcept {
  const auto written =
      std::find_if(slots.rbegin(), slots.rend(), [](std::byte b) { return b != std::byte{0}; });
  const auto used = static_cast<std::size_t>(slots.rend() - written);  // bytes up to there
  const auto entries = static_cast<std::uint32_t>((used + entry_bytes - 1) / entry_bytes);
  capacity.least =
      std::clamp(std::bit_ceil(std::max(entries, capacity.least)), capacity.least, capacity.most);
  // A single zero entry means little: a chunk may have the address 0. These many do not.
  constexpr std::uint32_t entries_sure = 8;
  if (entries > 0 && producer >= std::uint64_t{capacity.least} + entries_sure)
    capacity.most = capacity.least;
  return capacity;
}

std::optional<std::uint32_t> held_in(const Indices& indices, std::uint32_t entries_max) noexcept {
  // The consumer moves up to the producer and the producer away from it: with a producer that is
  // too old the difference is too small, or below zero, and never too large.
  const std::uint32_t held = indices.producer - indices.consumer;
  return held <= entries_max ? std::optional{held} : std::nullopt;
}

void RingUse::add(const Indices& indices) noexcept {
  const auto level = held_in(indices, capacity.most);
  if (!level) return;
  now = *level;
  least = std::min(least, now);
  held.add(now);
  // One page may be a ring of fewer entries, and what is in it says how many at least.
  if (!capacity.is_known())
    capacity.least = std::clamp(std::bit_ceil(std::max(now, 1U)), capacity.least, capacity.most);
  if (last) moved += indices.consumer - last->consumer;
  last = indices;
}

void RingUse::clear() noexcept {
  held = {};
  least = std::numeric_limits<std::uint32_t>::max();
  moved = 0;
}

}  // namespace onehop::rings
