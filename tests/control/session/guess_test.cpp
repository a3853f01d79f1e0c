// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Goal:   a code that can be guessed is burnt by the third wrong one, a strong one never; both ends
//         are told.
// Method: real senders with wrong codes over loopback TCP and TLS. Rates per address in made time:
//         admission_test.cpp.
#include <catch2/catch.hpp>

#include <chrono>
#include <deque>
#include <vector>

#include "tests/control/session/raw_peer.hpp"

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
    const auto guesser =
        std::make_shared<SendSession>(world.io, world.send_options, code_of(code), host);
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
    "K3 a code of full length that onehop made is not burnt by guesses, which are counted and told "
    "of once",
    "[control][session]") {
  World world;
  world.recv_options.limits.guess_pause = 1ms;
  world.listen(made_code);
  guess(world, wrong_code, 20);
  CHECK_FALSE(world.recv_end.has_value());
  CHECK(world.recv_host.rejections.size() == 20);
  CHECK(world.recv_host.notices.size() == 1);
  CHECK(world.recv_host.burnt.empty());
  REQUIRE(world.send_to_end(made_code) == ExitCode::done);
}

TEST_CASE("K3 a recv that goes on makes a new code when the third wrong one burnt the old one",
          "[control][session]") {
  World world;
  world.recv_options.is_once = false;
  world.recv_options.limits.guess_pause = 1ms;
  world.listen();
  guess(world, wrong_code, 3);
  REQUIRE(world.run([&] { return world.recv_host.burnt.size() == 1; }));
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

namespace {
/// guess_from makes one wrong guess, from an address of its own.
void guess_from(World& world, std::uint32_t source) {
  const std::size_t before = world.recv_host.rejections.size();
  HandSender sender{world, wrong_code, source};
  sender.exchange_code();
  sender.handshake();
  REQUIRE(world.run([&] { return world.recv_host.rejections.size() > before; }));
}
}  // namespace

// Bounds: a lower bound on time, which a busy machine only lengthens.
TEST_CASE("K3 K6 a new code comes a pause after the old one was burnt", "[control][session]") {
  World world;
  world.recv_options.is_once = false;
  world.recv_options.limits.guess_pause = 300ms;
  world.listen();
  for (std::uint32_t i = 1; i <= 3; ++i) guess_from(world, INADDR_LOOPBACK + i);
  const Instant burnt_at = monotonic_now();
  REQUIRE(world.run([&] { return world.recv_host.burnt.size() == 1; }));
  CHECK(monotonic_now() - burnt_at >= 250ms);  // the receiver saw the third guess before we did
  world.send(other_code);
  REQUIRE(world.run([&] { return world.send_end.has_value(); }));
  CHECK(world.send_end->code == ExitCode::done);
}

TEST_CASE("K3 who knows the code has no guesses of others forgotten", "[control][session]") {
  World world;
  world.recv_options.is_once = false;
  world.recv_options.limits.guess_pause = 1ms;
  world.listen();
  for (std::uint32_t i = 1; i <= 2; ++i) guess_from(world, INADDR_LOOPBACK + i);
  world.send();
  REQUIRE(world.run([&] { return world.send_end.has_value(); }));
  CHECK(world.send_end->code == ExitCode::done);
  guess_from(world, INADDR_LOOPBACK + 3);
  CHECK(world.run([&] { return world.recv_host.burnt.size() == 1; }));
}

TEST_CASE("K3 another identity tries no code", "[control][session]") {
  World world;
  world.listen();
  for (std::size_t i = 1; i <= 3; ++i) {
    RawPeer peer{world.io, {.role = Role::sender, .identity = "another"}, wrong_code};
    peer.source += static_cast<std::uint32_t>(i);
    peer.connect(world.recv_host.port);
    REQUIRE(world.run([&] { return peer.is_over && world.recv_host.rejections.size() == i; }));
  }
  CHECK_FALSE(world.recv_end.has_value());
  REQUIRE(world.send_to_end() == ExitCode::done);
}

// Bounds: a lower bound on time, which a busy machine only lengthens. Rates per address:
// admission_test.cpp.
TEST_CASE("K3 after a wrong code an address's attempts begin a pause apart", "[control][session]") {
  World world;
  world.recv_options.limits.guess_pause = 700ms;
  world.listen(made_code);
  std::vector<Clock::time_point> rejected;
  for (int i = 0; i < 3; ++i) {
    guess(world, wrong_code, 1);
    rejected.push_back(Clock::now());
  }
  CHECK(rejected[1] - rejected[0] >= 600ms);
  CHECK(rejected[2] - rejected[1] >= 600ms);
  world.send(made_code);
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
  const auto other =
      std::make_shared<SendSession>(world.io, world.send_options, code_of(right_code), host);
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

namespace {
/// Opened: connections that were all there before the first of them said anything, as many of an
/// address as may be.
struct Opened {
  std::deque<RawPeer> peers;
  Opened(World& world, std::initializer_list<std::string_view> codes) {
    for (const std::string_view code : codes) {
      RawPeer& peer = peers.emplace_back(world.io, TlsOptions{.role = Role::sender}, code);
      peer.source += static_cast<std::uint32_t>(peers.size() / 4);
      peer.connect_only(world.recv_host.port);
      world.run([] { return false; }, 5ms);  // taken in
    }
  }
  void guess(World& world, std::size_t peer) {
    peers[peer].greet();
    REQUIRE(world.run([&] { return peers[peer].is_over || peers[peer].find<Welcome>(); }));
    world.run([] { return false; }, 20ms);  // the receiver's own verdict
  }
};
}  // namespace

TEST_CASE("K3 a burnt code lets nobody in on a connection that was open before it was burnt",
          "[control][session]") {
  const bool is_once = GENERATE(true, false);
  World world;
  world.recv_options.is_once = is_once;
  world.send_host.script.sends_blocks = false;
  world.listen();
  if (is_once) {  // a session under way keeps a burnt recv alive
    world.send();
    REQUIRE(world.run([&] { return world.recv_host.plan.has_value(); }));
  }
  Opened opened{world, {wrong_code, wrong_code, wrong_code, right_code, right_code}};
  for (std::size_t i = 0; i < 5; ++i) opened.guess(world, i);
  for (const RawPeer& peer : opened.peers) CHECK(peer.handshake == HandshakeFailure::wrong_code);
  CHECK(world.recv_host.rejections.size() == 5);
}

TEST_CASE("K3 guesses that come in one moment are counted one by one", "[control][session]") {
  World world;
  world.listen();
  Opened opened{world,
                {wrong_code, wrong_code, wrong_code, wrong_code, wrong_code, wrong_code, wrong_code,
                 wrong_code, wrong_code, wrong_code, wrong_code, wrong_code, wrong_code, wrong_code,
                 wrong_code, right_code}};
  for (RawPeer& peer : opened.peers) peer.greet();
  REQUIRE(world.run([&] {
    return world.recv_end.has_value() &&
           std::ranges::all_of(opened.peers, [](const RawPeer& peer) { return peer.is_over; });
  }));
  CHECK(world.recv_end->code == ExitCode::authentication_failed);
  CHECK(opened.peers.back().handshake != HandshakeFailure::none);
  CHECK(world.recv_host.offer == nullptr);
}

TEST_CASE("K3 a guess of the new code counts, too, on a connection of the old one's time",
          "[control][session]") {
  World world;
  world.recv_options.is_once = false;
  world.recv_options.limits.guess_pause = 1ms;
  world.listen();
  Opened opened{world,
                {wrong_code, wrong_code, wrong_code, right_code, wrong_code, right_code, wrong_code,
                 other_code}};
  world.recv_host.next_code = other_code;
  for (std::size_t i = 0; i < 6; ++i) {
    opened.guess(world, i);
    if (i % 3 == 2) REQUIRE(world.run([&] { return world.recv_host.burnt.size() == i / 3 + 1; }));
  }
  opened.guess(world, 6);
  world.recv_host.next_code = right_code;
  opened.guess(world, 7);  // the present one, on an old connection
  CHECK(opened.peers[7].handshake == HandshakeFailure::none);
}

TEST_CASE("K3 who guesses and goes away before the answer has guessed", "[control][session]") {
  World world;
  world.recv_options.limits.guess_pause = 1ms;
  world.listen();
  for (std::size_t i = 1; i <= 3; ++i) {
    HandSender sender{world, wrong_code};
    sender.exchange_code();
    sender.socket.set_option(tcp::socket::linger{true, 0});
    sender.handshake();
    sender.socket.close();
    REQUIRE(world.run([&] { return world.recv_host.rejections.size() == i; }));
  }
  REQUIRE(world.run([&] { return world.recv_end.has_value(); }));
  CHECK(world.recv_end->code == ExitCode::authentication_failed);
}

TEST_CASE("K3 who shows the right binder has guessed nothing, whatever becomes of it",
          "[control][session]") {
  World world;
  world.listen();
  for (std::size_t i = 1; i <= 6; ++i) {
    HandSender sender{world, right_code};
    sender.exchange_code();
    sender.handshake();
    world.run([] { return false; }, 20ms);
    sender.socket.close();
    REQUIRE(world.run([&] { return world.recv_host.rejections.size() == i; }));
  }
  REQUIRE(world.send_to_end() == ExitCode::done);
}

TEST_CASE("a wrong code does not end recv: the right one still gets through",
          "[control][session]") {
  World world;
  world.listen();
  world.send(wrong_code);
  REQUIRE(world.run([&] { return world.send_end.has_value(); }));
  world.send_end.reset();
  REQUIRE(world.send_to_end(right_code) == ExitCode::done);
  CHECK(world.recv_end->code == ExitCode::done);
}
