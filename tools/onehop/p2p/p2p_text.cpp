// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/onehop/p2p/p2p_text.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <string_view>

#include "control/p2p/supplicant.hpp"
#include "engine/base/display_name.hpp"

namespace onehop::p2p {

std::string peer_text(const Peer& peer) {
  return fmt::format("{}  {:<24} {:>4} dBm  {}", peer.address, display_name(peer.name),
                     peer.signal_dbm,
                     peer.is_group_owner ? "owns a group"
                     : peer.is_accepting ? "waits with onehop"
                                         : "");
}

tool::Json peer_json(const Peer& peer) {
  return {{"name", display_name(peer.name)},
          {"address", peer.address},
          {"signal_dbm", peer.signal_dbm},
          {"is_group_owner", peer.is_group_owner},
          {"is_accepting", peer.is_accepting}};
}

std::string group_text(const GroupView& view) {
  const Group& group = view.group;
  std::string text =
      fmt::format("{} on {}, {}", display_name(group.ssid), group.interface_name,
                  group.role == Role::owner ? "of which this machine is the owner" : "as a member");
  if (group.frequency_mhz > 0) text += fmt::format(", {} MHz", group.frequency_mhz);
  if (view.width_mhz > 0) text += fmt::format(", {} MHz wide", view.width_mhz);
  if (!view.address.empty()) text += fmt::format(", [{}%{}]", view.address, group.interface_name);
  if (!view.ipv4.empty()) text += ", " + view.ipv4;
  return text;
}

tool::Json group_json(const GroupView& view) {
  const Group& group = view.group;
  return {{"interface", group.interface_name},
          {"ssid", group.ssid},
          {"role", group.role == Role::owner ? "owner" : "client"},
          {"frequency_mhz", group.frequency_mhz},
          {"width_mhz", view.width_mhz},
          {"bssid", mac_text(group.bssid)},
          {"persistent", group.is_persistent},
          {"address", view.address.empty() ? tool::Json(nullptr) : tool::Json(view.address)},
          {"ipv4", view.ipv4.empty() ? tool::Json(nullptr) : tool::Json(view.ipv4)}};
}

std::string wifi_text(const std::string& ssid, const std::string& passphrase) {
  const auto escaped = [](std::string_view text) {
    std::string out;
    for (const char c : text) {
      if (std::string_view{"\\;,:\""}.find(c) != std::string_view::npos) out += '\\';
      out += c;
    }
    return out;
  };
  return "WIFI:T:WPA;S:" + escaped(ssid) + ";P:" + escaped(passphrase) + ";;";
}

}  // namespace onehop::p2p
