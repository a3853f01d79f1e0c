// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Goal:   a pair of sessions over real TCP and TLS ends as the table of exit codes says, on both
//         ends.
// Method: loopback; the test plays the engines. Deadlines are short, and no test measures speed.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cerrno>

#include "tests/control/session/session_world.hpp"

using namespace onehop;
using namespace onehop::session;
using namespace onehop::session::test;

TEST_CASE("a transfer ends with 0 on both ends, every file done once", "[control][session]") {
  World world;
  world.listen();
  world.send();
  REQUIRE(world.run_to_end());
  INFO(world.send_end->error.message() << " | " << world.recv_end->error.message());
  CHECK(world.send_end->code == ExitCode::done);
  CHECK(world.recv_end->code == ExitCode::done);
  CHECK(world.send_host.done == std::vector<std::uint32_t>{0, 1, 2});
  CHECK(world.recv_host.done == std::vector<std::uint32_t>{0, 1, 2});
  CHECK(world.recv_host.engine->digests() == 1 + 4 + 4);
  CHECK(*world.recv_host.offer->manifest == world.send_host.data_manifest());
  CHECK(world.send_host.opened == 1);
  CHECK(world.send_host.stopped == 1);
  CHECK(world.recv_host.stopped == 1);
  const std::vector<Phase> phases{
      Phase::connecting,   Phase::authenticating, Phase::waiting_for_accept,
      Phase::proving_path, Phase::transferring,   Phase::verifying,
      Phase::done};
  CHECK(world.send_host.phases == phases);
}

TEST_CASE("N6 frames go to the address of the TLS peer and its announced port",
          "[control][session]") {
  World world;
  world.listen();
  world.send();
  REQUIRE(world.run_to_end());
  const DataPlan& plan = *world.send_host.plan;
  CHECK(plan.peer.address == world.send_host.peer_link.peer.address);
  CHECK(plan.peer.port == world.recv_host.data_port);
  CHECK(plan.local.port == world.send_host.data_port);
  CHECK(world.recv_host.plan->peer.port == world.send_host.data_port);
  CHECK(plan.path.mtu_bytes > 0);
  CHECK(world.send_host.engine->path_updates() >= 1);
}

TEST_CASE("K1 both ends derive the same secret, and another one in each session",
          "[control][session]") {
  std::vector<std::vector<std::byte>> secrets;
  for (int i = 0; i < 2; ++i) {
    World world;
    world.listen();
    world.send();
    REQUIRE(world.run_to_end());
    const auto a = world.send_host.plan->secret.bytes();
    const auto b = world.recv_host.plan->secret.bytes();
    CHECK(std::equal(a.begin(), a.end(), b.begin(), b.end()));
    secrets.emplace_back(a.begin(), a.end());
  }
  CHECK(secrets[0] != secrets[1]);
}

TEST_CASE("the smaller frame of both ends is agreed", "[control][session]") {
  World world;
  world.send_host.frame_body_max = 8900;
  world.recv_host.frame_body_max = 1200;
  world.listen();
  world.send();
  REQUIRE(world.run_to_end());
  CHECK(world.send_host.plan->frame_body_max_bytes == 1200);
  CHECK(world.recv_host.plan->frame_body_max_bytes == 1200);
}

// Goal:   a receiver listens on the very address that it was given, IPv6 as well. Bounds: exact.
TEST_CASE("a receiver listens on its own address and on no other", "[control][session]") {
  for (const char* address : {"127.0.0.1", "::1"}) {
    World world;
    world.recv_options.address = address;
    world.listen();
    CHECK(world.recv_host.listening.address.text() == address);
  }
}

TEST_CASE("nobody there is 3, after the wait", "[control][session]") {
  World world;
  world.listen();
  world.server->interrupt();
  REQUIRE(world.run([&] { return world.recv_end.has_value(); }));
  CHECK(world.recv_end->code == ExitCode::interrupted);
  world.send();
  REQUIRE(world.run([&] { return world.send_end.has_value(); }));
  CHECK(world.send_end->code == ExitCode::peer_unreachable);
  CHECK(world.send_end->error.hint.find("firewall") != std::string::npos);
}

