// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// LateQueue: the backlog now, where the only reading of it is as old as its sensor makes it.
//
//   backlog now = backlog read + handed over since - v_1 (age of the reading)
//
// Pure; wire bytes.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

#include "engine/base/telemetry.hpp"

namespace onehop::law {

class LateQueue {
 public:
  /// step takes a reading, what was handed over so far, and v_1.
  [[nodiscard]] Bytes step(Instant now, const QueueTelemetry& queue, Bytes handed_total,
                           BytesPerSecond drain) noexcept {
    ring_[count_++ % steps_max] = {now, handed_total};
    // What was handed over by the step before the reading may be in it or have left; by the step
    // after it, it does not count as read.
    Bytes before = handed_total;
    for (std::size_t n = 1; n <= std::min(count_, steps_max); ++n) {
      const Handed& old = ring_[(count_ - n) % steps_max];
      before = old.total;
      if (old.at <= queue.at) break;
    }
    const Nanos age = std::max(now - queue.at, Nanos{0});
    return std::max(queue.occupancy + handed_total - before - drain * age, Bytes{0});
  }

 private:
  struct Handed {
    Instant at{};
    Bytes total{};
  };
  // Derived: steps are 0.5 ms apart at least, 2 ms as a rule. Low: a fact is older than the list.
  // High: memory.
  static constexpr std::size_t steps_max = 64;
  std::array<Handed, steps_max> ring_{};
  std::size_t count_ = 0;
};

}  // namespace onehop::law
