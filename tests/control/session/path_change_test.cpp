// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Goal:   a path that a host cannot take ends the session in order, at both ends.
// Method: two sessions over the loopback device of a network namespace of this process alone, whose
//         MTU changes. Needs root and ip(8), else exits 77.

#include <catch2/catch.hpp>

#include <cstdlib>

#include "tests/control/session/session_world.hpp"
#include "tests/support/net_namespace.hpp"

using namespace onehop;
using namespace onehop::session;
using namespace onehop::session::test;

namespace {

void enter_own_loopback() { onehop::test::enter_own_namespace("ip link set lo up mtu 60000"); }

}  // namespace

TEST_CASE("N9 a path that cannot be taken ends the session, and its data path once",
          "[control][session]") {
  enter_own_loopback();
  World world;
  const bool is_sender = GENERATE(true, false);
  world.send_host.script.sends_blocks = false;
  world.listen();
  world.send();
  const auto has_path = [](const auto& host) {
    return host.engine && host.engine->path_updates() > 0;
  };
  REQUIRE(world.run([&] { return has_path(world.send_host) && has_path(world.recv_host); }));
  const Error refused{ExitCode::privilege_missing, "use the port on the new path", "refused", ""};
  (is_sender ? world.send_host.path_refusal : world.recv_host.path_refusal) = refused;
  REQUIRE(std::system(is_sender ? "ip link set lo mtu 50000" : "ip link set lo mtu 40000") == 0);
  REQUIRE(world.run_to_end());
  const SessionEnd& own = is_sender ? *world.send_end : *world.recv_end;
  const SessionEnd& other = is_sender ? *world.recv_end : *world.send_end;
  INFO(own.error.message() << " | " << other.error.message());
  CHECK(own.code == ExitCode::privilege_missing);
  CHECK(other.code == ExitCode::refused_by_peer);
  CHECK(world.send_host.stopped == 1);
  CHECK(world.recv_host.stopped == 1);
}
