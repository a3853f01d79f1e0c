// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Station: this machine as an ordinary WPA2 station of a network, through the same wpa_supplicant.
// So a machine whose radio has no Wi-Fi Direct joins a group that the other one hosts.
//
//   join: (NetworkManager gives the device) ─▶ AddNetwork, Enabled, Reassociate ─▶ completed
//   leave: RemoveNetwork (RemoveInterface, the device goes back) ─▶ as it was before
//
// What is to be undone is written into the network's id_str, so `leave` needs no file and also
// undoes what a killed process left. The radio's other networks stay enabled; ours has priority.
// Blocks. One thread.
#pragma once

#include <string>
#include <vector>

#include "control/p2p/supplicant.hpp"

namespace onehop::p2p {

struct Access {
  std::string ssid, passphrase;
};

/// join_network returns the network as a Group of which we are a client, when the 4-way handshake
/// is done. `on_text` is told what is done to NetworkManager. Undone when it fails. Errors:
/// io_unavailable, privilege_missing, timed_out, interrupted.
[[nodiscard]] Result<Group> join_network(const std::string& interface, const Access& access,
                                         Nanos limit, int stop_fd,
                                         const std::function<void(const std::string&)>& on_text);

/// leave_networks removes all that join_network made, and returns their names.
[[nodiscard]] Result<std::vector<std::string>> leave_networks(Supplicant& supplicant);

}  // namespace onehop::p2p
