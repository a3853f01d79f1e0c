// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Goal:   what a radio can do beside its network is read out of nl80211's answer.
// Method: answers put together with libmnl as the kernel does (net/wireless/nl80211.c,
//         nl80211_put_iface_combinations()). tests/vm/p2p_command reads those of mac80211_hwsim.
#include "control/p2p/radio.hpp"

#include <catch2/catch.hpp>
#include <libmnl/libmnl.h>
#include <linux/genetlink.h>
#include <linux/nl80211.h>

#include <array>
#include <vector>

using namespace onehop::p2p;

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
  const auto facts = parse_radio(answer.bytes(), family);
  REQUIRE(facts);
  return *facts;
}

}  // namespace

TEST_CASE("a radio with two channels keeps its network on any", "[control][p2p]") {
  Answer answer{all_kinds};
  answer.combine(
      {{1, {NL80211_IFTYPE_STATION}}, {1, {NL80211_IFTYPE_P2P_CLIENT, NL80211_IFTYPE_P2P_GO}}}, 2,
      2);
  CHECK(facts_of(answer).has_p2p());
  CHECK(facts_of(answer).channels_beside_station == 2);
}

TEST_CASE("a radio with one channel keeps its network on that", "[control][p2p]") {
  Answer answer{all_kinds};
  answer.combine({{2, {NL80211_IFTYPE_STATION, NL80211_IFTYPE_P2P_CLIENT}}}, 2, 1);
  CHECK(facts_of(answer).channels_beside_station == 1);
}

TEST_CASE("a radio that takes one interface at a time is told of", "[control][p2p]") {
  Answer none{all_kinds};
  CHECK(facts_of(none).channels_beside_station == 0);
  Answer one{all_kinds};
  one.combine({{1, all_kinds}}, 4, 1);  // one of all these kinds together
  CHECK(facts_of(one).channels_beside_station == 0);
  Answer few{all_kinds};
  few.combine({{2, all_kinds}}, 1, 1);
  CHECK(facts_of(few).channels_beside_station == 0);
}

TEST_CASE("a radio without Wi-Fi Direct has none", "[control][p2p]") {
  Answer answer{{NL80211_IFTYPE_STATION, NL80211_IFTYPE_AP}};
  CHECK_FALSE(facts_of(answer).has_p2p());
}

TEST_CASE("no cut of an answer is read beyond its end", "[control][p2p]") {
  Answer answer{all_kinds};
  answer.combine({{2, all_kinds}}, 2, 2);
  const auto bytes = answer.bytes();
  for (std::size_t length = 0; length < bytes.size(); ++length)
    (void)parse_radio(bytes.first(length), family);
  CHECK_FALSE(parse_radio(bytes, family + 1));
}
