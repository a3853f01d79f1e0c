// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/p2p/group_link.hpp"

#include <catch2/catch.hpp>

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
