// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Goal:   a peer that knows the code and lies, or vanishes, leaves a typed end on the other side.
// Method: the test itself speaks TCP, TLS and messages to a real receiver, and plays a receiver to
//         a real sender.
#include "tests/control/session/raw_peer.hpp"

#include <catch2/catch.hpp>

#include <algorithm>

using namespace onehop;
using namespace onehop::session;
using namespace onehop::session::test;

TEST_CASE("D3 a receiver that reports as done what cannot be ends the session",
          "[control][session]") {
  const auto done = [](FileOutcome outcome) {
    return FileDone{.file = 0, .root = some_digest(0, 200), .outcome = outcome};
  };
  // What it did not ask for; of packed files, where nothing is packed: one, beyond the end, and a
  // sum that overflows.
  const auto [action, report] = GENERATE_COPY(table<FileAction, Message>({
      {FileAction::send, done(FileOutcome::kept)},
      {FileAction::send, done(FileOutcome::not_compared)},
      {FileAction::compare, done(FileOutcome::received)},
      {FileAction::compare, done(FileOutcome::not_compared)},
      {FileAction::send, PackDone{{{3, 0, 1}}}},
      {FileAction::send, PackDone{{{0, 5, 65'536}}}},
      {FileAction::send, PackDone{{{4, 65'535, 65'536}}}},
  }));
  World world;
  const auto& manifest = world.send_host.data_manifest();
  const Accept accept{
      .data_port = 40'002, .frame_body_max_bytes = 1400, .io = "fake", .folder = {}};
  const VolumeAnswer volume{.manifest_hash = list::manifest_hash(manifest),
                            .actions = std::vector<FileAction>(manifest.files.size(), action)};
  tcp::acceptor acceptor{world.io, {asio::ip::address_v4::loopback(), 0}};
  world.send_options.port = acceptor.local_endpoint().port();
  RawPeer peer{world.io, {.role = Role::receiver}};
  acceptor.async_accept([&](const boost::system::error_code&, tcp::socket socket) {
    peer.start(std::move(socket),
               {Welcome{protocol_version, "onehop"}, accept, volume, PathReady{1400}},
               Role::receiver);
  });
  world.send();
  REQUIRE(world.run([&] { return peer.find<FileRoot>() != nullptr || world.send_end; }));
  REQUIRE_FALSE(world.send_end.has_value());
  peer.channel->send(report);
  REQUIRE(world.run([&] { return world.send_end.has_value(); }));
  CHECK(world.send_end->code == ExitCode::internal_error);
}

TEST_CASE("D3 a record that was sent cannot have been there, nor one that was compared be written",
          "[control][session]") {
  const auto [action, outcome, is_right] = GENERATE(table<FileAction, FileOutcome, bool>({
      {FileAction::send, FileOutcome::received, true},
      {FileAction::send, FileOutcome::kept, false},
      {FileAction::send, FileOutcome::name_refused, true},
      {FileAction::compare, FileOutcome::name_refused, false},
      {FileAction::resume, FileOutcome::there, true},
      {FileAction::resume, FileOutcome::kept, false},
      {FileAction::compare, FileOutcome::kept, true},
      {FileAction::compare, FileOutcome::there, true},
  }));
  const RecordOutcome told = outcome == FileOutcome::kept           ? RecordOutcome::kept
                             : outcome == FileOutcome::name_refused ? RecordOutcome::refused
                                                                    : RecordOutcome::delivered;
  const std::uint8_t fault = told == RecordOutcome::refused ? 200 : 0;
  World world;
  list::Manifest manifest;
  for (int i = 0; i < 40; ++i) manifest.files.push_back({"f" + std::to_string(i), 1, 0644});
  FakeSendHost host{world.io, manifest};
  tcp::acceptor acceptor{world.io, {asio::ip::address_v4::loopback(), 0}};
  world.send_options.port = acceptor.local_endpoint().port();
  RawPeer peer{world.io, {.role = Role::receiver}};
  const Accept accept{
      .data_port = 40'002, .frame_body_max_bytes = 1400, .io = "fake", .folder = {}};
  const VolumeAnswer answer{.manifest_hash = list::manifest_hash(manifest),
                            .actions = std::vector<FileAction>(40, action)};
  acceptor.async_accept([&](const boost::system::error_code&, tcp::socket socket) {
    peer.start(std::move(socket),
               {Welcome{protocol_version, "onehop"}, accept, answer, PathReady{1400}},
               Role::receiver);
  });
  const auto sender =
      std::make_shared<SendSession>(world.io, world.send_options, code_of(right_code), host);
  std::optional<SessionEnd> end;
  sender->start([&](const SessionEnd& ended) { end = ended; });
  REQUIRE(world.run([&] { return peer.find<PathReady>() != nullptr || end; }));
  REQUIRE_FALSE(end.has_value());
  host.accepted->answer->pack_roots->set(0, some_digest(0, 200));
  peer.channel->send(
      PackDone{{{.pack = 40, .first = 0, .count = 1, .outcome = told, .name_fault = fault}}});
  REQUIRE(world.run([&] { return end || !host.outcomes.empty(); }));
  CHECK(end.has_value() == !is_right);
  if (!end) CHECK(host.outcomes.at(0).outcome == outcome);
  // Of this one nothing was read yet.
  if (!end)
    peer.channel->send(
        PackDone{{{.pack = 40, .first = 1, .count = 1, .outcome = told, .name_fault = fault}}});
  REQUIRE(world.run([&] { return end.has_value(); }));
  CHECK(end->code == ExitCode::internal_error);
}

TEST_CASE("digests and roots of blocks that do not exist end the session", "[control][session]") {
  const Message lie =
      GENERATE(Message{BlockDigests{false, {{1, 4, {}}}}},
               Message{BlockDigests{false, {{3, 0, {}}}}}, Message{Holes{{{1, 3, 2}}}},
               Message{Holes{{{1, 4, 1}}}}, Message{Holes{{{3, 0, 1}}}}, Message{FileRoot{3, {}}},
               Message{Complete{}}, Message{Accept{.data_port = 1, .frame_body_max_bytes = 999}});
  World world;
  world.listen();
  RawPeer peer{world.io, {.role = Role::sender}};
  auto messages = offer_messages(some_manifest());
  messages.insert(messages.end(), {DataReady{}, PathReady{1400}, lie});
  peer.connect(world.recv_host.port, messages);
  REQUIRE(world.run([&] { return world.recv_end.has_value(); }));
  CHECK(world.recv_end->code == ExitCode::internal_error);
  CHECK(world.recv_host.stopped == 1);
  CHECK(world.recv_host.done.empty());
}

TEST_CASE("a second sender while busy waits, is refused with 5 and names nothing",
          "[control][session]") {
  World world;
  world.send_host.script.sends_blocks = false;
  world.listen();
  world.send();
  REQUIRE(world.run([&] { return world.recv_host.plan.has_value(); }));
  list::Manifest secret;
  secret.files.push_back({"secret-name", 1, 0644});
  FakeSendHost other{world.io, secret};
  const auto second =
      std::make_shared<SendSession>(world.io, world.send_options, code_of(right_code), other);
  std::optional<SessionEnd> second_end;
  second->start([&](const SessionEnd& end) { second_end = end; });
  REQUIRE(world.run([&] { return second_end.has_value(); }));
  CHECK(second_end->code == ExitCode::refused_by_peer);
  CHECK(second_end->error.message().find("busy") != std::string::npos);
  CHECK(other.opened == 0);  // it had not even opened its port: no offer was made
  CHECK_FALSE(world.send_end.has_value());
  CHECK(world.recv_host.offer->manifest->files[0].name != "secret-name");
  world.sender->interrupt();
  REQUIRE(world.run_to_end());
}

TEST_CASE("another version is refused with both versions named", "[control][session]") {
  World world;
  world.listen();
  RawPeer peer{world.io, {.role = Role::sender, .alpn = "onehop/9"}};
  peer.connect(world.recv_host.port);
  REQUIRE(world.run([&] { return peer.is_over; }));
  REQUIRE(peer.find<Refuse>() != nullptr);
  CHECK(peer.find<Refuse>()->code == ExitCode::refused_by_peer);
  CHECK(peer.find<Refuse>()->text.find("onehop/5") != std::string::npos);
  CHECK(peer.find<Refuse>()->text.find("onehop/9") != std::string::npos);
  CHECK(world.recv_host.offer == nullptr);
  world.send();  // it is still there for the right version
  REQUIRE(world.run_to_end());
  CHECK(world.send_end->code == ExitCode::done);
}

TEST_CASE("a receiver of another version gets 5 from the sender, both versions named",
          "[control][session]") {
  World world;
  tcp::acceptor acceptor{world.io, {asio::ip::address_v4::loopback(), 0}};
  world.send_options.port = acceptor.local_endpoint().port();
  RawPeer peer{world.io, {.role = Role::receiver}};
  acceptor.async_accept([&](const boost::system::error_code&, tcp::socket socket) {
    peer.start(std::move(socket), {Welcome{7, "onehop 7"}}, Role::receiver);
  });
  world.send();
  REQUIRE(world.run([&] { return world.send_end.has_value(); }));
  CHECK(world.send_end->code == ExitCode::refused_by_peer);
  CHECK(world.send_end->error.message().find("onehop/5") != std::string::npos);
  CHECK(world.send_end->error.message().find("onehop/7") != std::string::npos);
  CHECK(peer.find<Offer>() == nullptr);
}

TEST_CASE("an excessive or unknown message ends the session before its body is read",
          "[control][session]") {
  const bool is_large = GENERATE(true, false);
  World world;
  world.listen();
  RawPeer peer{world.io, {.role = Role::sender}};
  tcp::socket socket{world.io};
  socket.connect({asio::ip::address_v4::loopback(), world.recv_host.port});
  // The TLS of a channel, but bytes of our own.
  peer.channel =
      std::make_shared<Channel>(std::move(socket), peer.tls, SessionLimits{}, Endpoint{});
  std::vector<std::byte> said;
  encode_message(Hello{}, said);
  for (const int byte : {is_large ? 4 : 99, 0x00, 0x20, 0x00, 0x00})
    said.push_back(static_cast<std::byte>(byte));
  asio::co_spawn(
      world.io,
      [&]() -> Task<void> {
        peer.handshake = co_await peer.channel->handshake(Role::sender, 2s);
        (void)::SSL_write(peer.channel->ssl(), said.data(), static_cast<int>(said.size()));
        peer.channel->start();
        peer.channel->send(KeepAlive{});  // carries what SSL_write left in the buffer
        co_await peer.listen_to();
      },
      [](const std::exception_ptr&) {});
  REQUIRE(world.run([&] { return world.recv_host.ends.size() == 1; }));
  CHECK(world.recv_host.ends[0].code == ExitCode::internal_error);
  CHECK(world.recv_host.ends[0].error.message().find("unknown type or excessive length") !=
        std::string::npos);
}

TEST_CASE("C1 a sender that vanishes in the transfer is 7, and what arrived is made durable",
          "[control][session]") {
  World world;
  world.listen();
  RawPeer peer{world.io, {.role = Role::sender}};
  peer.is_resetting = GENERATE(true, false);
  auto messages = offer_messages(some_manifest());
  messages.insert(messages.end(), {DataReady{}, PathReady{1400}});
  peer.connect(world.recv_host.port, messages);
  REQUIRE(world.run(
      [&] { return std::ranges::count(world.recv_host.phases, Phase::transferring) == 1; }));
  peer.channel->abort();
  REQUIRE(world.run([&] { return world.recv_end.has_value(); }));
  CHECK(world.recv_end->code == ExitCode::interrupted);
  CHECK(std::ranges::count(world.recv_host.engine->seen(), CommandKind::checkpoint) == 1);
  CHECK(world.recv_host.stopped == 1);
}

TEST_CASE("a peer that says nothing is 11 after the silent limit", "[control][session]") {
  World world;
  world.recv_options.limits.silent = 500ms;
  world.recv_options.limits.keep_alive = 100ms;
  world.recv_options.limits.offer = world.recv_options.limits.step = 10s;
  world.listen();
  // Authenticated, a Hello, and then mute: its KeepAlives are a minute away.
  RawPeer peer{world.io, {.role = Role::sender}};
  tcp::socket socket{world.io};
  socket.connect({asio::ip::address_v4::loopback(), world.recv_host.port});
  peer.channel = std::make_shared<Channel>(std::move(socket), peer.tls,
                                           SessionLimits{.keep_alive = 60s}, Endpoint{});
  asio::co_spawn(
      world.io,
      [&]() -> Task<void> {
        peer.handshake = co_await peer.channel->handshake(Role::sender, 2s);
        peer.channel->start();
        peer.channel->send(Hello{});
      },
      [](const std::exception_ptr&) {});
  REQUIRE(world.run([&] { return world.recv_host.ends.size() == 1; }));
  CHECK(world.recv_host.ends[0].code == ExitCode::timed_out);
}

TEST_CASE("D3 a receiver that claims what was not offered ends the session at the sender",
          "[control][session]") {
  const int lie = GENERATE(range(0, 8));
  World world;
  const auto& manifest = world.send_host.data_manifest();
  Accept accept{.data_port = 40'002, .frame_body_max_bytes = 1400, .io = "fake", .folder = {}};
  VolumeAnswer volume{.manifest_hash = list::manifest_hash(manifest),
                      .has_held = true,
                      .actions = {FileAction::send, FileAction::send, FileAction::resume}};
  HeldPart held{.is_last = true, .runs = {{.file = 2, .first_block = 1, .count = 1}}};
  if (lie == 0) volume.manifest_hash[0] ^= std::byte{1};
  if (lie == 1) volume.actions.pop_back();
  if (lie == 2) accept.frame_body_max_bytes = 60'000;
  if (lie == 3) held.runs[0].file = 1;
  if (lie == 4) held.runs[0].count = 4;
  if (lie == 6) held.runs.push_back({.file = 2, .first_block = 1, .count = 1});
  if (lie == 7) held = {.is_last = false, .runs = {}};
  if (lie == 5) accept.is_repair_lazy = true;  // which was not offered
  tcp::acceptor acceptor{world.io, {asio::ip::address_v4::loopback(), 0}};
  world.send_options.port = acceptor.local_endpoint().port();
  RawPeer peer{world.io, {.role = Role::receiver}};
  acceptor.async_accept([&](const boost::system::error_code&, tcp::socket socket) {
    peer.start(std::move(socket), {Welcome{protocol_version, "onehop"}, accept, volume, held},
               Role::receiver);
  });
  world.send();
  REQUIRE(world.run([&] { return world.send_end.has_value(); }));
  CHECK(world.send_end->code == ExitCode::internal_error);
  CHECK_FALSE(world.send_host.plan.has_value());
  CHECK(world.send_host.stopped == 1);
}
