// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// N5: messages of generic netlink come from the kernel, and drivers fill them. Whatever the parsers
// accept lies within bounds. Inputs are made by hand here, attribute by attribute, so that HE and
// EHT rates are among them, which no driver of the virtual machine reports.
#include <linux/genetlink.h>
#include <linux/nl80211.h>

#include <cstring>
#include <initializer_list>
#include <random>

#include "control/link/nl80211_message.hpp"
#include "control/link/wifi_facts.hpp"
#include "engine/base/check.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace onehop;

std::uint64_t fuzz::accepted_total = 0;

namespace {

constexpr std::uint16_t family = 0x1c;

/// Builder writes one message; what does not fit is left out.
class Builder {
 public:
  Builder(std::mt19937_64& random, std::span<std::byte, fuzz::input_bytes_max> out)
      : random_{random}, out_{out} {}

  void head(std::uint16_t type, std::uint8_t command) {
    nlmsghdr header{
        .nlmsg_len = 0, .nlmsg_type = type, .nlmsg_flags = 0, .nlmsg_seq = 1, .nlmsg_pid = 0};
    std::memcpy(out_.data(), &header, sizeof header);
    const genlmsghdr general{.cmd = command, .version = 1, .reserved = 0};
    std::memcpy(out_.data() + NLMSG_HDRLEN, &general, sizeof general);
    at_ = NLMSG_HDRLEN + GENL_HDRLEN;
  }
  void put(std::uint16_t type, std::size_t bytes) {
    if (at_ + NLA_HDRLEN + NLA_ALIGN(bytes) > out_.size()) return;
    const nlattr header{.nla_len = static_cast<std::uint16_t>(NLA_HDRLEN + bytes),
                        .nla_type = type};
    std::memcpy(out_.data() + at_, &header, sizeof header);
    at_ += NLA_HDRLEN;
    for (std::size_t i = 0; i < NLA_ALIGN(bytes); ++i)
      out_[at_ + i] = static_cast<std::byte>(i < bytes ? random_() : 0);
    at_ += NLA_ALIGN(bytes);
  }
  /// maybe puts some of the attributes, each of `bytes`.
  void maybe(std::initializer_list<int> types, std::size_t bytes) {
    for (const int type : types) {
      if (random_() % 2 == 0) put(static_cast<std::uint16_t>(type), bytes);
    }
  }
  template <class F>
  void nest(std::uint16_t type, F&& fill) {
    if (at_ + NLA_HDRLEN > out_.size()) return;
    const std::size_t begin = at_;
    at_ += NLA_HDRLEN;
    fill();
    const nlattr header{.nla_len = static_cast<std::uint16_t>(at_ - begin),
                        .nla_type = static_cast<std::uint16_t>(type | NLA_F_NESTED)};
    std::memcpy(out_.data() + begin, &header, sizeof header);
  }
  std::size_t end() {
    const auto length = static_cast<std::uint32_t>(at_);
    std::memcpy(out_.data(), &length, sizeof length);
    return at_;
  }

 private:
  std::mt19937_64& random_;
  std::span<std::byte, fuzz::input_bytes_max> out_;
  std::size_t at_ = 0;
};

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
  switch (random() % 4) {
    case 0:
      b.head(GENL_ID_CTRL, CTRL_CMD_NEWFAMILY);
      b.put(CTRL_ATTR_FAMILY_ID, 2);
      b.put(CTRL_ATTR_FAMILY_NAME, 8);
      break;
    case 1:
      b.head(family, NL80211_CMD_NEW_INTERFACE);
      b.put(NL80211_ATTR_IFINDEX, 4);
      b.maybe({NL80211_ATTR_WIPHY, NL80211_ATTR_IFTYPE, NL80211_ATTR_WIPHY_FREQ,
               NL80211_ATTR_CHANNEL_WIDTH},
              4);
      break;
    case 2:
      b.head(family, NL80211_CMD_NEW_SURVEY_RESULTS);
      b.put(NL80211_ATTR_IFINDEX, 4);
      b.nest(NL80211_ATTR_SURVEY_INFO, [&] {
        b.put(NL80211_SURVEY_INFO_FREQUENCY, 4);
        b.maybe(
            {NL80211_SURVEY_INFO_TIME, NL80211_SURVEY_INFO_TIME_BUSY, NL80211_SURVEY_INFO_TIME_TX},
            8);
      });
      break;
    default: b.head(family, NL80211_CMD_NEW_STATION); put_station(b, random);
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
  ONEHOP_CHECK(accepted <= 1);  // a message is of one kind
  if (accepted != 0) ++fuzz::accepted_total;
  return 0;
}
