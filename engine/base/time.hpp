// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// The one place that reads the monotonic clock (CLOCK_MONOTONIC, about 20 ns through the vDSO).
#pragma once

#include "engine/base/units.hpp"

namespace onehop {

/// monotonic_now reads CLOCK_MONOTONIC. Pure code is handed `now` instead of calling this.
[[nodiscard]] Instant monotonic_now() noexcept;

}  // namespace onehop