TEST_CASE("a receiver that starts late is found within the wait", "[control][session]") {
  World world;
  world.listen();  // to have a free port
  world.server->interrupt();
  REQUIRE(world.run([&] { return world.recv_end.has_value(); }));
  world.recv_end.reset();
  world.send_options.limits.connect = 10s;
  world.send();
  world.run([] { return false; }, 300ms);
  CHECK_FALSE(world.send_end.has_value());
  world.recv_options.port = world.send_options.port;
  world.listen();
  REQUIRE(world.run_to_end());
  CHECK(world.send_end->code == ExitCode::done);
}

TEST_CASE("a path that is not proven is 3 on both ends and names port and interface",
          "[control][session]") {
  World world;
  const bool is_sender_deaf = GENERATE(true, false);
  (is_sender_deaf ? world.send_host.script : world.recv_host.script).proves_path = false;
  world.listen();
  REQUIRE(world.send_to_end() == ExitCode::peer_unreachable);
  CHECK(world.recv_end->code == ExitCode::peer_unreachable);
  const std::string text = world.send_end->error.message();
  CHECK(text.find("UDP port 40002") != std::string::npos);
  CHECK(text.find(" lo") != std::string::npos);
  CHECK(text.find("firewall") != std::string::npos);
}

TEST_CASE("an engine that never answers does not hang the session (I5)", "[control][session]") {
  World world;
  world.send_host.script.stays_silent = true;
  world.send_options.limits.prove = 300ms;
  world.listen();
  REQUIRE(world.send_to_end() == ExitCode::peer_unreachable);
}

TEST_CASE("Z3 a full disk is 8 at the receiver and 5 at the sender, with the reason",
          "[control][session]") {
  World world;
  world.recv_host.script.fails_with_errno = ENOSPC;
  world.listen();
  world.send();
  REQUIRE(world.run_to_end());
  CHECK(world.recv_end->code == ExitCode::local_file_error);
  CHECK(world.recv_end->error.message().find("No space left") != std::string::npos);
  CHECK(world.send_end->code == ExitCode::refused_by_peer);
  CHECK(world.send_end->error.message().find("No space left") != std::string::npos);
}

TEST_CASE(
    "C3 K1 a source that changes once is sent again, alone with what is left, under other keys",
    "[control][session]") {
  World world;
  world.send_host.script.fails_with_errno = 0;
  world.send_host.changes = 1;
  world.listen();
  world.send();
  REQUIRE(world.run_to_end());
  INFO(world.send_end->error.message() << " | " << world.recv_end->error.message());
  CHECK(world.send_end->code == ExitCode::done);
  CHECK(world.recv_end->code == ExitCode::done);
  // The first file was done at the receiver when the second one changed; the second offer has the
  // other two.
  CHECK(world.send_host.settled == std::vector<bool>{true, false, false});
  CHECK(world.send_host.done == std::vector<std::uint32_t>{0, 0, 1});
  CHECK(world.recv_host.done == std::vector<std::uint32_t>{0, 0, 1});
  CHECK(world.recv_host.offer->is_changed == std::vector<bool>{true, false});
  CHECK(*world.recv_host.offer->manifest == world.send_host.data_manifest());
  CHECK(world.send_host.secrets.size() == 2);
  CHECK(world.send_host.secrets.front() != world.send_host.secrets.back());
  for (const int count : {world.send_host.opened, world.send_host.stopped, world.recv_host.opened,
                          world.recv_host.stopped})
    CHECK(count == 2);
}

TEST_CASE("C3 a source that changes again is 8 here and 5 at the receiver, which keeps what came",
          "[control][session]") {
  World world;
  world.send_host.script.fails_with_errno = 0;
  world.listen();
  world.send();
  REQUIRE(world.run_to_end());
  CHECK(world.send_host.secrets.size() == 2);
  CHECK(world.send_end->code == ExitCode::local_file_error);
  CHECK(world.send_end->error.message().find("again") != std::string::npos);
  CHECK(world.recv_end->code == ExitCode::refused_by_peer);
  // It was told to keep what came.
  const auto& seen = world.recv_host.engine->seen();
  CHECK(seen.back() == CommandKind::finish);
  CHECK(std::ranges::find(seen, CommandKind::checkpoint) != seen.end());
  CHECK(world.recv_host.engine->was_stopped());
}

