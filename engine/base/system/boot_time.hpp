// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// The clock that goes on while the machine is suspended (CLOCK_BOOTTIME), for what a person waits
// for. All else is by monotonic_now().
#pragma once

#include <ctime>

#include "engine/base/units.hpp"

namespace onehop {

[[nodiscard]] inline Instant boot_now() noexcept {
  timespec ts{};
  clock_gettime(CLOCK_BOOTTIME, &ts);
  return Instant{std::chrono::seconds{ts.tv_sec} + Nanos{ts.tv_nsec}};
}

}  // namespace onehop
