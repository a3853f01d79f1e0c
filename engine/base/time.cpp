// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "engine/base/time.hpp"

#include <ctime>

namespace onehop {

Instant monotonic_now() noexcept {
  timespec ts{};
  clock_gettime(CLOCK_MONOTONIC, &ts);
  return Instant{Nanos{static_cast<Nanos::rep>(ts.tv_sec) * 1'000'000'000 + ts.tv_nsec}};
}

}  // namespace onehop
