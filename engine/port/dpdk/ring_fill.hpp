// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// count_unsent: how many frames of a TX ring are not sent, from the states of descriptors.
//
//   offset   0 ......... done done | full full full    next frame goes to offset 0, the newest one
//   lies at the end
//                                  ^ first full one
//
// Sent ones come first, so a binary search finds the border: eleven reads for a ring of 2048.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <ranges>

namespace onehop::dpdk {

/// is_unsent(offset) whether the descriptor at this offset behind the tail waits for the device.
template <class IsUnsent>
[[nodiscard]] std::uint32_t count_unsent(std::uint32_t ring_frames, IsUnsent is_unsent) noexcept {
  const auto offsets = std::views::iota(std::uint32_t{0}, ring_frames);
  const auto first = std::ranges::partition_point(offsets, std::not_fn(is_unsent));
  return static_cast<std::uint32_t>(offsets.end() - first);
}

}  // namespace onehop::dpdk
