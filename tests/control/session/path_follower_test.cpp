// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Goal:   routes as anybody can test them: on loopback. Changes of links: path_follower_netns_test.

#include <catch2/catch.hpp>

#include "control/session/channel/path_follower.hpp"

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
