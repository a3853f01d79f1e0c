// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Notices: what a law reports to its user once, such as a missing sensor. A law cannot print; it
// sets a bit, the bit travels in RateState, and the command prints the text when it first sees it.
#pragma once

#include <cstdint>
#include <string_view>

#include "engine/base/units.hpp"

namespace onehop::law {

enum class Notice : std::uint8_t {
  wdtcp_no_phy_rate,
  wdtcp_no_queue,
  wdtcp_no_sensor,
  cupid_no_airtime,
  cupid_no_phy_rate,
  qcut_no_queue,
  qcut_false_completion,
};
inline constexpr std::uint32_t notices_max = 7;  // derived: how many Notice has

[[nodiscard]] constexpr std::uint32_t bit_of(Notice notice) noexcept {
  return 1U << static_cast<unsigned>(notice);
}

/// text_of is one sentence for standard error: what is missing and what the law does instead.
[[nodiscard]] std::string_view text_of(Notice notice) noexcept;

/// SensorTimeout distinguishes a missing sensor from one that has not read anything yet.
class SensorTimeout {
 public:
  /// step returns true once the sensor has been away for 300 ms.
  [[nodiscard]] bool step(Instant now, bool is_there) noexcept {
    if (is_there || !has_begun_) {
      has_begun_ = true;
      since_ = now;
    }
    return now - since_ >= grace;
  }

 private:
  // Derived: three periods of the slowest sensor (a station dump every 100 ms). Low: a notice at
  // every start. High: none in a short transfer.
  static constexpr Nanos grace{300ms};
  Instant since_{};
  bool has_begun_ = false;
};

}  // namespace onehop::law
