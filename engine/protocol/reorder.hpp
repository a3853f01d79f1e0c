// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// When a missing number counts as lost: not before some later ones have arrived. Pure.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/wire/feedback.hpp"

namespace onehop::protocol {

/// Specification: RFC 9002 section 6.1.1, kPacketThreshold.
inline constexpr std::uint64_t reorder_threshold_packets = 3;

/// third_newest_received: numbers below it have reorder_threshold_packets received above them here.
[[nodiscard]] inline std::uint64_t third_newest_received(const wire::Feedback& feedback) noexcept {
  std::uint64_t left = reorder_threshold_packets, top = feedback.largest;
  for (std::size_t i = feedback.range_count; i-- > 0;) {
    const std::uint64_t received = top - feedback.missing[i].last;  // above this range
    if (received >= left) return top - left + 1;
    left -= received;
    if (feedback.missing[i].first == 0) return 0;
    top = feedback.missing[i].first - 1;
  }
  return top >= feedback.from && top - feedback.from + 1 >= left ? top - left + 1 : 0;
}

}  // namespace onehop::protocol
