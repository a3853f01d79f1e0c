// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/p2p/group_link.hpp"

#include <arpa/inet.h>

#include <catch2/catch.hpp>

#include "control/p2p/group_ipv4.hpp"

using namespace onehop;
using namespace onehop::p2p;

TEST_CASE("an interface's link-local address is read from the kernel's table", "[control][p2p]") {
  const std::string table =
      "00000000000000000000000000000001 01 80 10 80       lo\n"
      "fe80000000000000005056fffec00001 02 40 20 80     eth0\n"
      "2001 0db8 broken\n";
  CHECK(find_link_local(table, "eth0") == "fe80::50:56ff:fec0:1");
  CHECK(find_link_local(table, "lo").empty());
  CHECK(find_link_local("", "eth0").empty());
}

TEST_CASE("an address that is not proven unique yet is not used", "[control][p2p]") {
  const std::string address = "fe80000000000000005056fffec00001 02 40 20 ";
  CHECK(find_link_local(address + "c0 p2p0\n", "p2p0").empty());  // tentative
  CHECK(find_link_local(address + "88 p2p0\n", "p2p0").empty());  // a duplicate
  CHECK_FALSE(find_link_local(address + "80 p2p0\n", "p2p0").empty());
}

TEST_CASE("the owner's address follows from its address on the air", "[control][p2p]") {
  using Mac = std::vector<std::uint8_t>;
  CHECK(link_local_of(Mac{0x52, 0x54, 0, 0xc0, 0, 1}) == "fe80::5054:ff:fec0:1");
  CHECK(link_local_of(Mac{2, 0, 0, 0, 1, 0}) == "fe80::ff:fe00:100");
  for (const Mac& none : {Mac{}, Mac{0x52, 0x54, 0, 0xc0, 0}, Mac{0x52, 0x54, 0, 0xc0, 0, 1, 2}})
    CHECK(link_local_of(none).empty());
}

TEST_CASE("a group that has ended is waited for no longer", "[control][p2p]") {
  for (const auto& error : {wait_for_link_local("no-such-if", 10s, -1).error(),
                            wait_for_members("no-such-if", 10s, -1).error()}) {
    CHECK(error.code == ExitCode::timed_out);
    CHECK(error.cause == "the group has ended");
  }
}

TEST_CASE("the owner's network is one that no route of the machine leads to", "[control][p2p]") {
  const auto chosen = [](std::vector<Ipv4Route> routes) {
    const auto own = choose_group_address(routes);
    const in_addr bytes{.s_addr = htonl(own.value_or(0))};
    return std::string{own ? ::inet_ntoa(bytes) : ""};
  };
  const Ipv4Route all{0, 0}, half{0x80000000, 1};  // a default route, and a VPN's half of one
  CHECK(chosen({}) == "192.168.49.1");
  CHECK(chosen({all, half, {0xc0a80100, 24}, {0x7f000000, 8}}) == "192.168.49.1");
  for (const Ipv4Route taken : {Ipv4Route{0xc0a83100, 24}, Ipv4Route{0xc0a83107, 32},
                                Ipv4Route{0xc0a83180, 25}, Ipv4Route{0xc0a83000, 23}})
    CHECK(chosen({taken}) == "192.168.50.1");
  CHECK(chosen({{0xc0a80000, 16}}) == "172.29.49.1");
  CHECK(chosen({{0xc0a80000, 16}, {0xac100000, 12}}) == "10.149.49.1");
  CHECK(chosen({{0xc0a80000, 16}, {0xac100000, 12}, {0x0a000000, 8}}).empty());
  CHECK(chosen({{0xc0a83100, 33}, {0xc0a83100, 255}}) == "192.168.49.1");
}
