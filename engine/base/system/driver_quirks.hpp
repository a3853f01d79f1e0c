// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// What drivers do that their documentation does not say, with onehop's answer: one table. `onehop
// doctor` shows the rows of an interface, docs/hardware.md all of them, and errors take their
// remedy from here. If all drivers can be treated like the unusual one, the code does so without
// the table. Pure, but for read_copy_transmit().
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace onehop {

struct DriverQuirk {
  /// As ethtool names it; * at its end: any rest; Wi-Fi: each of them; kernel: no driver's.
  std::string_view driver;
  std::string_view key;  ///< unique
  std::string_view kernels;
  std::string_view quirk;
  std::string_view answer;  ///< what onehop does
  std::string_view source;
  int errno_value = 0;           ///< the error of AF_XDP by which it is met; 0: none
  std::string_view remedy{};     ///< for that error
  bool takes_link_down = false;  ///< AF_XDP on it interrupts other users of the interface

  [[nodiscard]] bool is_of(std::string_view name, bool is_wifi) const noexcept;
};

[[nodiscard]] std::span<const DriverQuirk> driver_quirks() noexcept;

/// quirk_remedy: the remedy for a known error of this driver, followed by `otherwise` as the second
/// choice; `otherwise` alone if none is known.
[[nodiscard]] std::string quirk_remedy(std::string_view driver, int errno_value,
                                       const std::string& otherwise);

/// link_warning: what a user should know before AF_XDP is opened on this driver; empty: nothing.
[[nodiscard]] std::string link_warning(std::string_view driver, std::string_view interface);

/// CopyTransmit: whether a kernel survives what AF_XDP sends in copy mode (the kernel's row
/// `copy-transmit-panic`), and how that is known.
struct CopyTransmit {
  bool is_sound = true;
  std::string told_by;  ///< "Linux 6.17.3", "its type information"
};
/// BtfWords: which of two types the kernel's type information names.
struct BtfWords {
  bool has_fault = false;  ///< struct xsk_addr_head, of 30f241fcf52a
  bool has_mend = false;   ///< struct xsk_addrs, of 0ebc27a4c67d
};
/// judge_copy_transmit goes by the type information where there is some, for distributions mend
/// kernels without another number; else by the `release` of uname(2).
[[nodiscard]] CopyTransmit judge_copy_transmit(std::string_view release, BtfWords words);
/// find_btf_words looks for them in a kernel's type information.
[[nodiscard]] BtfWords find_btf_words(std::string_view btf) noexcept;
/// read_copy_transmit is of this machine. It takes some milliseconds, once in a process. Syscalls:
/// uname, open, read.
[[nodiscard]] const CopyTransmit& read_copy_transmit();

}  // namespace onehop