// Goal:   one file that cannot be sent does not cost those behind it. Method: the second of three
//         changes, and again, or cannot be read. Bounds: exact.
TEST_CASE("C3 a file of a folder that changes again, or cannot be read, is left out",
          "[control][session]") {
  const bool is_unreadable = GENERATE(false, true);
  World world;
  world.send_host.script.fails_with_errno = is_unreadable ? EIO : 0;
  world.send_host.changes = is_unreadable ? 1 : 2;
  world.send_host.is_below_folder = true;
  world.listen();
  world.send();
  REQUIRE(world.run_to_end());
  INFO(world.send_end->error.message() << " | " << world.recv_end->error.message());
  CHECK(world.send_end->code == ExitCode::done);  // what was left out is the host's to tell
  CHECK(world.recv_end->code == ExitCode::done);
  CHECK(world.send_host.data_manifest().files.size() == 1);
  CHECK(*world.recv_host.offer->manifest == world.send_host.data_manifest());
  REQUIRE(world.send_host.why_unsent.has_value());
  CHECK(world.send_host.why_unsent->message().find(
            is_unreadable ? "Input/output error" : "and again") != std::string::npos);
}

TEST_CASE("silence on the data path is 11 on both ends", "[control][session]") {
  World world;
  world.send_host.script.fails_with_event = EventKind::feedback_silent;
  world.listen();
  REQUIRE(world.send_to_end() == ExitCode::timed_out);
  CHECK(world.recv_end->code == ExitCode::timed_out);
}

TEST_CASE("interrupt is 7 on both ends, and the receiver makes durable what arrived",
          "[control][session]") {
  World world;
  const bool is_sender = GENERATE(true, false);
  world.send_host.script.sends_blocks = false;
  world.listen();
  world.send();
  REQUIRE(world.run([&] {
    return std::count(world.recv_host.phases.begin(), world.recv_host.phases.end(),
                      Phase::transferring) == 1 &&
           std::count(world.send_host.phases.begin(), world.send_host.phases.end(),
                      Phase::transferring) == 1;
  }));
  is_sender ? world.sender->interrupt() : world.server->interrupt();
  REQUIRE(world.run_to_end());
  INFO(world.send_end->error.message() << " | " << world.recv_end->error.message());
  CHECK(world.send_end->code == ExitCode::interrupted);
  CHECK(world.recv_end->code == ExitCode::interrupted);
  const auto& seen = world.recv_host.engine->seen();
  CHECK(std::count(seen.begin(), seen.end(), CommandKind::checkpoint) == 1);
  CHECK(seen.back() == CommandKind::finish);
  CHECK(world.recv_host.stopped == 1);
}

TEST_CASE("a refusal of the offer is 5 at the sender and the host's own code at the receiver",
          "[control][session]") {
  World world;
  world.recv_host.answer = [](const OfferedVolume&, const Decide& decide) {
    decide(Error{ExitCode::local_file_error, "check the folder", "it is read-only\x1b[2J", ""});
  };
  world.listen();
  REQUIRE(world.send_to_end() == ExitCode::refused_by_peer);
  CHECK(world.recv_end->code == ExitCode::local_file_error);
  // D2: a peer's text reaches the user escaped.
  CHECK(world.send_end->error.message().find("read-only") != std::string::npos);
  CHECK(world.send_end->error.message().find('\x1b') == std::string::npos);
  CHECK(world.recv_host.opened == 0);
}

TEST_CASE("a question that nobody answers is 11 at both ends", "[control][session]") {
  World world;
  world.recv_host.answer = [](const OfferedVolume&, const Decide& decide) {
    decide(Error{ExitCode::timed_out, "decide on the offer", "nobody decided in time", ""});
  };
  world.listen();
  REQUIRE(world.send_to_end() == ExitCode::timed_out);
  CHECK(world.recv_end->code == ExitCode::timed_out);
  CHECK(world.send_end->error.message().find("nobody decided") != std::string::npos);
}

TEST_CASE("a receiver may think longer than the silent limit", "[control][session]") {
  World world;
  world.send_options.limits.silent = world.recv_options.limits.silent = 600ms;
  world.send_options.limits.keep_alive = world.recv_options.limits.keep_alive = 100ms;
  asio::steady_timer thinking{world.io};
  world.recv_host.answer = [&](const OfferedVolume& offer, const Decide& decide) {
    thinking.expires_after(1500ms);
    thinking.async_wait([&offer, decide](const boost::system::error_code&) {
      decide(list::Answer{
          std::vector<FileAction>(offer.manifest->files.size(), FileAction::send), {}, {}});
    });
  };
  world.listen();
  REQUIRE(world.send_to_end() == ExitCode::done);
}

