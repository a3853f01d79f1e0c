// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// The one place that reads the monotonic clock (CLOCK_MONOTONIC, about 20 ns through the vDSO).
#pragma once

#include <ctime>

#include "engine/base/units.hpp"

namespace onehop {

/// monotonic_now reads CLOCK_MONOTONIC. Pure code is handed `now` instead of calling this.
[[nodiscard]] inline Instant monotonic_now() noexcept {
  timespec ts{};
  clock_gettime(CLOCK_MONOTONIC, &ts);
  return Instant{std::chrono::seconds{ts.tv_sec} + Nanos{ts.tv_nsec}};
}

}  // namespace onehop
