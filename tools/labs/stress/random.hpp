// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Random: splitmix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA
// 2014). Its state is one word, so a schedule's own generator costs nothing to set up; the quality
// is enough to draw faults.
#pragma once

#include <cstdint>

namespace onehop::stress {

class Random {
 public:
  /// Each (seed, index) has a sequence of its own.
  Random(std::uint64_t seed, std::uint64_t index) noexcept : state_{seed} {
    state_ = next() + index * 0xD1B54A32D192ED03ULL;
    (void)next();
  }
  std::uint64_t next() noexcept {
    std::uint64_t x = state_ += 0x9E3779B97F4A7C15ULL;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
    return x ^ (x >> 31);
  }
  /// below is in [0, bound); the bias of the remainder is below 2^-40 for what is drawn here.
  std::uint64_t below(std::uint64_t bound) noexcept { return bound == 0 ? 0 : next() % bound; }

 private:
  std::uint64_t state_;
};

}  // namespace onehop::stress
