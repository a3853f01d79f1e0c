// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// The one place that reads clocks (about 20 ns through the vDSO).
#pragma once

#include <ctime>

#include "engine/base/units.hpp"

namespace onehop {

[[nodiscard]] inline Instant read_clock(clockid_t clock) noexcept {
  timespec ts{};
  clock_gettime(clock, &ts);
  return Instant{std::chrono::seconds{ts.tv_sec} + Nanos{ts.tv_nsec}};
}

/// monotonic_now: pure code is handed `now` instead of calling this.
[[nodiscard]] inline Instant monotonic_now() noexcept { return read_clock(CLOCK_MONOTONIC); }

/// boot_now goes on while the machine is suspended, for what a person waits for.
[[nodiscard]] inline Instant boot_now() noexcept { return read_clock(CLOCK_BOOTTIME); }

}  // namespace onehop
