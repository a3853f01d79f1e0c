// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/law/notice.hpp"

namespace onehop::law {

std::string_view text_of(Notice notice) noexcept {
  switch (notice) {
    case Notice::wdtcp_no_phy_rate:
      return "wdtcp: the link tells no physical rate; the rate follows the measured drain alone "
             "(alpha = 1)";
    case Notice::wdtcp_no_queue:
      return "wdtcp: no lower queue can be read; the rate follows the physical rate alone, without "
             "the linear part";
    case Notice::wdtcp_no_sensor:
      return "wdtcp: neither the physical rate nor a lower queue can be read; safe-range sets the "
             "rate";
    case Notice::cupid_no_airtime:
      return "cupid: the driver does not count busy airtime; safe-range sets the rate";
    case Notice::cupid_no_phy_rate:
      return "cupid: the link tells no physical rate; safe-range sets the rate";
    case Notice::qcut_no_queue:
      return "qcut: this port cannot see the lower queue; the gate is off";
    case Notice::qcut_false_completion:
      return "qcut: frames complete faster than the link can send, so completion does not mean "
             "sent; the gate is off";
  }
  return "";
}

}  // namespace onehop::law
