// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// count_unsent: how many frames of a TX ring the device has not sent, from the states of single
// descriptors.
//
//   offset   0 ......... done done | full full full    next frame goes to offset 0, the newest one
//   lies at the end
//                                  ^ first full one
//
// Sent ones come first, so a binary search finds the border: eleven reads for a ring of 2048.
#pragma once

#include <cstdint>

namespace onehop::dpdk {

/// is_unsent(offset) tells whether the descriptor at this offset behind the tail waits for the
/// device.
template <class IsUnsent>
[[nodiscard]] std::uint32_t count_unsent(std::uint32_t ring_frames, IsUnsent is_unsent) noexcept {
  std::uint32_t low = 0,
                high = ring_frames;  // the first unsent one is in [low, high]; high: there is none
  while (low < high) {
    const std::uint32_t middle = low + (high - low) / 2;
    if (is_unsent(middle))
      high = middle;
    else
      low = middle + 1;
  }
  return ring_frames - low;
}

}  // namespace onehop::dpdk
