// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Peers and groups of Wi-Fi Direct, as wpa_supplicant's D-Bus interface reports them. Values; any
// thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/base/units.hpp"

namespace onehop::p2p {

/// Peer: a P2P device that was found.
struct Peer {
  std::string path;     ///< of its D-Bus object; a handle for calls
  std::string name;     ///< what the device calls itself: any bytes, from any device in reach
  std::string address;  ///< P2P device address, aa:bb:cc:dd:ee:ff
  int signal_dbm = 0;
  bool is_group_owner = false;  ///< it owns a group now: we can join it, and not negotiate with it
  /// It runs onehop and waits for a connection; an owner of a group does not announce that.
  bool is_accepting = false;
};

enum class Role { owner, client };

/// Group: a Wi-Fi Direct group that this machine is in.
struct Group {
  std::string path;            ///< of the D-Bus object of its interface
  std::string object;          ///< path of its own D-Bus object
  std::string interface_name;  ///< p2p-wlan0-0
  Role role = Role::client;
  std::string ssid;
  std::string passphrase;           ///< WPA2; the owner alone knows it
  std::vector<std::uint8_t> bssid;  ///< the owner's address on the air
  int frequency_mhz = 0;            ///< of the 20 MHz channel that the beacons are sent on
  bool is_persistent = false;
};

/// Pairing: how two devices prove that they are meant (Wi-Fi Protected Setup). A push button admits
/// any device that asks within two minutes; a PIN admits a device that knows it.
struct Pairing {
  enum class Method { button, show_pin, enter_pin };
  Method method = Method::button;
  /// enter_pin: the PIN that the other side shows; show_pin: ours. Empty for a button.
  std::string pin;
};

/// make_pin makes a PIN of Wi-Fi Protected Setup of seven digits: they and their check digit.
//= Wi-Fi Simple Configuration Technical Specification 2.0.5, section 7.4.1
[[nodiscard]] inline std::string make_pin(unsigned digits) {
  digits %= 10'000'000;
  unsigned sum = 0;
  for (unsigned rest = digits * 10, weight = 1; rest > 0; rest /= 10, weight = 4 - weight)
    sum += weight * (rest % 10);
  const unsigned check = (10 - sum % 10) % 10;
  std::string text = std::to_string(digits * 10 + check);
  return std::string(8 - text.size(), '0') + text;
}

/// From this intent on a side is likely the owner.
//= Wi-Fi P2P Technical Specification 1.2 section 3.1.4.2
inline constexpr int likely_owner_intent = 8;

/// Plan: what Formation is to achieve.
struct Plan {
  enum class Task { find, connect, accept, host };
  Task task = Task::find;
  /// Name, or address in upper or lower case. Empty: the only peer that accepts, or if none does
  /// the only peer; accept: any.
  std::string peer;
  Pairing pairing;
  /// 0..15, how much this side wants to own the group; the higher one does. Too low at both ends:
  /// the radio with the slower processor may end up sending the beacons.
  //= Wi-Fi P2P Technical Specification 1.2 section 3.1.4.2
  int owner_intent = 7;
  /// Channels in the order in which they are tried: MHz, or a band in wpa_supplicant's form (host:
  /// 2, 5), or 0 for its own choice. Only the future owner should ask for one: channels that both
  /// sides force must match.
  std::vector<int> frequencies = {0};
  bool is_join = false;  ///< connect: to a group that the peer owns already, and to no other peer
  bool is_persistent = false;
  /// connect without a name: to a peer that accepts, or to the only owner of a group if for a while
  /// none accepts; never to a device that is there for something else.
  bool is_accepting_alone = false;
  Nanos limit = 120s;  ///< after which it gives up; find: after which it ends
};

}  // namespace onehop::p2p
