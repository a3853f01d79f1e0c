// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Goal:   what the receiver's machine does where order and time decide.
// Method: one RecvMachine; the test is the peer, the host and the engine, in virtual time.
#include <catch2/catch.hpp>

#include "control/session/recv_machine.hpp"

namespace onehop::session {
namespace {

list::ManifestEntry large(const std::string& name) {
  return {.name = name, .size = 4 * std::uint64_t{block_bytes}};
}

/// Played: a machine, and the decision on each volume.
struct Played {
  explicit Played(list::Answer decides) : decision{std::move(decides)} {
    machine.start(now);
    perform();
  }
  void offer(const std::vector<list::ManifestEntry>& entries, bool is_last) {
    const list::Manifest manifest{entries};
    if (!has_offered) {
      Offer first;
      first.frame_body_max_bytes = 1400;
      first.data_port = 40'000;
      first.context.session_id[0] = static_cast<std::byte>(++offers);
      hear(first);
    }
    has_offered = true;
    hear(ManifestPart{entries});
    hear(VolumeEnd{list::manifest_hash(manifest), is_last});
  }
  void begin_transfer() {
    begin_proof();
    report(EventKind::path_proven);
    hear(PathReady{1400});
  }
  void begin_proof() {
    while (machine.has_more_to_send()) tick();
    hear(DataReady{});
  }
  void report(EventKind kind) {
    machine.on_event(now, Event{.kind = kind, .value = 1400});
    perform();
  }
  void hear(Message message) {
    machine.on_message(now, std::move(message));
    perform();
  }
  void tick() {
    machine.tick(now);
    perform();
  }
  void engine_closes() {
    machine.on_event(now, Event{.kind = EventKind::closed});
    perform();
  }
  void finish_file(std::uint32_t file, const Digest& root) {
    machine.on_file_event(now, FileFinished{.file = file, .root = root});
    perform();
  }
  void perform() {
    while (auto action = machine.pop_action()) {
      if (std::holds_alternative<OpenData>(*action))
        machine.on_data_opened(now,
                               DataOpened{.data_port = 40'001,
                                          .frame_body_max_bytes = 1400,
                                          .io = "virtual",
                                          .other_io = other_io},
                               {});
      if (std::holds_alternative<StartData>(*action))
        machine.on_data_started(now, std::string{"virtual0"});
      fall_backs += std::holds_alternative<FallBack>(*action) ? 1 : 0;
      const auto* const command = std::get_if<Command>(&*action);
      proofs += command != nullptr && command->kind == CommandKind::prove_path ? 1 : 0;
      const auto* const message = std::get_if<Message>(&*action);
      readies += message != nullptr && std::holds_alternative<PathReady>(*message) ? 1 : 0;
      if (const auto* consider = std::get_if<Consider>(&*action)) {
        considered = consider->offer;
        machine.on_decision(now, decision);
      }
    }
  }

  Instant now{Instant{} + 1s};
  std::string other_io;  // set before the first offer
  int offers = 0, proofs = 0, fall_backs = 0, readies = 0;
  list::Answer decision;
  RecvMachine machine{RecvOptions{}, Endpoint{*IpAddress::parse("10.0.0.1"), 40'000}};
  bool has_offered = false;
  std::shared_ptr<const OfferedVolume> considered;
};

const Digest some_root{std::byte{7}};

}  // namespace

TEST_CASE("blocks that a comparison finds right are progress", "[control][session]") {
  Played played{{.actions = {FileAction::compare}}};
  played.offer({large("there")}, true);
  played.begin_transfer();
  BlockDigests same{.is_skipped = true, .digests = {}};
  for (std::uint64_t block = 0; block < 4; ++block) same.digests.push_back({0, block, {}});
  played.hear(same);
  CHECK(played.machine.bytes_confirmed() == large("there").size);
  played.hear(same);  // said twice, it is none
  CHECK(played.machine.bytes_confirmed() == large("there").size);
}

TEST_CASE("a path that is proven is not proven again by what a former round still reports",
          "[control][session]") {
  Played played{{.actions = {FileAction::send}}};
  played.other_io = "udp";
  played.offer({large("one")}, true);
  played.begin_proof();
  CHECK(played.proofs == 1);
  played.now += PathProof::fall_back_after;
  played.machine.note_heard(played.now);
  played.tick();
  CHECK(played.fall_backs == 1);
  CHECK(played.proofs == 2);
  played.report(EventKind::path_dead);  // of the first round: the engine had not read of the second
  CHECK(played.proofs == 3);
  for (int result = 0; result < 2; ++result) played.report(EventKind::path_proven);
  CHECK(played.readies == 1);
  played.report(EventKind::path_dead);
  CHECK(played.proofs == 3);
}

TEST_CASE("an interrupt after everything has arrived is no failure", "[control][session]") {
  const bool is_whole = GENERATE(false, true);
  Played played{{.actions = {FileAction::send}}};
  played.offer({large("one")}, true);
  played.begin_transfer();
  if (is_whole) {
    played.hear(FileRoot{0, some_root});
    played.finish_file(0, some_root);
  }
  played.machine.interrupt();
  played.tick();
  played.engine_closes();
  played.now += RecvOptions{}.limits.checkpoint;
  played.tick();
  played.engine_closes();
  REQUIRE(played.machine.is_over());
  CHECK(played.machine.end().code == (is_whole ? ExitCode::done : ExitCode::interrupted));
}

TEST_CASE("the path is followed while a changed source is waited for", "[control][session]") {
  Played played{{.actions = {FileAction::send}}};
  played.offer({large("one")}, true);
  played.begin_transfer();
  REQUIRE(played.machine.follows_path());
  played.hear(Restart{});
  CHECK(played.machine.follows_path());
}

TEST_CASE("what is not offered again is told, so that its part can go", "[control][session]") {
  Played played{{.actions = {FileAction::send, FileAction::send}}};
  played.offer({large("kept"), large("left")}, true);
  played.begin_transfer();
  played.hear(Restart{});
  played.engine_closes();
  played.has_offered = false;
  played.decision.actions = {FileAction::send};
  played.offer({large("kept")}, true);
  REQUIRE(played.considered);
  CHECK(played.considered->is_again);
  REQUIRE(played.considered->left_out.size() == 1);
  CHECK(played.considered->left_out[0].name == "left");
}

}  // namespace onehop::session
