// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// What a radio can do, as its driver reports it to nl80211: the roles of Wi-Fi Direct, what it
// keeps beside a group, the channels that the country's rules permit, and what it can report while
// frames are sent. No privilege. Any thread, never the engine core: a driver may ask its firmware.
//= Linux include/uapi/linux/nl80211.h: NL80211_ATTR_SUPPORTED_IFTYPES,
//= NL80211_ATTR_INTERFACE_COMBINATIONS, NL80211_ATTR_WIPHY_BANDS, NL80211_ATTR_FEATURE_FLAGS
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "engine/base/result.hpp"

namespace onehop::link {

/// RadioBand: the channels of a band that the rules in force permit.
struct RadioBand {
  std::string_view name;
  std::uint32_t channels = 0;        ///< to be used at all, if only where another one is heard
  std::uint32_t group_channels = 0;  ///< a group may start there: no radar, and no need to hear
                                     ///< another one first
  std::uint32_t radio_mhz = 0;       ///< the widest channel of the radio; 0: it has no such band
  std::uint32_t allowed_mhz = 0;     ///< the widest that the rules leave on one of `channels`
};

struct RadioFacts {
  bool can_own = false;         ///< P2P-GO
  bool can_join = false;        ///< P2P-client
  bool has_p2p_device = false;  ///< P2P-device: peers are sought without taking an interface
  /// Channels that it can be on while it is a station of a network and in a group: 0, not both at
  /// once; 1, the group has to be on the network's channel; 2, on any.
  std::uint32_t channels_beside_station = 0;
  bool has_txq_statistics = false;  ///< it reports mac80211's queues
  bool has_tx_status = false;       ///< a socket learns which frames were acknowledged
  std::array<RadioBand, 3> bands{{{.name = "2.4 GHz"}, {.name = "5 GHz"}, {.name = "6 GHz"}}};

  [[nodiscard]] bool has_p2p() const { return can_own && can_join; }
};

/// read_radio asks about the radio of an interface. Error: io_unavailable. Syscalls: socket, bind,
/// sendto, recvmsg.
[[nodiscard]] Result<RadioFacts> read_radio(const std::string& interface);

/// parse_radio adds what one answer to NL80211_CMD_GET_WIPHY reports. The kernel spreads a radio
/// over several. False: another message, or malformed. Pure.
[[nodiscard]] bool parse_radio(std::span<const std::byte> message, std::uint16_t family,
                               RadioFacts& facts);

/// radio_text is for people: "keeps its network beside a group, on one channel".
[[nodiscard]] std::string radio_text(const RadioFacts& facts);

}  // namespace onehop::link
