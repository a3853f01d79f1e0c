// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Station: this machine as an ordinary WPA2 station of a network, through the same wpa_supplicant.
// So a machine whose radio has no Wi-Fi Direct joins a group that the other one hosts. It also
// takes the radio from NetworkManager, for that and for a group: NetworkManager removes every group
// of its radio that it has not formed itself from wpa_supplicant at once
// (tests/vm/network_manager).
//
//   join: (NetworkManager gives the device) ─▶ AddNetwork, Enabled, Reassociate ─▶ completed
//   leave: RemoveNetwork (RemoveInterface, the device goes back) ─▶ as it was before
//
// What is to be undone is written into a network's id_str, so `leave` needs no file and also undoes
// what a killed process left. For a group that is a network of its own, which is never enabled. The
// radio's other networks stay enabled; ours has priority. Blocks. One thread.
#pragma once

#include <string>
#include <vector>

#include "control/p2p/supplicant.hpp"

namespace onehop::p2p {

struct Access {
  std::string ssid, passphrase;
};

/// join_network returns the network as a Group of which we are a client, when the 4-way handshake
/// is done. `on_text` reports changes of NetworkManager. It undoes everything if it fails. Errors:
/// io_unavailable, privilege_missing, timed_out, interrupted.
[[nodiscard]] Result<Group> join_network(const std::string& interface, const Access& access,
                                         Nanos limit, int stop_fd,
                                         const std::function<void(const std::string&)>& on_text);

/// take_radio makes NetworkManager release the supplicant's radio until leave_networks; false: it
/// does not manage the radio. `supplicant` is opened anew. Errors: as join_network.
[[nodiscard]] Result<bool> take_radio(Supplicant& supplicant, int stop_fd,
                                      const std::function<void(const std::string&)>& on_text);

/// Left is by interface.
struct Left {
  std::vector<std::string> networks;  ///< that join_network had joined
  std::vector<std::string> radios;    ///< that NetworkManager has again
};
/// leave_networks undoes what join_network and take_radio did on `interface`; empty: on all. A
/// group of another radio may belong to a transfer that runs.
[[nodiscard]] Result<Left> leave_networks(Supplicant& supplicant, const std::string& interface);

}  // namespace onehop::p2p
