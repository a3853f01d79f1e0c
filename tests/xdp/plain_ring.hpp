// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// A ring on plain memory: the test plays the kernel by moving the other side's index.
#pragma once

#include <array>
#include <cstdint>

#include "xdp/xsk_ring.hpp"

namespace onehop::test {

template <class Entry, std::uint32_t entry_count>
struct Plain {
  static constexpr std::uint32_t size = entry_count;
  explicit Plain(std::uint32_t start) : producer{start}, consumer{start} {}
  xdp::RingMemory memory() { return {&producer, &consumer, &flags, entries.data(), size}; }
  Entry& slot(std::uint32_t index) { return entries[index & (size - 1)]; }
  std::uint32_t producer, consumer, flags = 0;
  std::array<Entry, size> entries{};
};
}  // namespace onehop::test
