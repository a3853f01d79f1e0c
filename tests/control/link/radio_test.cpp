// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Goal:   what a radio can do beside its network is read out of nl80211's answer.
// Method: answers put together with libmnl as the kernel does (net/wireless/nl80211.c,
//         nl80211_put_iface_combinations()). tests/vm/p2p_connect reads those of mac80211_hwsim.
#include "control/link/radio.hpp"

#include <catch2/catch.hpp>
#include <libmnl/libmnl.h>
#include <linux/genetlink.h>
#include <linux/nl80211.h>

#include <array>
#include <vector>

using namespace onehop::link;

namespace {

constexpr std::uint16_t family = 28;
using Kinds = std::vector<std::uint16_t>;

struct Limit {
  std::uint32_t count;
  Kinds kinds;
};

/// Answer is one message of NL80211_CMD_NEW_WIPHY.
class Answer {
 public:
  explicit Answer(const Kinds& kinds) : message_{mnl_nlmsg_put_header(buffer_.data())} {
    message_->nlmsg_type = family;
    auto* header =
        static_cast<genlmsghdr*>(mnl_nlmsg_put_extra_header(message_, sizeof(genlmsghdr)));
    header->cmd = NL80211_CMD_NEW_WIPHY;
    put_kinds(NL80211_ATTR_SUPPORTED_IFTYPES, kinds);
  }
  void combine(const std::vector<Limit>& limits, std::uint32_t interfaces, std::uint32_t channels) {
    nlattr* all = mnl_attr_nest_start(message_, NL80211_ATTR_INTERFACE_COMBINATIONS);
    nlattr* one = mnl_attr_nest_start(message_, 1);
    nlattr* list = mnl_attr_nest_start(message_, NL80211_IFACE_COMB_LIMITS);
    std::uint16_t number = 1;
    for (const Limit& limit : limits) {
      nlattr* entry = mnl_attr_nest_start(message_, number++);
      mnl_attr_put_u32(message_, NL80211_IFACE_LIMIT_MAX, limit.count);
      put_kinds(NL80211_IFACE_LIMIT_TYPES, limit.kinds);
      mnl_attr_nest_end(message_, entry);
    }
    mnl_attr_nest_end(message_, list);
    mnl_attr_put_u32(message_, NL80211_IFACE_COMB_MAXNUM, interfaces);
    mnl_attr_put_u32(message_, NL80211_IFACE_COMB_NUM_CHANNELS, channels);
    mnl_attr_nest_end(message_, one);
    mnl_attr_nest_end(message_, all);
  }
  /// band: a channel per entry of `channels`, with its flags.
  void band(std::uint16_t number, std::uint16_t ht, std::uint32_t vht,
            const std::vector<Kinds>& channels) {
    nlattr* all = mnl_attr_nest_start(message_, NL80211_ATTR_WIPHY_BANDS);
    nlattr* one = mnl_attr_nest_start(message_, number);
    if (ht != 0) mnl_attr_put_u16(message_, NL80211_BAND_ATTR_HT_CAPA, ht);
    if (vht != 0) mnl_attr_put_u32(message_, NL80211_BAND_ATTR_VHT_CAPA, vht);
    nlattr* list = mnl_attr_nest_start(message_, NL80211_BAND_ATTR_FREQS);
    for (const Kinds& flags : channels) put_kinds(0, flags);
    mnl_attr_nest_end(message_, list);
    mnl_attr_nest_end(message_, one);
    mnl_attr_nest_end(message_, all);
  }
  void features(std::uint32_t flags, std::array<std::uint8_t, 8> extended) {
    mnl_attr_put_u32(message_, NL80211_ATTR_FEATURE_FLAGS, flags);
    mnl_attr_put(message_, NL80211_ATTR_EXT_FEATURES, extended.size(), extended.data());
  }
  [[nodiscard]] std::span<const std::byte> bytes() const {
    return {reinterpret_cast<const std::byte*>(message_), message_->nlmsg_len};
  }

 private:
  void put_kinds(std::uint16_t type, const Kinds& kinds) {
    nlattr* nest = mnl_attr_nest_start(message_, type);
    for (const std::uint16_t kind : kinds) mnl_attr_put(message_, kind, 0, nullptr);
    mnl_attr_nest_end(message_, nest);
  }
  alignas(4) std::array<char, 4096> buffer_{};
  nlmsghdr* message_;
};

const Kinds all_kinds{NL80211_IFTYPE_STATION, NL80211_IFTYPE_AP, NL80211_IFTYPE_P2P_CLIENT,
                      NL80211_IFTYPE_P2P_GO};

RadioFacts facts_of(const Answer& answer) {
  RadioFacts facts;
  REQUIRE(parse_radio(answer.bytes(), family, facts));
  return facts;
}

}  // namespace

