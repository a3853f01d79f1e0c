// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Goal:   a sender that comes while another one is served gets its turn within its wait; who comes
//         back takes the place of its own dead connection, and of nobody else's; who holds the
//         receiver for nothing makes room.
// Method: real senders over loopback TCP and TLS. A peer whose test plays it dead keeps its
//         connection and reads nothing.
#include "tests/control/session/raw_peer.hpp"

#include <catch2/catch.hpp>

#include <thread>

using namespace onehop;
using namespace onehop::session;
using namespace onehop::session::test;

namespace {

constexpr SenderToken my_token{std::byte{1}}, other_token{std::byte{2}};

/// Another real sender to the world's receiver.
struct OtherSender {
  FakeSendHost host;
  std::shared_ptr<SendSession> session;
  std::optional<SessionEnd> end;
  OtherSender(World& world, const SenderToken& token, Nanos wait,
              std::string_view code = right_code)
      : host{world.io},
        session{std::make_shared<SendSession>(world.io, options_of(world, token, wait),
                                              code_of(code), host)} {
    session->start([this](const SessionEnd& ended) { end = ended; });
  }
  static SendOptions options_of(const World& world, const SenderToken& token, Nanos wait) {
    SendOptions options = world.send_options;
    options.token = token;
    options.limits.connect = wait;
    return options;
  }
};

/// DeadSender proves its token, makes an offer, and then neither reads nor writes, as when its
/// machine is gone: its io_context turns in live() only.
struct DeadSender {
  asio::io_context io;
  RawPeer peer{io, {.role = Role::sender}};
  DeadSender(World& world, const SenderToken& token) {
    const list::Manifest manifest = some_manifest();
    Offer offer;
    offer.frame_body_max_bytes = 1400;
    offer.data_port = 40'000;
    peer.token = token;
    peer.connect(world.recv_host.port, {offer, ManifestPart{manifest.files},
                                        VolumeEnd{list::manifest_hash(manifest), true}});
  }
  bool live() {
    io.restart();
    io.poll();
    return false;
  }
};

/// occupy lets a sender that has nothing yet take the receiver.
void occupy(World& world) {
  world.send_host.script.sends_blocks = false;
  world.listen();
  world.send();
  REQUIRE(world.run([&] { return world.recv_host.plan.has_value(); }));
}

/// die returns when the receiver has taken the dead sender's offer.
void die(World& world, DeadSender& sender) {
  REQUIRE(world.run([&] { return sender.live() || world.recv_host.plan.has_value(); }));
}

}  // namespace

TEST_CASE("a sender waits for a busy receiver within its wait, and is then served",
          "[control][session]") {
  World world;
  world.recv_options.is_once = false;
  occupy(world);
  OtherSender second{world, other_token, 20s}, third{world, {}, 20s};
  REQUIRE(
      world.run([&] { return second.host.notices.size() == 1 && third.host.notices.size() == 1; }));
  CHECK(second.host.notices[0].find("busy") != std::string::npos);
  CHECK(second.host.opened + third.host.opened == 0);  // nothing was named yet
  world.sender->interrupt();
  REQUIRE(world.run([&] { return second.end && third.end && world.recv_host.ends.size() == 3; }));
  CHECK(second.end->code == ExitCode::done);
  CHECK(third.end->code == ExitCode::done);
}

TEST_CASE("a wait for a busy receiver ends with 5 and says how to wait longer",
          "[control][session]") {
  World world;
  occupy(world);
  OtherSender second{world, other_token, 300ms};
  REQUIRE(world.run([&] { return second.end.has_value(); }));
  CHECK(second.end->code == ExitCode::refused_by_peer);
  CHECK(second.end->error.message().find("busy") != std::string::npos);
  CHECK(second.end->error.message().find("--wait") != std::string::npos);
  OtherSender patient{world, other_token, 20s};  // with recv --once nobody comes after the first
  REQUIRE(world.run([&] { return patient.host.notices.size() == 1; }));
  world.sender->interrupt();
  REQUIRE(world.run([&] { return world.recv_end && patient.end; }));
  CHECK(patient.end->code == ExitCode::refused_by_peer);
}

TEST_CASE("who waits and goes away makes room, and those who wait are bounded",
          "[control][session]") {
  World world;
  world.recv_options.waiting_max = 2;
  world.recv_options.is_once = false;
  occupy(world);
  OtherSender second{world, other_token, 20s}, third{world, other_token, 20s};
  REQUIRE(world.run([&] { return second.host.notices.size() + third.host.notices.size() == 2; }));
  OtherSender fourth{world, other_token, 20s};
  REQUIRE(world.run([&] { return fourth.end.has_value(); }));
  CHECK(fourth.end->code == ExitCode::refused_by_peer);
  second.session->interrupt();
  REQUIRE(world.run([&] { return second.end.has_value(); }));
  CHECK(second.end->code == ExitCode::interrupted);
  OtherSender fifth{world, other_token, 20s};
  REQUIRE(world.run([&] { return fifth.host.notices.size() == 1; }));
  world.sender->interrupt();
  REQUIRE(world.run([&] { return third.end && fifth.end; }));
  CHECK(third.end->code == ExitCode::done);
  CHECK(fifth.end->code == ExitCode::done);
}

