// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// SkipSchedule: which packet numbers are skipped on purpose, so that a peer that acknowledges what
// it has not received is found out (N4): first one within 256, then ever more rarely.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>

namespace onehop::protocol {

class SkipSchedule {
 public:
  SkipSchedule(std::uint64_t seed, std::uint64_t next_number) : random_{seed} { plan(next_number); }

  /// take says whether `number` is skipped; it is asked for each number in turn.
  [[nodiscard]] bool take(std::uint64_t number) noexcept {
    if (number != at_) return false;
    plan(number + 1);
    return true;
  }

 private:
  // Implementation: spans are twice the mean distance.
  static constexpr std::uint64_t span_first = 256, span_max = std::uint64_t{1} << 18;

  void plan(std::uint64_t next_number) noexcept {
    at_ = next_number + 1 + random_() % span_;
    span_ = std::min(span_ * 2, span_max);
  }

  std::mt19937_64 random_;
  std::uint64_t at_ = 0, span_ = span_first;
};

}  // namespace onehop::protocol
