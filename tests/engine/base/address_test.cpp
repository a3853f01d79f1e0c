// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Goal:   addresses are read, written and handed to the kernel alike, IPv4 and IPv6.

#include <catch2/catch.hpp>

#include "engine/base/fd.hpp"
#include "engine/base/system/address.hpp"

using namespace onehop;

TEST_CASE("addresses are parsed and written alike", "[base][address]") {
  for (const char* text : {"10.0.0.1", "::1", "fd00::2", "fe80::1%lo"}) {
    const auto address = IpAddress::parse(text);
    REQUIRE(address);
    CHECK(address->text() == text);
    const Endpoint endpoint{*address, 7411};
    const SocketAddress at = endpoint.to_sockaddr();
    CHECK(Endpoint::from_sockaddr(at.get(), at.size_bytes) == endpoint);
  }
  for (const char* text :
       {"", "10.0.0", "10.0.0.1.2", "fe80::1%", "fe80::1%nosuch0", "example.org"})
    CHECK_FALSE(IpAddress::parse(text));
  const auto mapped = *IpAddress::parse("::ffff:10.0.0.1");
  const SocketAddress at = Endpoint{mapped, 7411}.to_sockaddr();
  CHECK(Endpoint::from_sockaddr(at.get(), at.size_bytes)->text() == "10.0.0.1:7411");
}

TEST_CASE("an address says what it can be used for", "[base][address]") {
  struct Row {
    const char* text;
    bool is_any, is_link_local, is_loopback;
  };
  for (const Row& row : {Row{"0.0.0.0", true, false, false},
                         {"::", true, false, false},
                         {"0.0.0.1", false, false, false},
                         {"::1", false, false, true},
                         {"127.3.2.1", false, false, true},
                         {"128.0.0.1", false, false, false},
                         {"7f00::1", false, false, false},
                         {"fe80::1", false, true, false},
                         {"febf::1", false, true, false},
                         {"fec0::1", false, false, false},
                         {"254.128.0.1", false, false, false}}) {
    CAPTURE(row.text);
    CHECK(IpAddress::parse(row.text)->is_any() == row.is_any);
    CHECK(IpAddress::parse(row.text)->is_link_local() == row.is_link_local);
    CHECK(IpAddress::parse(row.text)->is_loopback() == row.is_loopback);
  }
}

TEST_CASE("a socket's endpoint is what it is bound to", "[base][address]") {
  const Fd socket{::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
  const SocketAddress at = Endpoint{*IpAddress::parse("127.0.0.1"), 0}.to_sockaddr();
  REQUIRE(::bind(socket.get(), at.get(), at.size_bytes) == 0);
  const auto bound = Endpoint::of_socket(socket.get());
  REQUIRE(bound);
  CHECK(bound.value().address == *IpAddress::parse("127.0.0.1"));
  CHECK(bound.value().port != 0);
  CHECK(Endpoint::of_socket(-1).error().errno_value == EBADF);
}
