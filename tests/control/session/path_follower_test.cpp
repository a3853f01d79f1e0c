// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Goal:   routes and addresses as anybody can test them: on loopback. Changes of links:
//         path_follower_netns_test.

#include <catch2/catch.hpp>

#include <tuple>

#include "control/session/path_follower.hpp"

using namespace onehop;
using namespace onehop::session;

namespace {

PathOptions options_for(const char* local, const char* peer) {
  return {.local = {*IpAddress::parse(local), 7411}, .peer = {*IpAddress::parse(peer), 7412}};
}

}  // namespace

TEST_CASE("the route to loopback is lo, without a gateway", "[control][session]") {
  const auto route = find_route(*IpAddress::parse("127.0.0.1"));
  REQUIRE(route);
  CHECK(route.value().link.name == "lo");
  CHECK_FALSE(route.value().gateway.has_value());
  CHECK_FALSE(route.value().link.has_neighbours);
  auto follower = PathFollower::open(options_for("127.0.0.1", "127.0.0.1"));
  REQUIRE(follower);
  const PathUpdate& update = follower.value().update();
  CHECK(update.header_bytes == 42);
  CHECK(update.has_neighbour);
  CHECK(update.mtu_bytes > 0);
}

TEST_CASE("an interface that is named and not there is exit 9", "[control][session]") {
  const auto route = find_route(*IpAddress::parse("127.0.0.1"), "nosuch0");
  REQUIRE_FALSE(route);
  CHECK(route.error().code == ExitCode::io_unavailable);
  CHECK(route.error().message().find("nosuch0") != std::string::npos);
}

TEST_CASE("addresses are parsed and written alike", "[control][session]") {
  for (const char* text : {"10.0.0.1", "::1", "fd00::2", "fe80::1%lo"}) {
    const auto address = IpAddress::parse(text);
    REQUIRE(address);
    CHECK(address->text() == text);
    const Endpoint endpoint{*address, 7411};
    sockaddr_storage storage;
    const socklen_t bytes = endpoint.to_sockaddr(storage);
    CHECK(Endpoint::from_sockaddr(reinterpret_cast<const sockaddr*>(&storage), bytes) == endpoint);
  }
  for (const char* text :
       {"", "10.0.0", "10.0.0.1.2", "fe80::1%", "fe80::1%nosuch0", "example.org"})
    CHECK_FALSE(IpAddress::parse(text));
  for (const auto& [text, is_any, is_link_local] : {std::tuple{"0.0.0.0", true, false},
                                                    {"::", true, false},
                                                    {"0.0.0.1", false, false},
                                                    {"::1", false, false},
                                                    {"fe80::1", false, true},
                                                    {"febf::1", false, true},
                                                    {"fec0::1", false, false},
                                                    {"254.128.0.1", false, false}}) {
    CAPTURE(text);
    CHECK(IpAddress::parse(text)->is_any() == is_any);
    CHECK(IpAddress::parse(text)->is_link_local() == is_link_local);
  }
}
