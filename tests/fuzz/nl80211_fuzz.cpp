// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// N5: messages of generic netlink come from the kernel, and drivers fill them. Whatever the parsers
// accept lies within bounds. Inputs are made by hand here, attribute by attribute, so that HE and
// EHT rates are among them, which no driver of the virtual machine reports.
#include <linux/genetlink.h>
#include <linux/nl80211.h>

#include <random>

#include "control/link/nl80211_message.hpp"
#include "control/link/radio.hpp"
#include "control/link/wifi_facts.hpp"
#include "engine/base/check.hpp"
#include "tests/fuzz/fuzz.hpp"
#include "tests/fuzz/netlink_builder.hpp"

using namespace onehop;

std::uint64_t fuzz::accepted_total = 0;

namespace {

constexpr std::uint16_t family = 0x1c;
using Builder = fuzz::NetlinkBuilder;

void head(Builder& b, std::uint16_t type, std::uint8_t command) {
  b.head(type, genlmsghdr{.cmd = command, .version = 1, .reserved = 0});
}

void put_rate(Builder& b, std::uint64_t choice) {
  b.put(NL80211_RATE_INFO_BITRATE32, 4);
  switch (choice % 5) {
    case 1: b.maybe({NL80211_RATE_INFO_MCS}, 1); break;
    case 2: b.maybe({NL80211_RATE_INFO_VHT_MCS, NL80211_RATE_INFO_VHT_NSS}, 1); break;
    case 3:
      b.maybe({NL80211_RATE_INFO_HE_MCS, NL80211_RATE_INFO_HE_NSS, NL80211_RATE_INFO_HE_GI}, 1);
      break;
    case 4:
      b.maybe({NL80211_RATE_INFO_EHT_MCS, NL80211_RATE_INFO_EHT_NSS, NL80211_RATE_INFO_EHT_GI}, 1);
      break;
    default: break;
  }
  b.maybe({NL80211_RATE_INFO_SHORT_GI, NL80211_RATE_INFO_160_MHZ_WIDTH}, 0);
}

void put_station(Builder& b, std::mt19937_64& random) {
  b.put(NL80211_ATTR_IFINDEX, 4);
  b.put(NL80211_ATTR_MAC, 6);
  b.nest(NL80211_ATTR_STA_INFO, [&] {
    b.nest(NL80211_STA_INFO_TX_BITRATE, [&] { put_rate(b, random()); });
    b.maybe({NL80211_STA_INFO_TX_PACKETS, NL80211_STA_INFO_TX_RETRIES, NL80211_STA_INFO_TX_FAILED,
             NL80211_STA_INFO_TX_BYTES},
            4);
    b.maybe(
        {NL80211_STA_INFO_TX_BYTES64, NL80211_STA_INFO_TX_DURATION, NL80211_STA_INFO_RX_DURATION},
        8);
    b.nest(NL80211_STA_INFO_TID_STATS, [&] {
      for (std::uint64_t tid = 1, tids = random() % 4; tid <= tids; ++tid) {
        b.nest(static_cast<std::uint16_t>(tid), [&] {
          b.maybe({NL80211_TID_STATS_TX_MSDU}, 8);
          b.nest(NL80211_TID_STATS_TXQ_STATS, [&] {
            b.maybe({NL80211_TXQ_STATS_BACKLOG_BYTES, NL80211_TXQ_STATS_TX_BYTES,
                     NL80211_TXQ_STATS_DROPS},
                    4);
          });
        });
      }
    });
  });
}

void put_band(Builder& b, std::mt19937_64& random) {
  b.maybe({NL80211_BAND_ATTR_HT_CAPA}, 2);
  b.maybe({NL80211_BAND_ATTR_VHT_CAPA}, 4);
  b.nest(NL80211_BAND_ATTR_FREQS, [&] {
    for (std::uint64_t i = 0, channels = random() % 4; i < channels; ++i) {
      b.nest(static_cast<std::uint16_t>(i), [&] {
        b.maybe({NL80211_FREQUENCY_ATTR_DISABLED, NL80211_FREQUENCY_ATTR_NO_IR,
                 NL80211_FREQUENCY_ATTR_RADAR, NL80211_FREQUENCY_ATTR_NO_HT40_MINUS,
                 NL80211_FREQUENCY_ATTR_NO_80MHZ},
                0);
      });
    }
  });
  b.nest(NL80211_BAND_ATTR_IFTYPE_DATA, [&] {
    b.nest(1, [&] {
      b.maybe({NL80211_BAND_IFTYPE_ATTR_HE_CAP_PHY, NL80211_BAND_IFTYPE_ATTR_EHT_CAP_PHY},
              random() % 12);
    });
  });
}

void put_radio(Builder& b, std::mt19937_64& random) {
  const auto put_kinds = [&](std::uint16_t type) {
    b.nest(type, [&] {
      b.maybe({NL80211_IFTYPE_STATION, NL80211_IFTYPE_P2P_GO, NL80211_IFTYPE_P2P_CLIENT,
               NL80211_IFTYPE_P2P_DEVICE},
              0);
    });
  };
  put_kinds(NL80211_ATTR_SUPPORTED_IFTYPES);
  b.nest(NL80211_ATTR_INTERFACE_COMBINATIONS, [&] {
    b.nest(1, [&] {
      b.maybe({NL80211_IFACE_COMB_MAXNUM, NL80211_IFACE_COMB_NUM_CHANNELS}, 4);
      b.nest(NL80211_IFACE_COMB_LIMITS, [&] {
        b.nest(1, [&] {
          b.maybe({NL80211_IFACE_LIMIT_MAX}, 4);
          put_kinds(NL80211_IFACE_LIMIT_TYPES);
        });
      });
    });
  });
  b.maybe({NL80211_ATTR_FEATURE_FLAGS}, 4);
  b.maybe({NL80211_ATTR_EXT_FEATURES}, random() % 8);
  b.nest(NL80211_ATTR_WIPHY_BANDS, [&] {
    for (const int band : {NL80211_BAND_2GHZ, NL80211_BAND_5GHZ, NL80211_BAND_6GHZ})
      b.nest(static_cast<std::uint16_t>(band), [&] { put_band(b, random); });
  });
}

void check_rate(const std::optional<link::WifiRate>& rate) {
  if (!rate) return;
  ONEHOP_CHECK(rate->rate > BytesPerSecond{0});
  ONEHOP_CHECK(rate->width_mhz >= 5);
  ONEHOP_CHECK(rate->width_mhz <= 320);
  if (rate->guard) ONEHOP_CHECK(*rate->guard >= 400ns);
  if (rate->guard) ONEHOP_CHECK(*rate->guard <= 3200ns);
  if (rate->generation == link::WifiGeneration::legacy) ONEHOP_CHECK(!rate->guard);
}

void check_station(const link::StationMessage& station) {
  ONEHOP_CHECK(station.ifindex > 0);
  check_rate(station.tx_rate);
  link::WifiFacts wifi;
  law::LinkFacts facts;
  wifi.add_station(station, Instant{1s}, 2ms, facts);
  if (facts.exact_queue) ONEHOP_CHECK(facts.exact_queue->value.queue.occupancy >= Bytes{0});
  if (facts.exact_queue) ONEHOP_CHECK(facts.exact_queue->value.queue.drained_total >= Bytes{0});
  if (facts.phy_rate) ONEHOP_CHECK(station.tx_rate.has_value());
  if (facts.own_airtime && facts.own_airtime->value.tx_total)
    ONEHOP_CHECK(*facts.own_airtime->value.tx_total >= 0ns);
  std::array<link::StationMessage, 1> list{station};
  wifi.add_list(list, std::nullopt, Instant{1s}, 1s, facts);
  wifi.add_list(list, std::nullopt, Instant{2s}, 1s, facts);
  ONEHOP_CHECK(facts.stations->value == 1);
}

}  // namespace

