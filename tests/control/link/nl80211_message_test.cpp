// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// nl80211's parsers on messages recorded from a kernel with mac80211_hwsim
// (recorded/nl80211/README.md), and on hostile ones made from them. Expected numbers are what `iw`
// said of the same state, or what the recording script did.
#include <catch2/catch.hpp>

#include <linux/genetlink.h>
#include <linux/nl80211.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <span>
#include <utility>

#include "control/link/nl80211_message.hpp"
#include "tests/control/link/recorded.hpp"

namespace onehop::link {
namespace {

std::uint16_t family_id() {
  const auto family = parse_family(recorded_binary("family.bin").front());
  REQUIRE(family);
  return family->id;
}

template <class Parse>
auto parse_all(const std::string& name, Parse parse) {
  std::vector<typename decltype(parse(Message{}, family_id()))::value_type> out;
  for (const Message& message : recorded_binary(name)) {
    const auto parsed = parse(message, family_id());
    REQUIRE(parsed);
    out.push_back(*parsed);
  }
  return out;
}

constexpr MacAddress station_1{std::byte{2}, std::byte{0}, std::byte{0},
                               std::byte{0}, std::byte{1}, std::byte{0}};
constexpr MacAddress station_2{std::byte{2}, std::byte{0}, std::byte{0},
                               std::byte{0}, std::byte{2}, std::byte{0}};

StationMessage station_of(const std::string& name, const MacAddress& mac) {
  for (const StationMessage& station : parse_all(name, parse_station)) {
    if (station.mac == mac) return station;
  }
  FAIL("no such station in " << name);
  return {};
}

const std::vector<std::string> all_files{
    "family.bin",       "interface_ap.bin",        "interface_sta.bin",     "stations_ap.bin",
    "stations_sta.bin", "stations_ap_backlog.bin", "stations_ap_lossy.bin", "survey_ap.bin",
    "survey_sta.bin"};

}  // namespace

TEST_CASE("the controller's answer names nl80211 and its id", "[control][link][nl80211]") {
  const auto family = parse_family(recorded_binary("family.bin").front());
  REQUIRE(family);
  CHECK(family->name == "nl80211");
  CHECK(family->id >= NLMSG_MIN_TYPE);
}

TEST_CASE("recorded interfaces tell role and channel", "[control][link][nl80211]") {
  const auto ap = parse_all("interface_ap.bin", parse_wifi_interface);
  REQUIRE(ap.size() == 1);
  CHECK(ap[0].name == "wlan0");
  CHECK(ap[0].role == WifiRole::access_point);
  CHECK(ap[0].frequency_mhz == 5180U);
  const auto client = parse_all("interface_sta.bin", parse_wifi_interface);
  REQUIRE(client.size() == 1);
  CHECK(client[0].role == WifiRole::client);
  CHECK(client[0].frequency_mhz == 5180U);
  CHECK_FALSE(ap[0].is_p2p);
  CHECK_FALSE(client[0].is_p2p);
}

TEST_CASE("an interface of a Wi-Fi Direct group is one by its type", "[control][link][nl80211]") {
  auto message = recorded_binary("interface_sta.bin").front();
  const nlattr header{.nla_len = 8, .nla_type = NL80211_ATTR_IFTYPE};
  const auto type = std::ranges::search(message, std::as_bytes(std::span{&header, 1}));
  REQUIRE_FALSE(type.empty());
  for (const auto& [value, role] : {std::pair{NL80211_IFTYPE_P2P_CLIENT, WifiRole::client},
                                    std::pair{NL80211_IFTYPE_P2P_GO, WifiRole::access_point}}) {
    type.begin()[sizeof header] = static_cast<std::byte>(value);
    const auto interface = parse_wifi_interface(message, family_id());
    REQUIRE(interface);
    CHECK(interface->is_p2p);
    CHECK(interface->role == role);
  }
}

// Bounds: 303 frames of 1400 bytes were sent to each; they carry 42 bytes of headers, and a few of
// 802.11's.
TEST_CASE("a recorded station tells its rate, its counters and its queues",
          "[control][link][nl80211]") {
  for (const MacAddress& mac : {station_1, station_2}) {
    const StationMessage station = station_of("stations_ap.bin", mac);
    REQUIRE(station.tx_rate);
    CHECK(station.tx_rate->generation == WifiGeneration::vht);
    REQUIRE(station.tx_rate->mcs);
    CHECK(*station.tx_rate->mcs <= 9);
    REQUIRE(station.tx_rate->streams);
    CHECK(*station.tx_rate->streams >= 1);
    CHECK(station.tx_rate->rate >= bit_per_s(6'500'000));
    CHECK(station.tx_packets_total >= 303U);
    CHECK(station.tx_bytes_total >= 303U * 1428U);
    CHECK(station.tx_failed_total == 0U);
    REQUIRE(station.signal_dbm);
    CHECK(*station.signal_dbm < 0);
    REQUIRE(station.txq);
    CHECK(station.txq->backlog_bytes == 0U);
    CHECK(station.txq->tx_bytes_total >= 303U * 1442U);
  }
  const auto client = parse_all("stations_sta.bin", parse_station);
  REQUIRE(client.size() == 1);
  CHECK(client[0].tx_packets_total >= 100U);
}

// Bounds: of 300 frames the socket's send buffer of 212,992 bytes takes 92 (2304 each), and all of
// them wait in mac80211.
TEST_CASE("an access point that holds its frames back shows as backlog of the station's queues",
          "[control][link][nl80211]") {
  const StationMessage waits = station_of("stations_ap_backlog.bin", station_1);
  REQUIRE(waits.txq);
  CHECK(waits.txq->backlog_bytes >= 80 * 1442U);
  CHECK(waits.txq->backlog_bytes <= 100 * 1600U);
}

// Bounds: the medium lost every tenth of the data frames it was given. Retries are reported and
// stay 0: mac80211 counts none for frames of an aggregate whose status does not come as an
// aggregate's.
TEST_CASE("a medium that loses shows as failed frames", "[control][link][nl80211]") {
  const StationMessage lossy = station_of("stations_ap_lossy.bin", station_2);
  REQUIRE(lossy.tx_failed_total);
  CHECK(*lossy.tx_failed_total >= 5);
  CHECK(*lossy.tx_failed_total <= 40);
  CHECK(lossy.tx_retries_total == 0U);
}

TEST_CASE("hwsim's airtime is zero for ever, and its survey tells the busy time",
          "[control][link][nl80211]") {
  CHECK(station_of("stations_ap.bin", station_1).tx_airtime_total == Nanos{0});
  const auto surveys = parse_all("survey_sta.bin", parse_survey);
  const SurveyMessage* ours = pick_survey(surveys, 5180);
  REQUIRE(ours != nullptr);
  CHECK(ours->frequency_mhz == 5180);
  CHECK(ours->active_total > 0ms);
  CHECK(ours->busy_total > 0ms);
  CHECK(ours->busy_total < ours->active_total);
  CHECK(pick_survey(surveys, 2437) == nullptr);
  CHECK(pick_survey(surveys, 0) == nullptr);
}

TEST_CASE("a rate reads as people write it", "[control][link][nl80211]") {
  WifiRate rate{.rate = mbit_per_s(156),
                .generation = WifiGeneration::vht,
                .mcs = std::uint8_t{5},
                .streams = std::uint8_t{3},
                .width_mhz = 80,
                .guard = 400ns};
  CHECK(to_text(rate) == "VHT MCS 5, 3 streams, 80 MHz, guard 400 ns");
  CHECK(to_text(WifiRate{}) == "legacy, 20 MHz");
}

TEST_CASE("a message of another family, command or kind gives nothing",
          "[control][link][nl80211]") {
  const std::uint16_t id = family_id();
  const Message station = recorded_binary("stations_sta.bin").front();
  CHECK(parse_station(station, id));
  CHECK_FALSE(parse_station(station, static_cast<std::uint16_t>(id + 1)));
  CHECK_FALSE(parse_survey(station, id));
  CHECK_FALSE(parse_wifi_interface(station, id));
  CHECK_FALSE(parse_family(station));
}

// Each cut is copied into a buffer of its exact size, so that a sanitizer sees a read beyond it.
TEST_CASE("N5 an nl80211 message cut anywhere is refused", "[control][link][nl80211]") {
  const std::uint16_t id = family_id();
  for (const std::string& name : all_files) {
    for (const Message& message : recorded_binary(name)) {
      for (std::size_t size = 0; size < message.size(); size += 1 + size % 3) {
        const Message cut{message.begin(), message.begin() + static_cast<std::ptrdiff_t>(size)};
        CHECK_FALSE(parse_family(cut));
        CHECK_FALSE(parse_station(cut, id));
        CHECK_FALSE(parse_wifi_interface(cut, id));
        CHECK_FALSE(parse_survey(cut, id));
      }
    }
  }
}

TEST_CASE("N5 an nl80211 attribute longer than its message, or without length, is refused",
          "[control][link][nl80211]") {
  Message message = recorded_binary("stations_sta.bin").front();
  nlattr attribute;
  constexpr std::size_t first_at = NLMSG_HDRLEN + GENL_HDRLEN;
  std::memcpy(&attribute, message.data() + first_at, sizeof attribute);
  SECTION("too long") { attribute.nla_len = 0xffff; }
  SECTION("shorter than its header") { attribute.nla_len = 3; }
  SECTION("zero, which would never end") { attribute.nla_len = 0; }
  std::memcpy(message.data() + first_at, &attribute, sizeof attribute);
  CHECK_FALSE(parse_station(message, family_id()));
}

TEST_CASE("N5 nl80211 messages with random bytes changed never give negative or absurd values",
          "[control][link][nl80211]") {
  constexpr unsigned seed = 20261121;
  CAPTURE(seed);
  std::mt19937 random{seed};
  const std::uint16_t id = family_id();
  for (const std::string& name : all_files) {
    for (const Message& original : recorded_binary(name)) {
      for (int round = 0; round < 200; ++round) {
        Message m = original;
        for (int i = 0; i < 3; ++i) m[random() % m.size()] = static_cast<std::byte>(random());
        if (const auto station = parse_station(m, id)) {
          REQUIRE(station->ifindex > 0);
          if (station->tx_rate) REQUIRE(station->tx_rate->rate > BytesPerSecond{0});
          if (station->tx_airtime_total) REQUIRE(*station->tx_airtime_total >= 0ns);
        }
        if (const auto survey = parse_survey(m, id)) {
          REQUIRE(survey->frequency_mhz > 0);
          if (survey->busy_total) REQUIRE(*survey->busy_total >= 0ns);
        }
        (void)parse_wifi_interface(m, id);
        (void)parse_family(m);
      }
    }
  }
}

}  // namespace onehop::link
