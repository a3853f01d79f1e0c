// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/law/notice.hpp"

#include <array>

namespace onehop::law {

std::string_view text_of(Notice notice) noexcept {
  static constexpr std::array<std::string_view, notices_max> texts{
      "wdtcp: the link tells no physical rate; the rate follows the measured drain alone (alpha = "
      "1)",
      "wdtcp: no lower queue can be read; the rate follows the physical rate alone, without the "
      "linear part",
      "wdtcp: neither the physical rate nor a lower queue can be read; safe-range sets the rate",
      "cupid: the driver does not count busy airtime; safe-range sets the rate",
      "cupid: the link tells no physical rate; safe-range sets the rate",
      "qcut: this port cannot see the lower queue; the gate is off",
      "qcut: frames complete faster than the link can send, so completion does not mean sent; the "
      "gate is off"};
  const auto i = static_cast<std::size_t>(notice);
  return i < texts.size() ? texts[i] : std::string_view{};
}

}  // namespace onehop::law