// Goal:   what is there already is hashed in peace, however much it is, and a receiver that never
//         answers is not waited for without end. Method: both ends give 300 ms and the time for
//         what is offered, which the receiver answers after 1.5 s. Bounds: none on time.
TEST_CASE("a receiver has time to read what is offered, and no more", "[control][session]") {
  const bool is_large = GENERATE(true, false);
  World world;
  FakeSendHost host{world.io, some_manifest(3, is_large ? 100'000'000 : 4)};
  world.send_options.limits.consider = world.recv_options.limits.consider = 300ms;
  world.send_options.limits.offer = world.recv_options.limits.offer = 500ms;
  asio::steady_timer reading{world.io};
  world.recv_host.answer = [&](const OfferedVolume& offer, const Decide& decide) {
    world.recv_host.actions.assign(offer.manifest->files.size(), FileAction::assume);
    reading.expires_after(1500ms);
    reading.async_wait([&world, decide](const boost::system::error_code& error) {
      if (!error) decide(list::Answer{world.recv_host.actions, {}, {}});
    });
  };
  world.listen();
  const auto session =
      std::make_shared<SendSession>(world.io, world.send_options, code_of(right_code), host);
  session->start([&](const SessionEnd& end) { world.send_end = end; });
  REQUIRE(world.run_to_end());
  CHECK(world.send_end->code == (is_large ? ExitCode::done : ExitCode::timed_out));
  CHECK(world.recv_end->code == (is_large ? ExitCode::done : ExitCode::timed_out));
  list::Manifest claimed = some_manifest(1);
  claimed.files[0].size = std::uint64_t{1} << 62;
  CHECK(SessionLimits{}.consider_all(claimed) > 24h);
}

TEST_CASE("what a receiver holds, and its tags, arrive whole and in order", "[control][session]") {
  World world;
  world.recv_host.answer = [&](const OfferedVolume&, const Decide& decide) {
    world.recv_host.actions = {FileAction::send, FileAction::resume, FileAction::resume};
    list::Answer decision{world.recv_host.actions, {}, {}};
    decision.held = {{}, {{0, 1}, {2, 4}}, {{1, 2}}};
    world.recv_host.held = decision.held;
    decide(std::move(decision));
  };
  world.listen();
  REQUIRE(world.send_to_end() == ExitCode::done);
  CHECK(world.send_host.accepted->answer->held == world.recv_host.held);
  const std::vector<HeldBlock>& told = world.send_host.engine->told();
  REQUIRE(told.size() == 4);
  CHECK(told[1].file == 1);
  CHECK(told[1].block == 2);
  CHECK(told[1].tag == some_digest(1, 2));
  // The sender skips what it claims to have compared, and says so: the receiver's file side sees it
  // as skipped.
  CHECK(world.recv_host.engine->skipped() == 4);
}

TEST_CASE("a manifest of 5,000 files and a slow engine go through bounded queues",
          "[control][session]") {
  World world;
  FakeSendHost host{world.io, some_manifest(5'000, list::packed_bytes_max + 1)};
  world.recv_host.script.commands_per_turn = 500;
  host.script.commands_per_turn = 500;
  world.listen();
  const auto session =
      std::make_shared<SendSession>(world.io, world.send_options, code_of(right_code), host);
  session->start([&](const SessionEnd& end) { world.send_end = end; });
  REQUIRE(world.run([&] { return world.recv_end.has_value() && world.send_end.has_value(); }, 60s));
  CHECK(world.send_end->code == ExitCode::done);
  CHECK(host.done.size() == 5'000);
}

TEST_CASE("recv without --once serves one session after the other", "[control][session]") {
  World world;
  world.recv_options.is_once = false;
  world.listen();
  for (std::size_t i = 1; i <= 2; ++i) {
    world.send_end.reset();
    world.send();
    REQUIRE(
        world.run([&] { return world.send_end.has_value() && world.recv_host.ends.size() == i; }));
    CHECK(world.send_end->code == ExitCode::done);
  }
  world.server->interrupt();
  REQUIRE(world.run([&] { return world.recv_end.has_value(); }));
  CHECK(world.recv_end->code == ExitCode::done);
}
