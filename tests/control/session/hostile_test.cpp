// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Goal:   a peer that knows the code and lies is refused before the host learns a name; whoever
//         vanishes leaves a typed end on the other side.
// Method: the test itself speaks TCP, TLS and messages to a real receiver, and plays a receiver to
//         a real sender.
#include "tests/control/session/raw_peer.hpp"

#include <catch2/catch.hpp>

#include <algorithm>

using namespace onehop;
using namespace onehop::session;
using namespace onehop::session::test;

namespace {

Offer offer_of(const file::Manifest& manifest) {
  Offer offer;
  offer.frame_body_max_bytes = 1400;
  offer.data_port = 40'000;
  offer.entries_known = manifest.files.size();
  return offer;
}
std::vector<Message> offer_messages(const file::Manifest& manifest) {
  return {offer_of(manifest), ManifestPart{manifest.files},
          ChapterEnd{file::manifest_hash(manifest), true}};
}
file::Manifest named(std::vector<std::string> names, std::uint64_t size = 1) {
  file::Manifest manifest;
  for (auto& name : names) manifest.files.push_back({std::move(name), size, 0644});
  return manifest;
}

}  // namespace

TEST_CASE("P1 P3 P4 Z1 a hostile manifest is refused before the host learns a name",
          "[control][session]") {
  const std::vector<file::Manifest> hostile{named({"../x"}),
                                            named({"/etc/passwd"}),
                                            named({"a//b"}),
                                            named({"a/./b"}),
                                            named({"a/"}),
                                            named({""}),
                                            named({std::string{"a\0b", 3}}),
                                            named({std::string(300, 'a')}),
                                            named({"a", "a"}),
                                            named({"a", "a/b"}),
                                            named({"a", "b"}, std::uint64_t{1} << 62),
                                            named({"ok", "sub/../../x"})};
  for (const auto& manifest : hostile) {
    World world;
    world.listen();
    RawPeer peer{world.io, {.role = Role::sender}};
    auto messages = offer_messages(manifest);
    peer.connect(world.recv_host.port, messages);
    CAPTURE(file::display_name(manifest.files.back().name), manifest.files.size());
    REQUIRE(world.run([&] { return world.recv_host.ends.size() == 1 && peer.is_over; }));
    CHECK(world.recv_host.ends[0].code != ExitCode::done);
    CHECK(world.recv_host.offer == nullptr);
    CHECK(world.recv_host.opened == 0);
    CHECK(peer.find<Accept>() == nullptr);
    CHECK(peer.find<Refuse>() != nullptr);
    CHECK_FALSE(world.recv_end.has_value());  // recv --once goes on waiting for an honest sender
  }
}

