// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// What a radio can do for Wi-Fi Direct, as its driver tells nl80211: whether it can own a group or
// be in one, and whether it keeps its other network meanwhile. No privilege. Any thread, never the
// engine core: a driver may ask its firmware.
//= Linux include/uapi/linux/nl80211.h: NL80211_ATTR_SUPPORTED_IFTYPES,
//= NL80211_ATTR_INTERFACE_COMBINATIONS
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "engine/base/result.hpp"

namespace onehop::p2p {

struct RadioFacts {
  bool can_own = false;   ///< P2P-GO
  bool can_join = false;  ///< P2P-client
  /// Channels that it can be on while it is a station of a network and in a group: 0, not both at
  /// once; 1, the group has to be on the network's channel; 2, on any.
  std::uint32_t channels_beside_station = 0;

  [[nodiscard]] bool has_p2p() const { return can_own && can_join; }
};

/// read_radio asks about the radio of an interface. Error: io_unavailable. Syscalls: socket, bind,
/// sendto, recvmsg.
[[nodiscard]] Result<RadioFacts> read_radio(const std::string& interface);

/// parse_radio reads an answer to NL80211_CMD_GET_WIPHY; nothing: another message, or malformed.
/// Pure.
[[nodiscard]] std::optional<RadioFacts> parse_radio(std::span<const std::byte> message,
                                                    std::uint16_t family);

/// radio_text is for people: "keeps its network beside a group, on one channel".
[[nodiscard]] std::string radio_text(const RadioFacts& facts);

}  // namespace onehop::p2p
