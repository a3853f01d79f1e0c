// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Forming a group for a user: what `onehop p2p` and `send --p2p`, `recv --p2p` share. Main thread.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "control/p2p/form_group.hpp"
#include "tools/onehop/p2p/p2p_text.hpp"
#include "tools/onehop/text/report.hpp"

namespace onehop::p2p {

/// Channels for who will own the group, in order: 36 and 149 of the 5 GHz band, on which no radar
/// must be watched for in most countries, then what the radio likes.
[[nodiscard]] inline std::vector<int> owner_channels() { return {5180, 5745, 0}; }

/// Bands for who makes a group that others join: 5 GHz where it may be, then what the radio likes.
[[nodiscard]] inline std::vector<int> host_bands() { return {5, 0}; }

/// Duplicate address detection takes 1 s; the link of a client may need a second more.
inline constexpr Nanos address_limit = 10s;

/// check_rfkill fails where a switch keeps the radio off, which wpa_supplicant does not tell. A
/// radio that is not there passes. Syscalls: openat, getdents64, read.
[[nodiscard]] Result<void> check_rfkill(const std::string& interface,
                                        const std::filesystem::path& devices = "/sys/class/net");

/// open_radio opens wpa_supplicant, sees whether the radio is on, and gives the device the
/// machine's name where it has none.
[[nodiscard]] Result<Supplicant> open_radio(const std::string& interface);

[[nodiscard]] Progress progress_for(const tool::Reporter& reporter);

/// Formed is a group that can be used.
struct Formed {
  Group group;
  std::string address;          ///< ours there, link-local
  bool is_radio_taken = false;  ///< from NetworkManager: leave_networks gives it back
};
/// form_with_address takes the radio from NetworkManager where that has it (take_radio), and leaves
/// the group again where no address comes of it. Its owner also gives IPv4 addresses there, or says
/// why not. Before there are threads.
[[nodiscard]] Result<Formed> form_with_address(Supplicant& supplicant, const Plan& plan,
                                               const tool::Reporter& reporter, int stop_fd);

/// view_of adds what the kernel knows.
[[nodiscard]] GroupView view_of(const Group& group, const std::string& address);
/// tell_group says what the group is, and why it is narrower than it need be.
void tell_group(const Supplicant& supplicant, const GroupView& view,
                const tool::Reporter& reporter);

}  // namespace onehop::p2p
