// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/p2p/radio.hpp"

#include <linux/genetlink.h>
#include <linux/nl80211.h>
#include <net/if.h>

#include <algorithm>
#include <array>
#include <bitset>
#include <vector>

#include "control/link/nl80211_socket.hpp"
#include "engine/base/netlink_message.hpp"

namespace onehop::p2p {

namespace {

using Octets = std::span<const std::byte>;
using Kinds = std::bitset<32>;  // of interfaces, by NL80211_IFTYPE_*

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

/// Kinds are listed as attributes whose type is the kind.
Kinds kinds_of(Octets nested) {
  Kinds kinds;
  each_attribute(nested, [&](int type, Octets) {
    if (type >= 0 && type < 32) kinds.set(static_cast<std::size_t>(type));
  });
  return kinds;
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
        if (inner == NL80211_IFACE_LIMIT_TYPES) limit.kinds = kinds_of(part);
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

}  // namespace

std::optional<RadioFacts> parse_radio(Octets message, std::uint16_t family) {
  genlmsghdr header;
  const auto attributes = message_body(message, family, header);
  if (!attributes || header.cmd != NL80211_CMD_NEW_WIPHY) return std::nullopt;
  RadioFacts facts;
  const bool is_whole = each_attribute(*attributes, [&](int type, Octets value) {
    if (type == NL80211_ATTR_SUPPORTED_IFTYPES) {
      const Kinds kinds = kinds_of(value);
      facts.can_own = kinds.test(NL80211_IFTYPE_P2P_GO);
      facts.can_join = kinds.test(NL80211_IFTYPE_P2P_CLIENT);
    }
    if (type != NL80211_ATTR_INTERFACE_COMBINATIONS) return;
    each_attribute(value, [&](int, Octets one) {
      const Combination combination = combination_of(one);
      const bool is_possible =
          has_room_for(combination, {NL80211_IFTYPE_STATION, NL80211_IFTYPE_P2P_GO}) ||
          has_room_for(combination, {NL80211_IFTYPE_STATION, NL80211_IFTYPE_P2P_CLIENT});
      if (is_possible)
        facts.channels_beside_station =
            std::max(facts.channels_beside_station, combination.channels);
    });
  });
  return is_whole ? std::optional{facts} : std::nullopt;
}

Result<RadioFacts> read_radio(const std::string& interface) {
  const std::string attempt = "read what the radio of " + interface + " can do";
  const unsigned ifindex = ::if_nametoindex(interface.c_str());
  if (ifindex == 0) return errno_error(ExitCode::io_unavailable, attempt);
  ONEHOP_TRY(socket, link::Nl80211Socket::open());
  std::optional<RadioFacts> facts;
  ONEHOP_TRYV(socket.wiphy(static_cast<int>(ifindex), [&](Octets message, std::uint16_t family) {
    facts = parse_radio(message, family);
  }));
  if (facts) return *facts;
  return Error{ExitCode::io_unavailable, attempt, "the kernel's answer is not about it", "", 0};
}

std::string radio_text(const RadioFacts& facts) {
  if (!facts.has_p2p()) return "has no Wi-Fi Direct";
  switch (facts.channels_beside_station) {
    case 0: return "cannot be in its network and in a group at once";
    case 1: return "keeps its network beside a group, on the network's channel";
    default: return "keeps its network beside a group, on a channel of its own";
  }
}

}  // namespace onehop::p2p
