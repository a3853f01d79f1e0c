// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// How far apart two CPUs are: the time a cache line takes from one to the other and back. It is
// what a frame pays that one thread writes and another reads. In a virtual machine it changes under
// way, when the host moves its CPUs, and every figure of a transfer with it (docs/results,
// "Where the CPUs were"): runs compare only where it was the same.
#pragma once

#include <optional>
#include <utility>

#include "engine/base/units.hpp"

namespace onehop::bench {

/// first_two_cpus: of those that this process may run on; nothing when there is one. Syscalls:
/// sched_getaffinity.
[[nodiscard]] std::optional<std::pair<int, int>> first_two_cpus();

/// core_round_trip measures for about a millisecond on two pinned threads that it starts; the
/// median of its batches, so that another program's turn does not count. Nothing when a thread
/// cannot be pinned.
[[nodiscard]] std::optional<Nanos> core_round_trip(std::pair<int, int> cpus);

/// is_same_place: as far apart, within a factor of two (on one place the figure scatters by a
/// third). 0 is one CPU: always there.
[[nodiscard]] constexpr bool is_same_place(Nanos a, Nanos b) noexcept {
  return a <= 2 * b && b <= 2 * a;
}

/// CpuPlace: where the first two CPUs were when it was made.
class CpuPlace {
 public:
  CpuPlace();
  /// look measures now.
  struct Look {
    Nanos round_trip{0};
    bool is_here = true;
  };
  [[nodiscard]] Look look() const;

 private:
  [[nodiscard]] Nanos measure() const;

  std::optional<std::pair<int, int>> cpus_;
  Nanos round_trip_;
};

}  // namespace onehop::bench
