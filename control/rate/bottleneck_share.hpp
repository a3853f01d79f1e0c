// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// BottleneckShare: for what part of the last 2 s each bottleneck was the limit. One tick alone
// misleads: while a slow disk limits a transfer, some ticks see another buffer first. Control
// thread only.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>

#include "engine/base/path.hpp"

namespace onehop::rate {

inline constexpr std::size_t bottleneck_count = 6;
using BottleneckShares = std::array<std::uint16_t, bottleneck_count>;  ///< permille, by Bottleneck

class BottleneckShare {
 public:
  /// Ours. The window is 20 slots of 100 ms. A shorter one misleads as a tick does; a longer one
  /// still names what was the bottleneck before.
  static constexpr Nanos slot_span{100ms};
  static constexpr std::size_t slots = 20;

  /// add: `bottleneck` was the limit for `span` until `now`, which never goes back.
  void add(Instant now, Bottleneck bottleneck, Nanos span) noexcept {
    const std::int64_t newest = now.time_since_epoch() / slot_span;
    for (std::int64_t i = std::max(newest_ + 1, newest - std::int64_t{slots} + 1); i <= newest; ++i)
      slots_[static_cast<std::size_t>(i) % slots] = {};
    newest_ = newest;
    slots_[static_cast<std::size_t>(newest) % slots][static_cast<std::size_t>(bottleneck)] += span;
  }
  /// permille of the time in the window, by Bottleneck; all 0 before the first.
  [[nodiscard]] BottleneckShares permille() const noexcept {
    std::array<Nanos, bottleneck_count> held{};
    for (const auto& slot : slots_) {
      for (std::size_t i = 0; i < held.size(); ++i) held[i] += slot[i];
    }
    const Nanos sum = std::accumulate(held.begin(), held.end(), Nanos{0});
    BottleneckShares out{};
    for (std::size_t i = 0; i < held.size() && sum > Nanos{0}; ++i)
      out[i] = static_cast<std::uint16_t>(held[i] * 1000 / sum);
    return out;
  }

 private:
  std::array<std::array<Nanos, bottleneck_count>, slots> slots_{};
  std::int64_t newest_ = 0;
};

}  // namespace onehop::rate
