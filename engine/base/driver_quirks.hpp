// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// What drivers do that their documentation does not say, each with what onehop does about it: one
// table. `onehop doctor` shows the rows of an interface, docs/hardware.md all of them, and errors
// take their remedy from here. Where all drivers can be treated like the strange one, the code does
// that and asks no table. Pure.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace onehop {

struct DriverQuirk {
  std::string_view driver;  ///< as ethtool names it; * at its end: any rest; Wi-Fi: each of them
  std::string_view key;     ///< unique
  std::string_view kernels;
  std::string_view quirk;
  std::string_view answer;  ///< what onehop does
  std::string_view source;
  int errno_value = 0;        ///< the error of AF_XDP by which it is met; 0: none
  std::string_view remedy{};  ///< for that error

  [[nodiscard]] bool is_of(std::string_view name, bool is_wifi) const noexcept;
};

[[nodiscard]] std::span<const DriverQuirk> driver_quirks() noexcept;

/// quirk_remedy: what helps against an error that this driver is known for, followed by `otherwise`
/// as the second choice; `otherwise` alone where nothing is known.
[[nodiscard]] std::string quirk_remedy(std::string_view driver, int errno_value,
                                       const std::string& otherwise);

}  // namespace onehop
