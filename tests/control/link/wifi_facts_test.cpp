// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Facts from messages: on the recorded ones, and on readings made by hand where a driver's
// behaviour in time matters.
#include <catch2/catch.hpp>

#include "control/link/wifi_facts.hpp"
#include "tests/control/link/recorded.hpp"

namespace onehop::link {
namespace {

constexpr Instant start{100s};

StationMessage recorded_station() {
  const std::uint16_t id = parse_family(recorded_binary("family.bin").front())->id;
  const auto station = parse_station(recorded_binary("stations_ap_lossy.bin").front(), id);
  REQUIRE(station);
  return *station;
}

MacAddress mac(int last) { return {std::byte{2}, {}, {}, {}, {}, static_cast<std::byte>(last)}; }

StationMessage moved(int last, std::uint64_t rx_bytes) {
  StationMessage station{.ifindex = 3, .mac = mac(last)};
  station.tx_bytes_total = 0;
  station.rx_bytes_total = rx_bytes;
  return station;
}

}  // namespace

TEST_CASE("a station that hwsim reported gives rate, queue and failures, and no airtime",
          "[control][link][wifi]") {
  WifiFacts wifi;
  law::LinkFacts facts;
  const StationMessage station = recorded_station();
  wifi.add_station(station, start, 2ms, facts);
  REQUIRE(law::fresh(facts.phy_rate, start));
  CHECK(facts.phy_rate->value == station.tx_rate->rate);
  REQUIRE(law::fresh(facts.exact_queue, start));
  CHECK(facts.exact_queue->value.sensor == law::QueueSensor::txq);
  CHECK(facts.exact_queue->value.queue.scope == QueueScope::lower_queue);
  REQUIRE(law::fresh(facts.mac, start));
  CHECK(facts.mac->value.tx_failed_total == *station.tx_failed_total);
  CHECK_FALSE(facts.own_airtime);
  CHECK_FALSE(facts.channel);
  CHECK_FALSE(facts.stations);
  CHECK(law::fresh(facts.phy_rate, start + 5ms) == nullptr);
}

TEST_CASE(
    "what a station does not report stays absent, and what was read before stays with its age",
    "[control][link][wifi]") {
  WifiFacts wifi;
  law::LinkFacts facts;
  wifi.add_station(recorded_station(), start, 2ms, facts);
  wifi.add_station({.ifindex = 3, .mac = mac(1)}, start + 1ms, 2ms, facts);
  CHECK(facts.phy_rate->at == start);
  law::LinkFacts none;
  wifi.add_station({.ifindex = 3, .mac = mac(1)}, start, 2ms, none);
  CHECK_FALSE(none.phy_rate);
  CHECK_FALSE(none.exact_queue);
  CHECK_FALSE(none.mac);
}

TEST_CASE("airtime that a driver counts is a fact", "[control][link][wifi]") {
  WifiFacts wifi;
  law::LinkFacts facts;
  StationMessage station = recorded_station();
  station.tx_airtime_total = 5ms;
  station.rx_airtime_total.reset();
  wifi.add_station(station, start, 2ms, facts);
  REQUIRE(facts.own_airtime);
  CHECK(facts.own_airtime->value.tx_total == 5ms);
  CHECK_FALSE(facts.own_airtime->value.rx_total);
}

TEST_CASE("T2 a drained total goes on over the wrap of the kernel's 32 bits",
          "[control][link][wifi]") {
  GrowingTotal total;
  CHECK(total.add(0xffff'ff00) == 0xffff'ff00);
  CHECK(total.add(0x0000'0100) == 0x1'0000'0100);
  CHECK(total.add(0x0000'0100) == 0x1'0000'0100);
}

TEST_CASE("counters that begin anew are no gain", "[control][link][wifi]") {
  GrowingTotal total;
  CHECK(total.add(500'000'000) == 500'000'000);
  CHECK(total.add(1'000) == 500'000'000);
  CHECK(total.add(2'000) == 500'001'000);
}

TEST_CASE("a peer that associates anew after 2 GiB has drained nothing meanwhile",
          "[control][link][wifi]") {
  WifiFacts wifi;
  law::LinkFacts facts;
  StationMessage station = recorded_station();
  const auto read = [&](std::uint64_t bytes, std::uint64_t packets) {
    station.txq->tx_bytes_total = bytes;
    station.tx_packets_total = packets;
    wifi.add_station(station, start, 2ms, facts);
    return facts.exact_queue->value.queue.drained_total;
  };
  REQUIRE(station.txq->backlog_bytes);
  CHECK(read(0xffff'ff00, 3'000'000) == Bytes{0xffff'ff00});
  CHECK(read(0x0000'0100, 3'000'010) == Bytes{0x1'0000'0100});  // a wrap, and no new association
  CHECK(read(0xc000'0100, 5'000'000) == Bytes{0x1'0000'0100});  // two polls 3 GiB apart: none
  CHECK(read(0xd000'0100, 5'200'000) == Bytes{0x1'1000'0100});
  CHECK(read(1'000, 3) == Bytes{0x1'1000'0100});
  CHECK(read(2'000, 4) == Bytes{0x1'1000'04e8});
  CHECK(facts.mac->value.tx_frames_total == 5'200'001);
}

TEST_CASE("a survey without times is no fact, one without busy time is half of one",
          "[control][link][wifi]") {
  law::LinkFacts facts;
  WifiFacts::add_survey({.ifindex = 3, .frequency_mhz = 5180}, start, 50ms, facts);
  CHECK_FALSE(facts.channel);
  WifiFacts::add_survey({.ifindex = 3, .frequency_mhz = 5180, .active_total = 10s}, start, 50ms,
                        facts);
  REQUIRE(facts.channel);
  CHECK_FALSE(facts.channel->value.busy_total);
}

// 1 Mbit/s is 125,000 bytes in a second: the peer never counts twice, the idle one never, the one
// that sends once.
TEST_CASE("stations are those that moved bytes since the last list, and our link once",
          "[control][link][wifi]") {
  WifiFacts wifi;
  law::LinkFacts facts;
  const std::vector<StationMessage> first{moved(1, 0), moved(2, 0), moved(3, 0)};
  wifi.add_list(first, mac(1), start, 1s, facts);
  CHECK_FALSE(facts.stations);
  const std::vector<StationMessage> second{moved(1, 90'000'000), moved(2, 100'000),
                                           moved(3, 200'000), moved(4, 900'000)};
  wifi.add_list(second, mac(1), start + 1s, 1s, facts);
  REQUIRE(facts.stations);
  CHECK(facts.stations->value == 2);
  const std::vector<StationMessage> third{moved(1, 180'000'000)};
  wifi.add_list(third, std::nullopt, start + 2s, 1s, facts);
  CHECK(facts.stations->value == 1);
}

}  // namespace onehop::link