TEST_CASE("Z1 an offer beyond a limit is refused with what it has and the limit's number",
          "[control][session]") {
  struct Case {
    file::Manifest manifest;
    std::vector<std::string> words;
  };
  const std::string bytes_max = std::to_string(std::uint64_t{1} << 62),
                    size = std::to_string((std::uint64_t{1} << 63) - 1);
  const std::vector<Case> cases{
      {named({"large"}, (std::uint64_t{1} << 63) - 1), {"'large'", size, bytes_max}},
      {named({"large"}, ~std::uint64_t{0}),
       {"'large'", std::to_string(~std::uint64_t{0}), bytes_max}},
      {named({"a", "b", "c"}, std::uint64_t{1} << 62),
       {"'b'", std::to_string(std::uint64_t{1} << 63), bytes_max}},
      {named({std::string(60'000, 'n')}), {"60000 bytes", "4095"}},
      {named({std::string(256, 'n')}), {"256 bytes", "255"}}};
  for (const Case& offered : cases) {
    World world;
    world.listen();
    RawPeer peer{world.io, {.role = Role::sender}};
    auto messages = offer_messages(offered.manifest);
    peer.connect(world.recv_host.port, messages);
    REQUIRE(world.run([&] { return world.recv_host.ends.size() == 1 && peer.is_over; }));
    const auto* refuse = peer.find<Refuse>();
    REQUIRE(refuse != nullptr);
    for (const std::string& word : offered.words) {
      INFO(word << " in " << refuse->text);
      CHECK(refuse->text.find(word) != std::string::npos);
      CHECK(world.recv_host.ends[0].error.message().find(word) != std::string::npos);
    }
    CHECK(world.recv_host.offer == nullptr);
  }
}

TEST_CASE("Z1 names are refused when their sum passes its limit, before the list has ended",
          "[control][session]") {
  World world;
  world.listen();
  RawPeer peer{world.io, {.role = Role::sender}};
  std::vector<Message> messages{offer_of(named({"a"}))};
  const ManifestPart part{named(std::vector<std::string>(16, std::string(60'000, 'n'))).files};
  messages.insert(messages.end(), 18, part);  // 17 MB; none of them is the last
  peer.connect(world.recv_host.port, messages);
  REQUIRE(world.run([&] { return world.recv_host.ends.size() == 1 && peer.is_over; }));
  REQUIRE(peer.find<Refuse>() != nullptr);
  INFO(peer.find<Refuse>()->text);
  CHECK(peer.find<Refuse>()->text.find("16777216 bytes") != std::string::npos);
}

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
      {FileAction::send, PackDone{3, 0, 1}},
      {FileAction::send, PackDone{0, 5, 65'536}},
      {FileAction::send, PackDone{4, 65'535, 65'536}},
  }));
  World world;
  const auto& manifest = world.send_host.data_manifest();
  const Accept accept{
      .data_port = 40'002, .frame_body_max_bytes = 1400, .io = "fake", .folder = {}};
  const ChapterAnswer chapter{.manifest_hash = file::manifest_hash(manifest),
                              .actions = std::vector<FileAction>(manifest.files.size(), action)};
  tcp::acceptor acceptor{world.io, {asio::ip::address_v4::loopback(), 0}};
  world.send_options.port = acceptor.local_endpoint().port();
  RawPeer peer{world.io, {.role = Role::receiver}};
  acceptor.async_accept([&](const boost::system::error_code&, tcp::socket socket) {
    peer.start(std::move(socket),
               {Welcome{protocol_version, "onehop"}, accept, chapter, PathReady{1400}},
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
      {FileAction::resume, FileOutcome::there, true},
      {FileAction::resume, FileOutcome::kept, false},
      {FileAction::compare, FileOutcome::kept, true},
      {FileAction::compare, FileOutcome::received, false},
  }));
  World world;
  file::Manifest manifest;
  for (int i = 0; i < 40; ++i) manifest.files.push_back({"f" + std::to_string(i), 1, 0644});
  FakeSendHost host{world.io, manifest};
  tcp::acceptor acceptor{world.io, {asio::ip::address_v4::loopback(), 0}};
  world.send_options.port = acceptor.local_endpoint().port();
  RawPeer peer{world.io, {.role = Role::receiver}};
  const Accept accept{
      .data_port = 40'002, .frame_body_max_bytes = 1400, .io = "fake", .folder = {}};
  const ChapterAnswer answer{.manifest_hash = file::manifest_hash(manifest),
                             .actions = std::vector<FileAction>(40, action)};
  acceptor.async_accept([&](const boost::system::error_code&, tcp::socket socket) {
    peer.start(std::move(socket),
               {Welcome{protocol_version, "onehop"}, accept, answer, PathReady{1400}},
               Role::receiver);
  });
  SendSession sender{world.io, world.send_options, key_of(right_code), host};
  std::optional<SessionEnd> end;
  sender.start([&](const SessionEnd& ended) { end = ended; });
  REQUIRE(world.run([&] { return peer.find<PathReady>() != nullptr || end; }));
  REQUIRE_FALSE(end.has_value());
  peer.channel->send(PackDone{.pack = 40, .first = 0, .count = 1, .outcome = outcome});
  REQUIRE(world.run([&] { return end || !host.outcomes.empty(); }));
  CHECK(end.has_value() == !is_right);
  if (end) CHECK(end->code == ExitCode::internal_error);
  peer.channel->abort();
  REQUIRE(world.run([&] { return end.has_value(); }));
}

TEST_CASE("P7 a chapter whose hash disagrees with its entries is refused", "[control][session]") {
  const int lie = GENERATE(range(0, 2));
  auto messages = offer_messages(some_manifest());
  if (lie == 0) std::get<ChapterEnd>(messages[2]).manifest_hash[5] ^= std::byte{1};
  if (lie == 1) std::get<ManifestPart>(messages[1]).entries.pop_back();
  World world;
  world.listen();
  RawPeer peer{world.io, {.role = Role::sender}};
  peer.connect(world.recv_host.port, messages);
  REQUIRE(world.run([&] { return world.recv_host.ends.size() == 1; }));
  CHECK(world.recv_host.ends[0].code == ExitCode::internal_error);
  CHECK(world.recv_host.offer == nullptr);
}

// A sender may offer again what it offered and did not finish, once per file, each time under other
// keys.
TEST_CASE("P7 K1 D3 an offer made again brings no new name, no used key, and not for ever",
          "[control][session]") {
  const int lie = GENERATE(range(0, 4));
  CAPTURE(lie);
  World world;
  world.listen();
  RawPeer peer{world.io, {.role = Role::sender}};
  auto messages = offer_messages(some_manifest());
  if (lie != 3) messages.insert(messages.end(), {DataReady{}, PathReady{1400}});
  peer.connect(world.recv_host.port, messages);
  const auto again = [&](const file::Manifest& manifest, int session) {
    const auto count = std::ranges::count(world.recv_host.phases, Phase::transferring) + 1;
    REQUIRE(world.run(
        [&] { return std::ranges::count(world.recv_host.phases, Phase::transferring) == count; }));
    const auto say = [&](const std::vector<Message>& list) {
      for (const Message& message : list) peer.channel->send(message);
    };
    say({Restart{}});
    auto offer = offer_messages(manifest);
    std::get<Offer>(offer[0]).session_id[0] = static_cast<std::byte>(session);
    say(offer);
    const int opened = world.recv_host.opened + 1;
    REQUIRE(world.run([&] { return world.recv_host.opened == opened || world.recv_end; }));
    say({DataReady{}, PathReady{1400}});
  };
  if (lie == 0) again(named({"folder/file-0", "folder/file-9"}), 1);
  if (lie == 1) again(some_manifest(), 0);
  for (int i = 1; lie == 2 && i <= 4; ++i) again(some_manifest(), i);
  if (lie == 3) {
    REQUIRE(world.run([&] { return world.recv_host.engine.has_value(); }));
    peer.channel->send(Restart{});  // before the path is proven
  }
  REQUIRE(world.run([&] { return world.recv_end.has_value(); }));
  CHECK(world.recv_end->code == ExitCode::internal_error);
  CHECK(world.recv_host.opened == (lie == 2 ? 4 : 1));
  CHECK(world.recv_host.stopped == world.recv_host.opened);
}

TEST_CASE("digests and roots of blocks that do not exist end the session", "[control][session]") {
  const Message lie =
      GENERATE(Message{BlockDigests{false, {{1, 4, {}}}}},
               Message{BlockDigests{false, {{3, 0, {}}}}}, Message{FileRoot{3, {}}},
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

// Goal:   a sender that offers on and on ends its session, and one that goes on after its last
//         chapter, too. Method: the receiver has no word of any file, so no chapter comes to an
//         end.
TEST_CASE("Z1 more chapters than may be under way, or one after the last, end the session",
          "[control][session]") {
  const auto [chapters, is_last, code] = GENERATE(table<std::size_t, bool, ExitCode>(
      {{chapters_open_max, false, ExitCode::interrupted},  // it hangs up, as below
       {chapters_open_max + 1, false, ExitCode::internal_error},
       {2, true, ExitCode::internal_error}}));
  World world;
  world.listen();
  RawPeer peer{world.io, {.role = Role::sender}};
  const auto chapter = [&](std::size_t number, bool ends) -> std::vector<Message> {
    const file::Manifest manifest = named({"f" + std::to_string(number)});
    return {ManifestPart{manifest.files}, ChapterEnd{file::manifest_hash(manifest), ends}};
  };
  std::vector<Message> messages = chapter(0, is_last);
  messages.insert(messages.begin(), offer_of(named({"f"})));
  messages.insert(messages.end(), {DataReady{}, PathReady{1400}});
  peer.connect(world.recv_host.port, messages);
  REQUIRE(world.run([&] { return peer.find<PathReady>() != nullptr; }));
  for (std::size_t i = 1; i < chapters; ++i)
    for (const Message& message : chapter(i, false)) peer.channel->send(message);
  if (code == ExitCode::interrupted) {
    const auto is_answer = [](const Message& said) {
      return std::holds_alternative<ChapterAnswer>(said);
    };
    REQUIRE(world.run([&] {
      return std::ranges::count_if(peer.heard, is_answer) == std::ptrdiff_t{chapters_open_max};
    }));
    CHECK_FALSE(world.recv_end.has_value());
    peer.channel->abort();
  }
  REQUIRE(world.run([&] { return world.recv_end.has_value(); }));
  CHECK(world.recv_end->code == code);
  CHECK(world.recv_host.stopped == 1);
}

TEST_CASE("a second sender while busy waits, is refused with 5 and names nothing",
          "[control][session]") {
  World world;
  world.send_host.script.sends_blocks = false;
  world.listen();
  world.send();
  REQUIRE(world.run([&] { return world.recv_host.plan.has_value(); }));
  FakeSendHost other{world.io, named({"secret-name"})};
  SendSession second{world.io, world.send_options, key_of(right_code), other};
  std::optional<SessionEnd> second_end;
  second.start([&](const SessionEnd& end) { second_end = end; });
  REQUIRE(world.run([&] { return second_end.has_value(); }));
  CHECK(second_end->code == ExitCode::refused_by_peer);
  CHECK(second_end->error.message().find("busy") != std::string::npos);
  CHECK(other.opened == 0);  // it had not even opened its port: no offer was made
  CHECK_FALSE(world.send_end.has_value());
  CHECK(world.recv_host.offer->manifest.files[0].name != "secret-name");
  world.sender->interrupt();
  REQUIRE(world.run_to_end());
}

TEST_CASE("another version is refused with both versions named", "[control][session]") {
  World world;
  world.listen();
  RawPeer peer{world.io, {.role = Role::sender, .alpn = {"onehop/9"}}};
  peer.connect(world.recv_host.port);
  REQUIRE(world.run([&] { return peer.is_over; }));
  REQUIRE(peer.find<Refuse>() != nullptr);
  CHECK(peer.find<Refuse>()->code == ExitCode::refused_by_peer);
  CHECK(peer.find<Refuse>()->text.find("onehop/3") != std::string::npos);
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
  CHECK(world.send_end->error.message().find("onehop/3") != std::string::npos);
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
      std::make_shared<Channel>(std::move(socket), peer.tls, ChannelLimits{}, Endpoint{});
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
                                           ChannelLimits{.keep_alive = 60s}, Endpoint{});
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
  const int lie = GENERATE(range(0, 6));
  World world;
  const auto& manifest = world.send_host.data_manifest();
  Accept accept{.data_port = 40'002, .frame_body_max_bytes = 1400, .io = "fake", .folder = {}};
  ChapterAnswer chapter{.manifest_hash = file::manifest_hash(manifest),
                        .has_claims = true,
                        .actions = {FileAction::send, FileAction::send, FileAction::resume}};
  ClaimPart claim{.file = 2, .first_block = 1, .is_last = true, .digests = {some_digest(2, 1)}};
  if (lie == 0) chapter.manifest_hash[0] ^= std::byte{1};
  if (lie == 1) chapter.actions.pop_back();
  if (lie == 2) accept.frame_body_max_bytes = 60'000;
  if (lie == 3) claim.file = 1;
  if (lie == 4) claim.first_block = 4;
  if (lie == 5) accept.is_repair_lazy = true;  // which was not offered
  tcp::acceptor acceptor{world.io, {asio::ip::address_v4::loopback(), 0}};
  world.send_options.port = acceptor.local_endpoint().port();
  RawPeer peer{world.io, {.role = Role::receiver}};
  acceptor.async_accept([&](const boost::system::error_code&, tcp::socket socket) {
    peer.start(std::move(socket), {Welcome{protocol_version, "onehop"}, accept, chapter, claim},
               Role::receiver);
  });
  world.send();
  REQUIRE(world.run([&] { return world.send_end.has_value(); }));
  CHECK(world.send_end->code == ExitCode::internal_error);
  CHECK_FALSE(world.send_host.plan.has_value());
  CHECK(world.send_host.stopped == 1);
}
