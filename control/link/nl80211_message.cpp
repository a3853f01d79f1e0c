// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/link/nl80211_message.hpp"

#include <linux/genetlink.h>
#include <linux/nl80211.h>

#include <algorithm>
#include <array>
#include <concepts>

#include "engine/base/system/netlink_message.hpp"

namespace onehop::link {

namespace {

using Octets = std::span<const std::byte>;

// Reader collects whether everything that was looked at had its size.
struct Reader {
  bool is_whole = true;

  template <std::unsigned_integral T>
  T number(Octets value) {
    T out{};
    is_whole &= read_value(value, out);
    return out;
  }
  template <std::unsigned_integral T>
  void count(Octets value, std::optional<std::uint64_t>& out) {
    out = std::min<std::uint64_t>(number<T>(value), counter_max);
  }
  template <std::unsigned_integral T>
  void span(Octets value, Nanos unit, std::optional<Nanos>& out) {
    const auto limit = counter_max / static_cast<std::uint64_t>(unit.count());
    out = unit * static_cast<Nanos::rep>(std::min<std::uint64_t>(number<T>(value), limit));
  }
  template <class F>
  void nested(Octets value, F&& on_attribute) {
    is_whole &= each_attribute(value, std::forward<F>(on_attribute));
  }
};

constexpr std::int64_t bit_rate_unit = 100'000;  // nl80211: units of 100 kbit/s

struct RateParts {
  WifiRate rate;
  bool is_short_guard = false;
  std::optional<std::uint8_t> coded_guard;  // 0, 1, 2: 0.8, 1.6, 3.2 us, alike for HE and EHT
  std::optional<std::uint32_t> bit_rate;
};

void read_generation(Reader& in, int type, Octets value, RateParts& out) {
  WifiRate& rate = out.rate;
  const auto set = [&](WifiGeneration generation) {
    rate.generation = generation;
    rate.mcs = in.number<std::uint8_t>(value);
  };
  switch (type) {
    case NL80211_RATE_INFO_MCS: set(WifiGeneration::ht); break;
    case NL80211_RATE_INFO_VHT_MCS: set(WifiGeneration::vht); break;
    case NL80211_RATE_INFO_HE_MCS: set(WifiGeneration::he); break;
    case NL80211_RATE_INFO_EHT_MCS: set(WifiGeneration::eht); break;
    case NL80211_RATE_INFO_VHT_NSS:
    case NL80211_RATE_INFO_HE_NSS:
    case NL80211_RATE_INFO_EHT_NSS: rate.streams = in.number<std::uint8_t>(value); break;
    case NL80211_RATE_INFO_SHORT_GI: out.is_short_guard = true; break;
    case NL80211_RATE_INFO_HE_GI:
    case NL80211_RATE_INFO_EHT_GI: out.coded_guard = in.number<std::uint8_t>(value); break;
    default: break;
  }
}

void read_width(int type, WifiRate& rate) {
  switch (type) {
    case NL80211_RATE_INFO_5_MHZ_WIDTH: rate.width_mhz = 5; break;
    case NL80211_RATE_INFO_10_MHZ_WIDTH: rate.width_mhz = 10; break;
    case NL80211_RATE_INFO_40_MHZ_WIDTH: rate.width_mhz = 40; break;
    case NL80211_RATE_INFO_80_MHZ_WIDTH: rate.width_mhz = 80; break;
    case NL80211_RATE_INFO_80P80_MHZ_WIDTH:
    case NL80211_RATE_INFO_160_MHZ_WIDTH: rate.width_mhz = 160; break;
    case NL80211_RATE_INFO_320_MHZ_WIDTH: rate.width_mhz = 320; break;
    default: break;
  }
}

// read_rate gives nothing without a bit rate: a driver that has sent nothing yet reports an empty
// set.
void read_rate(Reader& in, Octets nested, std::optional<WifiRate>& out) {
  RateParts parts;
  in.nested(nested, [&](int type, Octets value) {
    if (type == NL80211_RATE_INFO_BITRATE32) parts.bit_rate = in.number<std::uint32_t>(value);
    if (type == NL80211_RATE_INFO_BITRATE && !parts.bit_rate)
      parts.bit_rate = in.number<std::uint16_t>(value);
    read_generation(in, type, value, parts);
    read_width(type, parts.rate);
  });
  if (!in.is_whole || !parts.bit_rate || *parts.bit_rate == 0) return;
  parts.rate.rate = bit_per_s(std::int64_t{*parts.bit_rate} * bit_rate_unit);
  switch (parts.rate.generation) {
    case WifiGeneration::legacy: break;
    case WifiGeneration::ht:
      if (parts.rate.mcs && *parts.rate.mcs < 32)
        parts.rate.streams = static_cast<std::uint8_t>(*parts.rate.mcs / 8 + 1);
      [[fallthrough]];
    case WifiGeneration::vht: parts.rate.guard = parts.is_short_guard ? 400ns : 800ns; break;
    case WifiGeneration::he:
    case WifiGeneration::eht:
      if (parts.coded_guard && *parts.coded_guard <= 2)
        parts.rate.guard = 800ns * (1 << *parts.coded_guard);
      break;
  }
  out = parts.rate;
}

void read_txq(Reader& in, Octets nested, TxqCounters& out) {
  in.nested(nested, [&](int type, Octets value) {
    switch (type) {
      case NL80211_TXQ_STATS_BACKLOG_BYTES:
        in.count<std::uint32_t>(value, out.backlog_bytes);
        break;
      case NL80211_TXQ_STATS_DROPS: in.count<std::uint32_t>(value, out.drops_total); break;
      case NL80211_TXQ_STATS_TX_BYTES: in.count<std::uint32_t>(value, out.tx_bytes_total); break;
      default: break;
    }
  });
}

void add(std::optional<std::uint64_t>& sum, const std::optional<std::uint64_t>& part) {
  if (part) sum = sum.value_or(0) + *part;
}

void add(TxqCounters& sum, const TxqCounters& part) {
  add(sum.backlog_bytes, part.backlog_bytes);
  add(sum.drops_total, part.drops_total);
  add(sum.tx_bytes_total, part.tx_bytes_total);
}

// One nested attribute per TID, each with a nested set of its own that may hold queue statistics.
void read_tids(Reader& in, Octets nested, std::optional<TxqCounters>& out) {
  in.nested(nested, [&](int, Octets tid) {
    in.nested(tid, [&](int type, Octets value) {
      if (type != NL80211_TID_STATS_TXQ_STATS) return;
      TxqCounters part;
      read_txq(in, value, part);
      if (!out) out.emplace();
      add(*out, part);
    });
  });
}

void read_station_info(Reader& in, int type, Octets value, StationMessage& out) {
  switch (type) {
    case NL80211_STA_INFO_TX_BITRATE: read_rate(in, value, out.tx_rate); break;
    case NL80211_STA_INFO_SIGNAL:
      out.signal_dbm = static_cast<std::int8_t>(in.number<std::uint8_t>(value));
      break;
    // The 64-bit totals come beside the 32-bit ones and are preferred: 32 bits wrap after half a
    // minute at 1 Gbit/s.
    case NL80211_STA_INFO_TX_BYTES:
      if (!out.tx_bytes_total) in.count<std::uint32_t>(value, out.tx_bytes_total);
      break;
    case NL80211_STA_INFO_RX_BYTES:
      if (!out.rx_bytes_total) in.count<std::uint32_t>(value, out.rx_bytes_total);
      break;
    case NL80211_STA_INFO_TX_BYTES64: in.count<std::uint64_t>(value, out.tx_bytes_total); break;
    case NL80211_STA_INFO_RX_BYTES64: in.count<std::uint64_t>(value, out.rx_bytes_total); break;
    case NL80211_STA_INFO_TX_PACKETS: in.count<std::uint32_t>(value, out.tx_packets_total); break;
    case NL80211_STA_INFO_TX_RETRIES: in.count<std::uint32_t>(value, out.tx_retries_total); break;
    case NL80211_STA_INFO_TX_FAILED: in.count<std::uint32_t>(value, out.tx_failed_total); break;
    case NL80211_STA_INFO_TX_DURATION:
      in.span<std::uint64_t>(value, 1us, out.tx_airtime_total);
      break;
    case NL80211_STA_INFO_RX_DURATION:
      in.span<std::uint64_t>(value, 1us, out.rx_airtime_total);
      break;
    case NL80211_STA_INFO_TID_STATS: read_tids(in, value, out.txq); break;
    default: break;
  }
}

// parse_message is what `take` makes of the attributes of an nl80211 message, but for its
// interface.
template <class T, class Take>
std::optional<T> parse_message(Octets message, std::uint16_t family, std::uint8_t command,
                               Take&& take) {
  genlmsghdr header;
  const auto attributes = message_body(message, family, header);
  if (!attributes || header.cmd != command) return std::nullopt;
  T out;
  Reader in;
  in.nested(*attributes, [&](int type, Octets value) {
    if (type == NL80211_ATTR_IFINDEX)
      out.ifindex = static_cast<int>(in.number<std::uint32_t>(value) & 0x7fff'ffff);
    take(in, type, value, out);
  });
  if (!in.is_whole || out.ifindex == 0) return std::nullopt;
  return out;
}

void read_survey_info(Reader& in, int type, Octets value, SurveyMessage& out) {
  switch (type) {
    case NL80211_SURVEY_INFO_FREQUENCY: out.frequency_mhz = in.number<std::uint32_t>(value); break;
    case NL80211_SURVEY_INFO_IN_USE: out.is_in_use = true; break;
    case NL80211_SURVEY_INFO_TIME: in.span<std::uint64_t>(value, 1ms, out.active_total); break;
    case NL80211_SURVEY_INFO_TIME_BUSY: in.span<std::uint64_t>(value, 1ms, out.busy_total); break;
    default: break;
  }
}

void read_role(std::uint32_t type, WifiInterfaceMessage& out) {
  if (type == NL80211_IFTYPE_STATION || type == NL80211_IFTYPE_P2P_CLIENT)
    out.role = WifiRole::client;
  if (type == NL80211_IFTYPE_AP || type == NL80211_IFTYPE_P2P_GO) out.role = WifiRole::access_point;
  if (type == NL80211_IFTYPE_ADHOC) out.role = WifiRole::ad_hoc;
  out.is_p2p = type == NL80211_IFTYPE_P2P_CLIENT || type == NL80211_IFTYPE_P2P_GO;
}

/// Narrower ones than 20 MHz are no channels of Wi-Fi as it is meant here.
std::optional<std::uint32_t> width_of(std::uint32_t code) {
  switch (code) {
    case NL80211_CHAN_WIDTH_20_NOHT:
    case NL80211_CHAN_WIDTH_20: return 20;
    case NL80211_CHAN_WIDTH_40: return 40;
    case NL80211_CHAN_WIDTH_80: return 80;
    case NL80211_CHAN_WIDTH_80P80:
    case NL80211_CHAN_WIDTH_160: return 160;
    case NL80211_CHAN_WIDTH_320: return 320;
    default: return std::nullopt;
  }
}

}  // namespace

std::string to_text(const WifiRate& rate) {
  static constexpr std::array<const char*, 5> names{"legacy", "HT", "VHT", "HE", "EHT"};
  std::string text = names[static_cast<std::size_t>(rate.generation)];
  if (rate.mcs) text += " MCS " + std::to_string(*rate.mcs);
  if (rate.streams)
    text += ", " + std::to_string(*rate.streams) + (*rate.streams == 1 ? " stream" : " streams");
  text += ", " + std::to_string(rate.width_mhz) + " MHz";
  if (rate.guard) text += ", guard " + std::to_string(rate.guard->count()) + " ns";
  return text;
}

std::optional<Family> parse_family(Octets message) {
  genlmsghdr header;
  const auto attributes = message_body(message, GENL_ID_CTRL, header);
  if (!attributes || header.cmd != CTRL_CMD_NEWFAMILY) return std::nullopt;
  Family out;
  Reader in;
  in.nested(*attributes, [&](int type, Octets value) {
    if (type == CTRL_ATTR_FAMILY_ID) out.id = in.number<std::uint16_t>(value);
    if (type == CTRL_ATTR_FAMILY_NAME) out.name = read_text(value);
  });
  if (!in.is_whole || out.id < NLMSG_MIN_TYPE || out.name.empty()) return std::nullopt;
  return out;
}

std::optional<StationMessage> parse_station(Octets message, std::uint16_t family) {
  bool has_mac = false;
  const auto take = [&](Reader& in, int type, Octets value, StationMessage& out) {
    if (type == NL80211_ATTR_MAC) has_mac = read_value(value, out.mac);
    if (type == NL80211_ATTR_STA_INFO)
      in.nested(value, [&](int inner, Octets part) { read_station_info(in, inner, part, out); });
  };
  auto out = parse_message<StationMessage>(message, family, NL80211_CMD_NEW_STATION, take);
  return has_mac ? out : std::nullopt;
}

std::optional<WifiInterfaceMessage> parse_wifi_interface(Octets message, std::uint16_t family) {
  const auto take = [](Reader& in, int type, Octets value, WifiInterfaceMessage& out) {
    if (type == NL80211_ATTR_IFNAME) out.name = read_text(value);
    if (type == NL80211_ATTR_IFTYPE) read_role(in.number<std::uint32_t>(value), out);
    if (type == NL80211_ATTR_WIPHY_FREQ) out.frequency_mhz = in.number<std::uint32_t>(value);
    if (type == NL80211_ATTR_CHANNEL_WIDTH)
      out.width_mhz = width_of(in.number<std::uint32_t>(value));
  };
  return parse_message<WifiInterfaceMessage>(message, family, NL80211_CMD_NEW_INTERFACE, take);
}

std::optional<SurveyMessage> parse_survey(Octets message, std::uint16_t family) {
  const auto take = [](Reader& in, int type, Octets value, SurveyMessage& out) {
    if (type == NL80211_ATTR_SURVEY_INFO)
      in.nested(value, [&](int inner, Octets part) { read_survey_info(in, inner, part, out); });
  };
  auto out = parse_message<SurveyMessage>(message, family, NL80211_CMD_NEW_SURVEY_RESULTS, take);
  return out && out->frequency_mhz != 0 ? out : std::nullopt;
}

const SurveyMessage* pick_survey(std::span<const SurveyMessage> surveys,
                                 std::uint32_t frequency_mhz) noexcept {
  const auto in_use = std::ranges::find_if(surveys, &SurveyMessage::is_in_use);
  if (in_use != surveys.end()) return &*in_use;
  if (frequency_mhz == 0) return nullptr;
  const auto at = std::ranges::find(surveys, frequency_mhz, &SurveyMessage::frequency_mhz);
  return at == surveys.end() ? nullptr : &*at;
}

}  // namespace onehop::link
