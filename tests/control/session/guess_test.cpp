// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Goal:   a code that can be guessed is burnt by the third wrong one, a strong one never; both ends
//         are told.
// Method: real senders with wrong codes over loopback TCP and TLS. Rates per address in made time:
//         admission_test.cpp.
#include <catch2/catch.hpp>

#include <chrono>
#include <vector>

#include "tests/control/session/session_world.hpp"

using namespace onehop;
using Clock = std::chrono::steady_clock;
using namespace onehop::session;
using namespace onehop::session::test;

namespace {
/// guess tries codes one after the other, and returns when the receiver knows of each.
void guess(World& world, std::string_view code, std::size_t count) {
  const std::size_t before = world.recv_host.rejections.size();
  for (std::size_t i = 0; i < count; ++i) {
    FakeSendHost host{world.io};
    const auto guesser = make_send_session(world.io, world.send_options, key_of(code), host);
    std::optional<SessionEnd> end;
    guesser->start([&](const SessionEnd& ended) { end = ended; });
    REQUIRE(world.run(
        [&] { return end.has_value() && world.recv_host.rejections.size() > before + i; }));
    CHECK(end->code == ExitCode::authentication_failed);
  }
}
}  // namespace

TEST_CASE("K3 a wrong code is 4 on both ends, and the third burns one that a person chose",
          "[control][session]") {
  World world;
  world.recv_options.limits.guess_pause = 1ms;
  world.listen();
  for (int attempt = 1; attempt <= 3; ++attempt) {
    CHECK_FALSE(world.recv_end.has_value());
    world.send_end.reset();
    world.send(wrong_code);
    REQUIRE(world.run([&] { return world.send_end.has_value(); }));
    INFO(world.send_end->error.message());
    CHECK(world.send_end->code == ExitCode::authentication_failed);
    CHECK(world.send_end->error.message().find("burns") != std::string::npos);
    REQUIRE(world.run(
        [&] { return world.recv_host.rejections.size() == static_cast<std::size_t>(attempt); }));
    CHECK(world.recv_host.rejections.back().code == ExitCode::authentication_failed);
  }
  REQUIRE(world.run([&] { return world.recv_end.has_value(); }));
  CHECK(world.recv_end->code == ExitCode::authentication_failed);
  CHECK(world.recv_host.offer == nullptr);
  CHECK(world.recv_host.opened == 0);
  REQUIRE(world.recv_host.ends.size() == 1);  // the user is told
  CHECK(world.recv_host.ends[0].error.message().find("burnt") != std::string::npos);
}

TEST_CASE(
    "K3 a code of recv's own making is not burnt by guesses, which are counted and told of once",
    "[control][session]") {
  World world;
  world.recv_options.limits.guess_pause = 1ms;
  world.listen(strong_code);
  guess(world, wrong_code, 20);
  CHECK_FALSE(world.recv_end.has_value());
  CHECK(world.recv_host.rejections.size() == 20);
  CHECK(world.recv_host.notices.size() == 1);
  CHECK(world.recv_host.burnt.empty());
  world.send(strong_code);
  REQUIRE(world.run_to_end());
  CHECK(world.send_end->code == ExitCode::done);
}

TEST_CASE("K3 a recv that goes on makes a new code when the third wrong one burnt the old one",
          "[control][session]") {
  World world;
  world.recv_options.is_once = false;
  world.recv_options.limits.guess_pause = 1ms;
  world.listen();
  guess(world, wrong_code, 3);
  REQUIRE(world.recv_host.burnt.size() == 1);
  CHECK(world.recv_host.burnt[0].code == ExitCode::authentication_failed);
  CHECK_FALSE(world.recv_end.has_value());
  guess(world, right_code, 1);  // it was right before
  world.send(other_code);
  REQUIRE(world.run([&] { return world.send_end.has_value(); }));
  CHECK(world.send_end->code == ExitCode::done);
  world.server->interrupt();
  REQUIRE(world.run([&] { return world.recv_end.has_value(); }));
  CHECK(world.recv_end->code == ExitCode::done);
}

// Bounds: a lower bound on time, which a busy machine only lengthens. Rates per address:
// admission_test.cpp.
TEST_CASE("K3 after a wrong code an address's attempts begin a pause apart", "[control][session]") {
  World world;
  world.recv_options.limits.guess_pause = 700ms;
  world.listen(strong_code);
  std::vector<Clock::time_point> rejected;
  for (int i = 0; i < 3; ++i) {
    guess(world, wrong_code, 1);
    rejected.push_back(Clock::now());
  }
  CHECK(rejected[1] - rejected[0] >= 600ms);
  CHECK(rejected[2] - rejected[1] >= 600ms);
  world.send(strong_code);
  REQUIRE(world.run_to_end());
  CHECK(Clock::now() - rejected[2] >= 600ms);
  CHECK(world.send_end->code == ExitCode::done);
}

TEST_CASE("K3 a code burnt with --once lets nobody in while the session that knew it goes on",
          "[control][session]") {
  World world;
  world.send_host.script.sends_blocks = false;
  world.recv_options.limits.guess_pause = 1ms;
  world.listen();
  world.send();
  REQUIRE(world.run([&] { return world.recv_host.plan.has_value(); }));
  guess(world, wrong_code, 3);
  FakeSendHost host{world.io};
  const auto other = make_send_session(world.io, world.send_options, key_of(right_code), host);
  std::optional<SessionEnd> end;
  other->start([&](const SessionEnd& ended) { end = ended; });
  REQUIRE(world.run([&] { return end.has_value(); }));
  CHECK(end->code == ExitCode::peer_unreachable);
  CHECK_FALSE(world.recv_end.has_value());
  world.sender->interrupt();
  REQUIRE(world.run_to_end());
  CHECK(world.send_end->code == ExitCode::interrupted);
  CHECK(world.recv_end->code == ExitCode::interrupted);  // the first accepted session's
}

TEST_CASE("a wrong code does not end recv: the right one still gets through",
          "[control][session]") {
  World world;
  world.listen();
  world.send(wrong_code);
  REQUIRE(world.run([&] { return world.send_end.has_value(); }));
  world.send_end.reset();
  world.send(right_code);
  REQUIRE(world.run_to_end());
  CHECK(world.send_end->code == ExitCode::done);
  CHECK(world.recv_end->code == ExitCode::done);
}