std::size_t fuzz::make_valid(std::uint64_t seed, std::span<std::byte, input_bytes_max> out) {
  std::mt19937_64 random{seed};
  Builder b{random, out};
  switch (random() % 5) {
    case 0:
      head(b, GENL_ID_CTRL, CTRL_CMD_NEWFAMILY);
      b.put(CTRL_ATTR_FAMILY_ID, 2);
      b.put(CTRL_ATTR_FAMILY_NAME, 8);
      break;
    case 1:
      head(b, family, NL80211_CMD_NEW_INTERFACE);
      b.put(NL80211_ATTR_IFINDEX, 4);
      b.maybe({NL80211_ATTR_WIPHY, NL80211_ATTR_IFTYPE, NL80211_ATTR_WIPHY_FREQ,
               NL80211_ATTR_CHANNEL_WIDTH},
              4);
      break;
    case 2:
      head(b, family, NL80211_CMD_NEW_SURVEY_RESULTS);
      b.put(NL80211_ATTR_IFINDEX, 4);
      b.nest(NL80211_ATTR_SURVEY_INFO, [&] {
        b.put(NL80211_SURVEY_INFO_FREQUENCY, 4);
        b.maybe(
            {NL80211_SURVEY_INFO_TIME, NL80211_SURVEY_INFO_TIME_BUSY, NL80211_SURVEY_INFO_TIME_TX},
            8);
      });
      break;
    case 3:
      head(b, family, NL80211_CMD_NEW_WIPHY);
      put_radio(b, random);
      break;
    default: head(b, family, NL80211_CMD_NEW_STATION); put_station(b, random);
  }
  return b.end();
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span message{reinterpret_cast<const std::byte*>(data), size};
  int accepted = 0;
  if (const auto found = link::parse_family(message)) {
    ++accepted;
    ONEHOP_CHECK(found->id >= NLMSG_MIN_TYPE);
    ONEHOP_CHECK(found->name.size() < size);
  }
  if (const auto interface = link::parse_wifi_interface(message, family)) {
    ++accepted;
    ONEHOP_CHECK(interface->ifindex > 0);
  }
  if (const auto survey = link::parse_survey(message, family)) {
    ++accepted;
    ONEHOP_CHECK(survey->frequency_mhz > 0);
    if (survey->active_total) ONEHOP_CHECK(*survey->active_total >= 0ns);
    if (survey->busy_total) ONEHOP_CHECK(*survey->busy_total >= 0ns);
  }
  if (const auto station = link::parse_station(message, family)) {
    ++accepted;
    check_station(*station);
  }
  if (link::RadioFacts radio; link::parse_radio(message, family, radio)) {
    ++accepted;
    for (const link::RadioBand& band : radio.bands) {
      ONEHOP_CHECK(band.group_channels <= band.channels);
      ONEHOP_CHECK(band.radio_mhz <= 320);
      ONEHOP_CHECK(band.allowed_mhz <= 320);
    }
    ONEHOP_CHECK(!link::radio_text(radio).empty());
  }
  ONEHOP_CHECK(accepted <= 1);  // a message is of one kind
  if (accepted != 0) ++fuzz::accepted_total;
  return 0;
}
