// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// When the receiver reports: the distances in time, all in one place. Pure.
#pragma once

#include <algorithm>

#include "engine/base/units.hpp"

namespace onehop::transfer {

// Specification.
inline constexpr Nanos report_min = 2ms, report_max = 25ms, report_before_srtt = 5ms;
/// Between reports that are sent because the credit runs out. Shorter: a small ring makes a report of every burst. Longer: 256 KiB
/// of ring would hold 40 Gbit/s back.
inline constexpr Nanos report_credit_min = 25us;
inline constexpr Nanos report_idle = 100ms;  ///< nothing new arrived since the last report

/// report_interval: a quarter of srtt, or what the sender asked for (`told`; 0: nothing). When the sender asked for rare reports,
/// one goes with each PONG, and PINGs come as often as it asked; the timer is for PINGs that were lost.
[[nodiscard]] constexpr Nanos report_interval(Nanos srtt, Nanos told) noexcept {
  if (srtt == 0ns) return report_before_srtt;
  return std::max(std::clamp(srtt / 4, report_min, report_max), told * 5 / 4);
}

/// nack_spacing: at most one NACK in this time.
[[nodiscard]] constexpr Nanos nack_spacing(Nanos told) noexcept { return std::max<Nanos>(1ms, told / 2); }

}  // namespace onehop::transfer
