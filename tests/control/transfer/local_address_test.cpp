// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Goal:   the command that recv prints for the other machine leads here.
// Method: made-up lists of addresses, and what is told of each.
#include <catch2/catch.hpp>

#include "control/transfer/port/local_address.hpp"

using namespace onehop;
using namespace onehop::transfer;

namespace {

LocalAddress local(const char* interface, const char* address) {
  return {interface, *IpAddress::parse(address)};
}

std::vector<std::string> told(const std::vector<LocalAddress>& all, const char* listen,
                              const char* interface = "", std::uint16_t port = default_port) {
  std::vector<std::string> texts;
  for (const LocalAddress& way : reachable(all, {listen, port}, interface))
    texts.push_back(to_text(way.address, port));
  return texts;
}
using Texts = std::vector<std::string>;

const std::vector<LocalAddress> laptop{local("wlan0", "192.168.49.1"),
                                       local("docker0", "172.17.0.1"), local("wlan0", "fd00::1"),
                                       local("wlan0", "fe80::1%1")};

}  // namespace

TEST_CASE("a sender is told addresses that it can reach, not those that stand for all", "[tools]") {
  for (const char* listen : {"", "::"})
    CHECK(told(laptop, listen) == Texts{"192.168.49.1", "172.17.0.1"});
  CHECK(told(laptop, "0.0.0.0") == Texts{"192.168.49.1", "172.17.0.1"});
  CHECK(told(laptop, "192.168.49.1", "", 9000) == Texts{"192.168.49.1:9000"});
  CHECK(told(laptop, "fd00::1") == Texts{"[fd00::1]"});
  CHECK(told({}, "").empty());
}

TEST_CASE("a named interface is the only way in", "[tools]") {
  CHECK(told(laptop, "", "wlan0") == Texts{"192.168.49.1"});
  CHECK(told(laptop, "", "docker0", 9000) == Texts{"172.17.0.1:9000"});
  CHECK(told(laptop, "", "eth0").empty());
}

TEST_CASE(
    "without IPv4 it is IPv6, and the link-local one, with the other machine's interface, comes "
    "last",
    "[tools]") {
  CHECK(told({local("wlan0", "fe80::1%1"), local("wlan0", "fd00::1")}, "") == Texts{"[fd00::1]"});
  CHECK(told({local("wlan0", "fe80::1%1")}, "", "wlan0", 9000) == Texts{"[fe80::1%IF]:9000"});
  CHECK(told({local("wlan0", "fe80::1%1")}, "0.0.0.0").empty());
  CHECK(told({local("wlan0", "fe80::1%1")}, "fe80::1%1") == Texts{"[fe80::1%IF]"});
}

TEST_CASE("the interface of a link-local address is filled in where there is one alone",
          "[tools]") {
  const auto filled = [](const char* text, const char* interface = "") {
    return with_scope(text, interface, laptop);
  };
  CHECK(filled("[fe80::2%IF]:9000") == "[fe80::2%wlan0]:9000");
  CHECK(filled("[fe80::2%IF]") == "[fe80::2%wlan0]");
  CHECK(filled("fe80::2%IF") == "fe80::2%wlan0");
  CHECK(filled("fe80::2") == "fe80::2%wlan0");
  CHECK(filled("[fe80::2]:9000", "eth7") == "[fe80::2%eth7]:9000");
  for (const char* whole : {"fe80::2%lo", "[fe80::2%1]:9000", "10.0.0.1", "fd00::2", "[fd00::2]:1",
                            "a-host%IF", "[fe80::2%IF", "", "[", "%IF"})
    CHECK(filled(whole) == whole);
  std::vector<LocalAddress> two = laptop;
  two.push_back(local("eth0", "fe80::3%2"));
  CHECK(with_scope("fe80::2%IF", "", two) == "fe80::2%IF");
  CHECK(with_scope("fe80::2%IF", "eth0", two) == "fe80::2%eth0");
  CHECK(with_scope("fe80::2%IF", "", {}) == "fe80::2%IF");
}

TEST_CASE("in a Wi-Fi Direct group both kinds of members are told an address of theirs",
          "[tools]") {
  // Without an interface of its own a group has the radio's (p2p_no_group_iface).
  const char* const interface = GENERATE("p2p-wlan0-0", "wlan1");
  const LocalAddress ipv4 = local(interface, "192.168.49.1");
  LocalAddress link_local = local(interface, "fe80::2%2");
  link_local.is_p2p = true;
  CHECK(told({ipv4, link_local}, "") == Texts{"192.168.49.1", "[fe80::2%IF]"});
  CHECK(told({local("wlan0", "10.0.0.7"), local("wlan0", "fe80::1%1"), link_local}, "") ==
        Texts{"10.0.0.7", "[fe80::2%IF]"});
  CHECK(told({local("wlan0", "fd00::1"), link_local}, "", interface) == Texts{"[fe80::2%IF]"});
  // A name alone makes no group.
  CHECK(told({local("wlan0", "10.0.0.7"), local("p2p-wlan0-0", "fe80::2%2")}, "") ==
        Texts{"10.0.0.7"});
}