// The interrupt comes when the waiting sender has answered and the receiver has not looked yet. It
// looks each 20 ms, so the test lets the answer come, oversleeps that look, and interrupts then.
TEST_CASE("no session begins after an interrupt that came while a waiting sender was asked",
          "[control][session]") {
  World world;
  world.recv_options.is_once = false;
  occupy(world);
  OtherSender second{world, other_token, 20s};
  REQUIRE(world.run([&] { return second.host.notices.size() == 1; }));
  world.sender->interrupt();
  REQUIRE(world.run([&] { return world.recv_host.ends.size() == 1; }));
  for (int i = 0; i < 8; ++i) {
    std::this_thread::sleep_for(1ms);
    world.io.poll();
  }
  std::this_thread::sleep_for(25ms);
  world.server->interrupt();
  REQUIRE(world.run([&] { return world.recv_end.has_value(); }));
  const std::size_t told = world.recv_host.ends.size();
  REQUIRE(world.run([&] { return second.end.has_value(); }));
  world.run([] { return false; }, 100ms);
  CHECK(second.end->code != ExitCode::done);
  CHECK(world.recv_host.ends.size() == told);
}

// Bounds: the silent limit of the receiver is 8 s here, and the wait of who comes back 4 s: it
// cannot have waited for silence.
TEST_CASE("U2 a sender that comes back takes the place of its dead connection, also with --once",
          "[control][session]") {
  World world;
  world.recv_options.limits.answer = 200ms;
  world.listen();
  DeadSender dead{world, my_token};
  die(world, dead);
  OtherSender again{world, my_token, 4s};
  REQUIRE(world.run([&] { return again.end && world.recv_end; }));
  INFO(again.end->error.message());
  CHECK(again.end->code == ExitCode::done);
  CHECK(world.recv_end->code == ExitCode::done);
  REQUIRE(world.recv_host.ends.size() == 2);
  CHECK(world.recv_host.ends[0].is_replaced);
  CHECK_FALSE(world.recv_host.ends[1].is_replaced);
}

TEST_CASE("U3 a dead session is not another sender's to take, whatever it says of itself",
          "[control][session]") {
  const SenderToken claim = GENERATE(as<SenderToken>{}, other_token, SenderToken{});
  World world;
  world.recv_options.limits.answer = 100ms;
  world.listen();
  DeadSender dead{world,
                  claim == SenderToken{} ? SenderToken{} : my_token};  // none is none, not the same
  die(world, dead);
  OtherSender stranger{world, claim, 1s};
  REQUIRE(world.run([&] { return stranger.end.has_value(); }));
  CHECK(stranger.end->code == ExitCode::refused_by_peer);
  CHECK(world.recv_host.ends.empty());
  world.server->interrupt();
  REQUIRE(world.run([&] { return world.recv_end.has_value(); }));
}

TEST_CASE("U3 a second run of the same command does not end the first one while that is alive",
          "[control][session]") {
  World world;
  world.recv_options.is_once = false;
  world.recv_options.limits.answer = 300ms;
  world.send_host.script.sends_blocks = false;
  world.send_options.token = my_token;
  world.listen();
  world.send();
  REQUIRE(world.run([&] { return world.recv_host.plan.has_value(); }));
  OtherSender second{world, my_token, 2s};
  REQUIRE(world.run([&] { return second.end.has_value(); }));
  CHECK(second.end->code == ExitCode::refused_by_peer);
  CHECK(world.recv_host.ends.empty());
  CHECK_FALSE(world.send_end.has_value());
  world.sender->interrupt();
  REQUIRE(world.run([&] { return world.send_end.has_value(); }));
}

TEST_CASE("a session that brings nothing ends with 11 when another sender waits, and only then",
          "[control][session]") {
  World world;
  const bool is_up_to_us = GENERATE(false, true);
  world.recv_options.is_once = false;
  world.recv_options.limits.floor_window = 1s;
  world.send_host.script.sends_blocks = false;  // it proves the path and keeps the connection alive
  world.recv_host.arrived = {.bytes = 20'000, .is_up_to_us = is_up_to_us};
  world.listen();
  world.send();
  world.run([] { return false; }, 2500ms);
  CHECK_FALSE(world.send_end.has_value());
  OtherSender second{world, other_token, is_up_to_us ? Nanos{2s} : Nanos{15s}};
  REQUIRE(world.run([&] { return second.end.has_value(); }));
  if (is_up_to_us) {
    CHECK(second.end->code == ExitCode::refused_by_peer);
    CHECK_FALSE(world.send_end.has_value());
  } else {
    REQUIRE(world.run([&] { return world.send_end.has_value(); }));
    CHECK(second.end->code == ExitCode::done);
    CHECK(world.send_end->code == ExitCode::timed_out);
    CHECK(world.send_end->error.message().find("another sender waits") != std::string::npos);
    CHECK(world.recv_host.ends[0].code == ExitCode::timed_out);
  }
}
