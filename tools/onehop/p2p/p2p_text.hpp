// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// How peers and groups are shown. Pure.
#pragma once

#include <string>

#include "control/p2p/types.hpp"
#include "tools/onehop/text/qr_code.hpp"
#include "tools/onehop/text/report.hpp"

namespace onehop::p2p {

[[nodiscard]] std::string peer_text(const Peer& peer);
[[nodiscard]] tool::Json peer_json(const Peer& peer);

/// GroupView: a group with what the kernel knows of it.
struct GroupView {
  Group group;
  std::string address;  ///< our link-local one there; empty: none yet
  int width_mhz = 0;    ///< of the channel; 0: not known
  std::string ipv4;     ///< our IPv4 address there; empty: none
};
[[nodiscard]] std::string group_text(const GroupView& view);
[[nodiscard]] tool::Json group_json(const GroupView& view);

/// wifi_text is what a phone reads out of a QR code to join a network: "WIFI:T:WPA;S:...;P:...;;".
//= ZXing wiki "Barcode Contents", Wi-Fi Network config
[[nodiscard]] std::string wifi_text(const std::string& ssid, const std::string& passphrase);
using tool::qr_code;

}  // namespace onehop::p2p