TEST_CASE("a radio with two channels keeps its network on any", "[control][link]") {
  Answer answer{all_kinds};
  answer.combine(
      {{1, {NL80211_IFTYPE_STATION}}, {1, {NL80211_IFTYPE_P2P_CLIENT, NL80211_IFTYPE_P2P_GO}}}, 2,
      2);
  CHECK(facts_of(answer).has_p2p());
  CHECK(facts_of(answer).channels_beside_station == 2);
}

TEST_CASE("a radio with one channel keeps its network on that", "[control][link]") {
  Answer answer{all_kinds};
  answer.combine({{2, {NL80211_IFTYPE_STATION, NL80211_IFTYPE_P2P_CLIENT}}}, 2, 1);
  CHECK(facts_of(answer).channels_beside_station == 1);
}

TEST_CASE("a radio that takes one interface at a time is told of", "[control][link]") {
  Answer none{all_kinds};
  CHECK(facts_of(none).channels_beside_station == 0);
  Answer one{all_kinds};
  one.combine({{1, all_kinds}}, 4, 1);  // one of all these kinds together
  CHECK(facts_of(one).channels_beside_station == 0);
  Answer few{all_kinds};
  few.combine({{2, all_kinds}}, 1, 1);
  CHECK(facts_of(few).channels_beside_station == 0);
}

TEST_CASE("a radio without Wi-Fi Direct has none", "[control][link]") {
  Answer answer{{NL80211_IFTYPE_STATION, NL80211_IFTYPE_AP}};
  CHECK_FALSE(facts_of(answer).has_p2p());
}

TEST_CASE("a band's channels are those that the rules leave, over several answers",
          "[control][link]") {
  Answer first{all_kinds}, second{all_kinds};
  first.band(NL80211_BAND_5GHZ, 2, 4,
             {{}, {NL80211_FREQUENCY_ATTR_DISABLED}, {NL80211_FREQUENCY_ATTR_RADAR}});
  second.band(NL80211_BAND_5GHZ, 0, 0,
              {{NL80211_FREQUENCY_ATTR_NO_IR, NL80211_FREQUENCY_ATTR_NO_320MHZ}});
  second.band(NL80211_BAND_2GHZ, 2, 0, {{NL80211_FREQUENCY_ATTR_NO_80MHZ}});
  RadioFacts facts;
  REQUIRE(parse_radio(first.bytes(), family, facts));
  REQUIRE(parse_radio(second.bytes(), family, facts));
  const RadioBand& wide = facts.bands[1];
  CHECK(wide.channels == 3);
  CHECK(wide.group_channels == 1);
  CHECK(wide.radio_mhz == 160);
  CHECK(wide.allowed_mhz == 320);
  CHECK(facts.bands[0].radio_mhz == 40);
  CHECK(facts.bands[0].allowed_mhz == 40);
  CHECK(facts.bands[2].radio_mhz == 0);
}

TEST_CASE("a radio tells of its queues and of acknowledgements, or not", "[control][link]") {
  Answer answer{all_kinds};
  CHECK_FALSE(facts_of(answer).has_tx_status);
  std::array<std::uint8_t, 8> extended{};
  extended[NL80211_EXT_FEATURE_TXQS / 8] = 1U << NL80211_EXT_FEATURE_TXQS % 8;
  answer.features(NL80211_FEATURE_SK_TX_STATUS, extended);
  CHECK(facts_of(answer).has_tx_status);
  CHECK(facts_of(answer).has_txq_statistics);
}

TEST_CASE("no cut of an answer is read beyond its end", "[control][link]") {
  Answer answer{all_kinds};
  answer.combine({{2, all_kinds}}, 2, 2);
  answer.band(NL80211_BAND_6GHZ, 2, 4, {{}});
  const auto bytes = answer.bytes();
  RadioFacts facts;
  for (std::size_t length = 0; length < bytes.size(); ++length)
    (void)parse_radio(bytes.first(length), family, facts);
  CHECK_FALSE(parse_radio(bytes, family + 1, facts));
}
