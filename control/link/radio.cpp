// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/link/radio.hpp"

#include <linux/genetlink.h>
#include <linux/nl80211.h>
#include <net/if.h>

#include <algorithm>
#include <bitset>
#include <vector>

#include "control/link/nl80211_socket.hpp"
#include "engine/base/system/netlink_message.hpp"

namespace onehop::link {

namespace {

using Octets = std::span<const std::byte>;
using Types = std::bitset<32>;  // of attributes without a value
using Kinds = Types;            // of interfaces, by NL80211_IFTYPE_*

/// Limit: at most `count` interfaces of these kinds at once.
struct Limit {
  Kinds kinds;
  std::uint32_t count = 0;
};
struct Combination {
  std::vector<Limit> limits;
  std::uint32_t interfaces = 0, channels = 0;
};

std::uint32_t number_of(Octets value) {
  std::uint32_t number = 0;
  (void)read_value(value, number);
  return number;
}

/// Kinds and flags are listed as attributes whose type says all.
Types types_of(Octets nested) {
  Types types;
  each_attribute(nested, [&](int type, Octets) {
    if (type >= 0 && type < 32) types.set(static_cast<std::size_t>(type));
  });
  return types;
}

Combination combination_of(Octets nested) {
  Combination found;
  each_attribute(nested, [&](int type, Octets value) {
    if (type == NL80211_IFACE_COMB_MAXNUM) found.interfaces = number_of(value);
    if (type == NL80211_IFACE_COMB_NUM_CHANNELS) found.channels = number_of(value);
    if (type != NL80211_IFACE_COMB_LIMITS) return;
    each_attribute(value, [&](int, Octets one) {
      Limit limit;
      each_attribute(one, [&](int inner, Octets part) {
        if (inner == NL80211_IFACE_LIMIT_MAX) limit.count = number_of(part);
        if (inner == NL80211_IFACE_LIMIT_TYPES) limit.kinds = types_of(part);
      });
      found.limits.push_back(limit);
    });
  });
  return found;
}

/// has_room_for takes one interface of each kind out of the limits. One limit may serve several of
/// them, so each kind takes the first that has room: limits of drivers do not overlap.
bool has_room_for(Combination combination, std::initializer_list<unsigned> kinds) {
  if (combination.interfaces < kinds.size()) return false;
  return std::ranges::all_of(kinds, [&](unsigned kind) {
    const auto free = std::ranges::find_if(combination.limits, [&](const Limit& limit) {
      return limit.count > 0 && limit.kinds.test(kind);
    });
    return free != combination.limits.end() && free->count-- > 0;
  });
}

bool has_bit(Octets value, std::size_t bit) {
  return value.size() > bit / 8 && (std::to_integer<unsigned>(value[bit / 8]) >> bit % 8 & 1) != 0;
}

/// wider: 6 GHz channels have no HT or VHT flags, so each standard may only widen.
void wider(std::uint32_t& mhz, std::uint32_t to_mhz) { mhz = std::max(mhz, to_mhz); }

/// add_channel counts a channel unless the rules in force close it.
void add_channel(Octets nested, RadioBand& band) {
  const Types flags = types_of(nested);
  if (flags.test(NL80211_FREQUENCY_ATTR_DISABLED)) return;
  ++band.channels;
  if (!flags.test(NL80211_FREQUENCY_ATTR_NO_IR) && !flags.test(NL80211_FREQUENCY_ATTR_RADAR))
    ++band.group_channels;
  const bool has_40 = !flags.test(NL80211_FREQUENCY_ATTR_NO_HT40_MINUS) ||
                      !flags.test(NL80211_FREQUENCY_ATTR_NO_HT40_PLUS);
  const bool has_80 = has_40 && !flags.test(NL80211_FREQUENCY_ATTR_NO_80MHZ);
  const bool has_160 = has_80 && !flags.test(NL80211_FREQUENCY_ATTR_NO_160MHZ);
  const bool has_320 = has_160 && !flags.test(NL80211_FREQUENCY_ATTR_NO_320MHZ);
  wider(band.allowed_mhz, has_320 ? 320 : has_160 ? 160 : has_80 ? 80 : has_40 ? 40 : 20);
}

/// add_generations reads the widths that 802.11ax and 802.11be add, of any role.
//= Linux include/linux/ieee80211.h: IEEE80211_HE_PHY_CAP0_CHANNEL_WIDTH_SET_*,
//= IEEE80211_EHT_PHY_CAP0_320MHZ_IN_6GHZ
void add_generations(Octets nested, RadioBand& band) {
  each_attribute(nested, [&](int, Octets role) {
    each_attribute(role, [&](int type, Octets value) {
      if (type == NL80211_BAND_IFTYPE_ATTR_HE_CAP_PHY) {
        if (has_bit(value, 1)) wider(band.radio_mhz, 40);
        if (has_bit(value, 2)) wider(band.radio_mhz, 80);
        if (has_bit(value, 3)) wider(band.radio_mhz, 160);
      }
      if (type == NL80211_BAND_IFTYPE_ATTR_EHT_CAP_PHY && has_bit(value, 1))
        wider(band.radio_mhz, 320);
    });
  });
}

//= Linux include/linux/ieee80211.h: IEEE80211_HT_CAP_SUP_WIDTH_20_40,
//= IEEE80211_VHT_CAP_SUPP_CHAN_WIDTH_MASK
void add_band(Octets nested, RadioBand& band) {
  wider(band.radio_mhz, 20);
  each_attribute(nested, [&](int type, Octets value) {
    if (type == NL80211_BAND_ATTR_HT_CAPA && has_bit(value, 1)) wider(band.radio_mhz, 40);
    if (type == NL80211_BAND_ATTR_VHT_CAPA)
      wider(band.radio_mhz, has_bit(value, 2) || has_bit(value, 3) ? 160 : 80);
    if (type == NL80211_BAND_ATTR_IFTYPE_DATA) add_generations(value, band);
    if (type == NL80211_BAND_ATTR_FREQS)
      each_attribute(value, [&](int, Octets channel) { add_channel(channel, band); });
  });
}

void add_combinations(Octets nested, RadioFacts& facts) {
  each_attribute(nested, [&](int, Octets one) {
    const Combination combination = combination_of(one);
    const bool is_possible =
        has_room_for(combination, {NL80211_IFTYPE_STATION, NL80211_IFTYPE_P2P_GO}) ||
        has_room_for(combination, {NL80211_IFTYPE_STATION, NL80211_IFTYPE_P2P_CLIENT});
    if (is_possible)
      facts.channels_beside_station = std::max(facts.channels_beside_station, combination.channels);
  });
}

}  // namespace

bool parse_radio(Octets message, std::uint16_t family, RadioFacts& facts) {
  genlmsghdr header;
  const auto attributes = message_body(message, family, header);
  if (!attributes || header.cmd != NL80211_CMD_NEW_WIPHY) return false;
  return each_attribute(*attributes, [&](int type, Octets value) {
    if (type == NL80211_ATTR_SUPPORTED_IFTYPES) {
      const Kinds kinds = types_of(value);
      facts.can_own = kinds.test(NL80211_IFTYPE_P2P_GO);
      facts.can_join = kinds.test(NL80211_IFTYPE_P2P_CLIENT);
      facts.has_p2p_device = kinds.test(NL80211_IFTYPE_P2P_DEVICE);
    }
    if (type == NL80211_ATTR_INTERFACE_COMBINATIONS) add_combinations(value, facts);
    if (type == NL80211_ATTR_FEATURE_FLAGS)
      facts.has_tx_status = (number_of(value) & NL80211_FEATURE_SK_TX_STATUS) != 0;
    if (type == NL80211_ATTR_EXT_FEATURES)
      facts.has_txq_statistics = has_bit(value, NL80211_EXT_FEATURE_TXQS);
    if (type != NL80211_ATTR_WIPHY_BANDS) return;
    each_attribute(value, [&](int band, Octets nested) {
      if (band == NL80211_BAND_2GHZ) add_band(nested, facts.bands[0]);
      if (band == NL80211_BAND_5GHZ) add_band(nested, facts.bands[1]);
      if (band == NL80211_BAND_6GHZ) add_band(nested, facts.bands[2]);
    });
  });
}

Result<RadioFacts> read_radio(const std::string& interface) {
  const std::string attempt = "read what the radio of " + interface + " can do";
  const unsigned ifindex = ::if_nametoindex(interface.c_str());
  if (ifindex == 0) return errno_error(ExitCode::io_unavailable, attempt);
  ONEHOP_TRY(socket, Nl80211Socket::open());
  RadioFacts facts;
  bool is_found = false;
  ONEHOP_TRYV(socket.wiphy(static_cast<int>(ifindex), [&](Octets message, std::uint16_t family) {
    is_found |= parse_radio(message, family, facts);
  }));
  if (is_found) return facts;
  return Error{ExitCode::io_unavailable, attempt, "the kernel's answer is not about it"};
}

std::string radio_text(const RadioFacts& facts) {
  if (!facts.has_p2p()) return "has no Wi-Fi Direct";
  switch (facts.channels_beside_station) {
    case 0: return "cannot be in its network and in a group at once";
    case 1: return "keeps its network beside a group, on the network's channel";
    default: return "keeps its network beside a group, on a channel of its own";
  }
}

}  // namespace onehop::link
