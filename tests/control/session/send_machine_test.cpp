// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Goal:   what the sender's machine makes of what a receiver says that it holds.
// Method: one SendMachine; the test is the peer, the host and the engine, in virtual time.
#include "control/session/send_machine.hpp"

#include <catch2/catch.hpp>

#include "control/session/channel/tls.hpp"

namespace onehop::session {
namespace {

/// Played: a machine that sends one file of 8 blocks, of which the receiver says it holds 1 to 4.
struct Played {
  Played() {
    machine.start(now);
    hear(Welcome{});
    machine.tick(now);
    perform();
    hear(Accept{.data_port = 40'001, .frame_body_max_bytes = 1400, .io = "virtual", .folder = {}});
    hear(VolumeAnswer{.manifest_hash = list::manifest_hash(*manifest),
                      .has_held = true,
                      .actions = {FileAction::resume},
                      .name_faults = {}});
    hear(HeldPart{true, {{.file = 0, .first_block = 1, .count = 4}}});
    machine.on_event(now, Event{.kind = EventKind::path_proven, .value = 1400});
    hear(PathReady{1400});
  }
  void hear(Message message) {
    machine.on_message(now, std::move(message));
    perform();
  }
  void claim(std::uint64_t first_block, std::size_t count, bool is_last, std::uint32_t file = 0) {
    hear(ClaimPart{file, first_block, is_last, std::vector<Digest>(count)});
  }
  void perform() {
    while (auto action = machine.pop_action()) {
      if (std::holds_alternative<OpenData>(*action))
        machine.on_data_opened(now, DataOpened{40'000, 1400, "virtual"}, {});
      if (std::holds_alternative<StartData>(*action))
        machine.on_data_started(now, std::string{"virtual0"});
      if (std::holds_alternative<WantVolume>(*action))
        machine.on_volume(now, list::Volume{.manifest = manifest, .is_last = true}, {});
      if (const auto* told = std::get_if<FileCommand>(&*action)) {
        if (const auto* held = std::get_if<HeldBlock>(told)) blocks.push_back(held->block);
        ends += std::holds_alternative<HeldEnd>(*told) ? 1 : 0;
      }
    }
  }

  Instant now{Instant{} + 1s};
  std::shared_ptr<const list::Manifest> manifest =
      std::make_shared<list::Manifest>(list::Manifest{{{.name = "f", .size = 8 * block_bytes}}});
  SendMachine machine{
      SendOptions{},
      {Endpoint{*IpAddress::parse("10.0.0.1"), 7411}, std::string{alpn_name}, Instant{}}};
  std::vector<std::uint64_t> blocks;
  int ends = 0;
};

}  // namespace

TEST_CASE("tags go to the file thread in order, and end", "[control][session]") {
  Played played;
  played.claim(1, 2, false);
  played.claim(4, 1, true);
  CHECK(played.blocks == std::vector<std::uint64_t>{1, 2, 4});
  CHECK(played.ends == 1);
  CHECK_FALSE(played.machine.is_winding_down());
}

TEST_CASE("a receiver that holds nothing more says so", "[control][session]") {
  Played played;
  played.claim(0, 0, true);
  CHECK(played.blocks.empty());
  CHECK(played.ends == 1);
  CHECK_FALSE(played.machine.is_winding_down());
}

TEST_CASE("D3 tags of what a receiver did not say it held end the session", "[control][session]") {
  Played played;
  played.claim(2, 1, false);
  REQUIRE_FALSE(played.machine.is_winding_down());
  SECTION("not ascending") { played.claim(2, 1, false); }
  SECTION("behind the end") { played.claim(7, 2, false); }
  SECTION("of another file") { played.claim(1, 1, false, 1); }
  SECTION("nothing, and no end") { played.claim(3, 0, false); }
  SECTION("after the end") {
    played.claim(3, 1, true);
    REQUIRE_FALSE(played.machine.is_winding_down());
    played.claim(4, 1, false);
  }
  SECTION("of a file that is done") {
    const Digest root{std::byte{1}};
    played.machine.on_file_event(played.now, RootRead{0, root});
    played.hear(FileDone{.file = 0, .root = root});
    REQUIRE_FALSE(played.machine.has_error());
    played.claim(4, 1, false);
    return;  // it is over, and nothing was read of what has gone
  }
  CHECK(played.machine.is_winding_down());
  CHECK(played.machine.has_error());
}

// Goal:   a receiver whose disk hangs does not hold the sender for ever. Bounds: `consider`.
TEST_CASE("tags that do not come end the session in time", "[control][session]") {
  Played played;
  played.now += SessionLimits{}.consider - 1s;
  played.claim(1, 1, false);
  played.now += SessionLimits{}.consider - 1s;
  played.machine.tick(played.now);
  CHECK_FALSE(played.machine.is_winding_down());
  played.now += 2s;
  played.machine.tick(played.now);
  CHECK(played.machine.is_winding_down());
}

}  // namespace onehop::session
