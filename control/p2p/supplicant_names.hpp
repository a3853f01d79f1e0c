// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Names of wpa_supplicant's D-Bus interface, and numbers of the P2P specification.
#pragma once

#include <cstdint>
#include <string>

#include "control/bus/bus.hpp"

namespace onehop::p2p {

using namespace bus;

inline constexpr const char* root_path = "/fi/w1/wpa_supplicant1";
inline constexpr const char* interface_interface = "fi.w1.wpa_supplicant1.Interface";
inline constexpr const char* p2p_interface = "fi.w1.wpa_supplicant1.Interface.P2PDevice";
inline constexpr const char* wps_interface = "fi.w1.wpa_supplicant1.Interface.WPS";
inline constexpr const char* group_interface = "fi.w1.wpa_supplicant1.Group";
inline constexpr const char* persistent_interface = "fi.w1.wpa_supplicant1.PersistentGroup";
/// What "mode" of a kept group is where we own it (WPAS_MODE_P2P_GO).
inline constexpr const char* owner_mode = "3";
inline constexpr const char* network_interface = "fi.w1.wpa_supplicant1.Network";

/// What a machine announces while onehop waits on it for a connection: an attribute Vendor
/// Extension of Wi-Fi Protected Setup, in all frames of discovery but an access point's. The first
/// three bytes are a vendor's number; this one is reserved for examples, and the word after it
/// marks it as ours.
//= Wi-Fi Simple Configuration Technical Specification 2.0.5, section 12
//= RFC 5612 section 2 (32473)
inline constexpr const char* marks_key = "VendorExtension";
inline const ByteArray accepting_mark = {0x00, 0x7e, 0xd9, 'o', 'n', 'e', 'h', 'o', 'p'};

/// The bit of a peer's group capability that says that it owns a group.
//= Wi-Fi P2P Technical Specification 1.2, table 13
inline constexpr std::int64_t owner_bit = 0x01;

//= Wi-Fi P2P Technical Specification 1.2, table 8
inline constexpr std::int64_t no_common_channel = 7;

/// negotiation_failure is the text for a status code of the P2P specification.
//= Wi-Fi P2P Technical Specification 1.2, table 8
[[nodiscard]] inline std::string negotiation_failure(std::int64_t status) {
  switch (status) {
    case 1: return "the other side is not ready: it has not accepted yet";
    case 2: return "the two are not compatible";
    case 5: return "the other side is busy";
    case no_common_channel: return "the two have no channel in common";
    case 9: return "both insist on owning the group";
    case 10: return "the two use different ways of pairing: a PIN here, a push button there";
    case 11: return "the user there said no";
    default: return "the negotiation failed with status " + std::to_string(status);
  }
}

}  // namespace onehop::p2p
