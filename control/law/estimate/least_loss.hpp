// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// LeastLoss: the least loss ratio among the last slices of time: what a path always loses, whatever
// the rate. Pure.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>

#include "engine/base/units.hpp"

namespace onehop::law {

/// The length of a slice. Ours. Low: a slice has too few packets to count. High: what a path always
/// loses is learnt late.
inline constexpr Nanos loss_slice{100ms};

class LeastLoss {
 public:
  void add(Instant at, double loss) noexcept { slices_[count_++ % slices_max] = {at, loss}; }
  /// since gives the least of the slices that ended at `from` or later; nothing if there is none.
  [[nodiscard]] std::optional<double> since(Instant from) const noexcept {
    std::optional<double> least;
    for (std::size_t i = 0; i < std::min(count_, slices_max); ++i)
      if (slices_[i].at >= from) least = std::min(least.value_or(slices_[i].loss), slices_[i].loss);
    return least;
  }

 private:
  static constexpr std::size_t slices_max = 100;  // derived: 10 s of slices
  struct Slice {
    Instant at{};
    double loss = 0;
  };
  std::array<Slice, slices_max> slices_{};
  std::size_t count_ = 0;
};

}  // namespace onehop::law
