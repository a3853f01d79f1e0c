// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// PlainRing: the memory of one AF_XDP ring without a kernel. Whoever owns it plays the kernel by
// moving the other side's index; the program's side is a ring of libxdp over the same memory.
#pragma once

#include <cstdint>
#include <vector>

#include "xdp/xsk.hpp"

namespace onehop::scenario {

template <class Entry>
struct PlainRing {
  /// `size` is a power of two; both indices begin at `start`.
  PlainRing(std::uint32_t size, std::uint32_t start)
      : producer{start}, consumer{start}, entries(size) {}

  /// attach makes a ring over this memory, with the indices that it has now. Ring is xsk_ring_prod
  /// or xsk_ring_cons. The memory must outlive it and stay where it is.
  template <class Ring>
  [[nodiscard]] Ring attach() {
    const auto size = static_cast<std::uint32_t>(entries.size());
    Ring ring{.cached_prod = 0,
              .cached_cons = 0,
              .mask = size - 1,
              .size = size,
              .producer = &producer,
              .consumer = &consumer,
              .ring = entries.data(),
              .flags = &flags};
    xdp::read_indices(ring);
    return ring;
  }

  [[nodiscard]] std::uint32_t filled() const { return producer - consumer; }
  [[nodiscard]] Entry& at(std::uint32_t index) { return entries[index & (entries.size() - 1)]; }
  [[nodiscard]] const Entry& at(std::uint32_t index) const {
    return entries[index & (entries.size() - 1)];
  }

  std::uint32_t producer, consumer, flags = 0;
  std::vector<Entry> entries;
};

}  // namespace onehop::scenario
