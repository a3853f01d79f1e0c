// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Goal:   each receiver is one entry with its best way first, and a flood of answers takes bounded
//         memory without pushing out who answered before.
// Method: answers go in one by one.
// Bounds: exact.
#include "control/find/receivers.hpp"

#include <catch2/catch.hpp>

using namespace onehop;
using namespace onehop::find;

namespace {

Way way(const char* address, const char* interface, bool is_one_hop = true,
        Medium medium = Medium::cable, BytesPerSecond rate = {}) {
  return {.address = IpAddress::parse(address).value(),
          .interface = interface,
          .medium = medium,
          .rate = rate,
          .is_one_hop = is_one_hop};
}

Answer answer(unsigned instance, std::string name = "laptop") {
  Answer made{.port = 7411, .name = std::move(name)};
  for (std::byte& byte : made.instance) {
    byte = static_cast<std::byte>(instance);
    instance >>= 8;
  }
  return made;
}

IpAddress numbered(unsigned number) {
  IpAddress made = *IpAddress::parse("10.0.0.0");
  for (std::size_t i = 3; i > 0; --i, number >>= 8) made.bytes[i] = static_cast<std::byte>(number);
  return made;
}

}  // namespace

TEST_CASE("one hop comes before a gateway, cable before Wi-Fi, a fast driver before a slow one",
          "[control][find]") {
  const std::vector<Way> ordered{way("fe80::1", "eth0", true, Medium::cable, mbit_per_s(1000)),
                                 way("10.0.0.1", "eth0", true, Medium::cable, mbit_per_s(1000)),
                                 way("fe80::2", "eth1", true, Medium::cable, mbit_per_s(100)),
                                 way("fe80::3", "usb0"),
                                 way("fe80::4", "wlan0", true, Medium::wifi, mbit_per_s(2000)),
                                 way("10.0.1.1", "wlan0", true, Medium::wifi, mbit_per_s(2000)),
                                 way("10.9.0.1", "eth0", false, Medium::cable, mbit_per_s(10000)),
                                 way("10.9.0.2", "wlan0", false, Medium::wifi)};
  for (std::size_t i = 0; i < ordered.size(); ++i)
    for (std::size_t j = 0; j < ordered.size(); ++j)
      CHECK(is_better(ordered[i], ordered[j]) == (i < j));
}

TEST_CASE("a receiver that is seen on two links is one, and goes by its best", "[control][find]") {
  Receivers receivers;
  CHECK(receivers.note(answer(1), way("10.0.1.1", "wlan0", true, Medium::wifi)));
  CHECK(receivers.note(answer(1), way("fe80::1", "eth0")));
  CHECK(receivers.note(answer(1), way("10.0.0.1", "eth0")));
  CHECK_FALSE(receivers.note(answer(1), way("fe80::1", "eth0")));
  REQUIRE(receivers.size() == 1);
  const Receiver one = receivers.ranked().front();
  REQUIRE(one.ways.size() == 3);
  CHECK(one.ways[0].address.text() == "fe80::1");
  CHECK(one.ways[1].address.text() == "10.0.0.1");
  CHECK(one.ways[2].interface == "wlan0");
}

TEST_CASE("two receivers of one name are two, and so are two on one machine", "[control][find]") {
  Receivers receivers;
  receivers.note(answer(1), way("fe80::1", "wlan0", true, Medium::wifi));
  receivers.note(answer(2), way("fe80::2", "eth0"));
  Answer other_port = answer(1);
  other_port.port = 7412;
  receivers.note(other_port, way("fe80::1", "wlan0", true, Medium::wifi));
  REQUIRE(receivers.size() == 3);
  CHECK(receivers.ranked().front().ways.front().interface == "eth0");  // its way is the best
}

TEST_CASE("K7 a flood of answers is bounded, and who answered first stays", "[control][find]") {
  Receivers receivers;
  receivers.note(answer(1, "honest"), way("10.200.0.1", "eth0"));
  SECTION("from one address") {
    for (unsigned i = 2; i < 20'000; ++i) receivers.note(answer(i, "forged"), way("10.0.0.9", "e"));
    CHECK(receivers.size() == 1 + Receivers::per_address_max);
  }
  SECTION("from many addresses") {
    for (unsigned i = 2; i < 20'000; ++i) {
      Way forged = way("10.0.0.9", "eth0");
      forged.address = numbered(i);
      receivers.note(answer(i, "forged"), forged);
    }
    CHECK(receivers.size() == Receivers::receivers_max);
  }
  SECTION("in the name of the honest one") {
    for (unsigned i = 2; i < 20'000; ++i) {
      Way forged = way("10.0.0.9", "eth0");
      forged.address = numbered(i);
      receivers.note(answer(1, "honest"), forged);
    }
    CHECK(receivers.ranked().front().ways.size() == Receivers::ways_max);
  }
  const auto ranked = receivers.ranked();
  CHECK(ranked.front().name == "honest");
  CHECK(ranked.front().ways.front().address.text() == "10.200.0.1");
}
