// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Goal:   a peer that knows the code and offers what no honest one would is refused whole,
//         before the host learns a name.
// Method: the test itself speaks TCP, TLS and messages to a real receiver.
#include "engine/base/display_name.hpp"
#include "tests/control/session/raw_peer.hpp"

#include <catch2/catch.hpp>

#include <algorithm>

using namespace onehop;
using namespace onehop::session;
using namespace onehop::session::test;

namespace {

list::Manifest named(std::vector<std::string> names, std::uint64_t size = 1) {
  list::Manifest manifest;
  for (auto& name : names) manifest.files.push_back({std::move(name), size, 0644});
  return manifest;
}

}  // namespace

TEST_CASE("P1 P3 P4 Z1 a hostile manifest is refused before the host learns a name",
          "[control][session]") {
  const std::vector<list::Manifest> hostile{named({"../x"}),
                                            named({}),
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
    if (manifest.files.empty()) messages.erase(messages.begin() + 1);  // a part has an entry
    peer.connect(world.recv_host.port, messages);
    CAPTURE(manifest.files.empty() ? "" : display_name(manifest.files.back().name));
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
    list::Manifest manifest;
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
  // Both ends of 17 MB in one thread: a slow processor takes longer than the tests' limit.
  world.recv_options.limits.offer = 60s;
  world.listen();
  RawPeer peer{world.io, {.role = Role::sender}};
  std::vector<Message> messages{offer_of(named({"a"}))};
  const ManifestPart part{named(std::vector<std::string>(16, std::string(60'000, 'n'))).files};
  messages.insert(messages.end(), 18, part);  // 17 MB; none of them is the last
  peer.connect(world.recv_host.port, messages);
  REQUIRE(world.run([&] { return world.recv_host.ends.size() == 1 && peer.is_over; }, 60s));
  REQUIRE(peer.find<Refuse>() != nullptr);
  INFO(peer.find<Refuse>()->text);
  CHECK(peer.find<Refuse>()->text.find("16777216 bytes") != std::string::npos);
}

TEST_CASE("P7 a volume whose hash disagrees with its entries is refused", "[control][session]") {
  const int lie = GENERATE(range(0, 2));
  auto messages = offer_messages(some_manifest());
  if (lie == 0) std::get<VolumeEnd>(messages[2]).manifest_hash[5] ^= std::byte{1};
  if (lie == 1) std::get<ManifestPart>(messages[1]).entries.pop_back();
  World world;
  world.listen();
  RawPeer peer{world.io, {.role = Role::sender}};
  peer.connect(world.recv_host.port, messages);
  REQUIRE(world.run([&] { return world.recv_host.ends.size() == 1; }));
  CHECK(world.recv_host.ends[0].code == ExitCode::internal_error);
  CHECK(world.recv_host.offer == nullptr);
}

// A sender may offer again what it offered and did not finish, twice per file, each time under
// other keys.
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
  const auto again = [&](const list::Manifest& manifest, int session) {
    const auto count = std::ranges::count(world.recv_host.phases, Phase::transferring) + 1;
    REQUIRE(world.run(
        [&] { return std::ranges::count(world.recv_host.phases, Phase::transferring) == count; }));
    const auto say = [&](const std::vector<Message>& list) {
      for (const Message& message : list) peer.channel->send(message);
    };
    say({Restart{}});
    auto offer = offer_messages(manifest);
    std::get<Offer>(offer[0]).context.session_id[0] = static_cast<std::byte>(session);
    say(offer);
    const int opened = world.recv_host.opened + 1;
    REQUIRE(world.run([&] { return world.recv_host.opened == opened || world.recv_end; }));
    say({DataReady{}, PathReady{1400}});
  };
  if (lie == 0) again(named({"folder/file-0", "folder/file-9"}), 1);
  if (lie == 1) again(some_manifest(), 0);
  for (int i = 1; lie == 2 && i <= 7; ++i) again(some_manifest(), i);
  if (lie == 3) {
    REQUIRE(world.run([&] { return world.recv_host.engine.has_value(); }));
    peer.channel->send(Restart{});  // before the path is proven
  }
  REQUIRE(world.run([&] { return world.recv_end.has_value(); }));
  CHECK(world.recv_end->code == ExitCode::internal_error);
  CHECK(world.recv_host.opened == (lie == 2 ? 7 : 1));
  CHECK(world.recv_host.stopped == world.recv_host.opened);
}

// Goal:   a sender that offers on and on ends its session, and one that goes on after its last
//         volume, too. Method: the receiver has no word of any file, so no volume comes to an
//         end.
TEST_CASE("Z1 more volumes than may be under way, or one after the last, end the session",
          "[control][session]") {
  const auto [volumes, is_last, code] = GENERATE(table<std::size_t, bool, ExitCode>(
      {{volumes_open_max, false, ExitCode::interrupted},  // it hangs up, as below
       {volumes_open_max + 1, false, ExitCode::internal_error},
       {2, true, ExitCode::internal_error}}));
  World world;
  world.listen();
  RawPeer peer{world.io, {.role = Role::sender}};
  const auto volume = [&](std::size_t number, bool ends) -> std::vector<Message> {
    const list::Manifest manifest = named({"f" + std::to_string(number)});
    return {ManifestPart{manifest.files}, VolumeEnd{list::manifest_hash(manifest), ends}};
  };
  std::vector<Message> messages = volume(0, is_last);
  messages.insert(messages.begin(), offer_of(named({"f"})));
  messages.insert(messages.end(), {DataReady{}, PathReady{1400}});
  peer.connect(world.recv_host.port, messages);
  REQUIRE(world.run([&] { return peer.find<PathReady>() != nullptr; }));
  for (std::size_t i = 1; i < volumes; ++i)
    for (const Message& message : volume(i, false)) peer.channel->send(message);
  if (code == ExitCode::interrupted) {
    const auto is_answer = [](const Message& said) {
      return std::holds_alternative<VolumeAnswer>(said);
    };
    REQUIRE(world.run([&] {
      return std::ranges::count_if(peer.heard, is_answer) == std::ptrdiff_t{volumes_open_max};
    }));
    CHECK_FALSE(world.recv_end.has_value());
    peer.channel->abort();
  }
  REQUIRE(world.run([&] { return world.recv_end.has_value(); }));
  CHECK(world.recv_end->code == code);
  CHECK(world.recv_host.stopped == 1);
}
