// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// D3: a peer that knows the code says anything, in any order, while the engine and the user do what
// they may. Whatever comes, a session machine reports each file once, believes a file only with the
// root that it announced itself, gives its engine only what the manifest has, and ends.
//
// An input is a list of steps: one byte chooses, the next ones say how.
#include <algorithm>
#include <array>
#include <cstdio>
#include <random>

#include "control/session/channel/tls.hpp"
#include "engine/base/byte_codec.hpp"
#include "engine/base/check.hpp"
#include "tests/control/session/virtual_session.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace onehop;
using namespace onehop::session;
using namespace onehop::session::test;

std::uint64_t fuzz::accepted_total = 0;

namespace {

enum Step : std::uint8_t {
  message,
  event,
  file_event,
  wait,
  decide,
  path,
  interrupt,
  channel_end,
  step_count
};
// What happen() says of the file thread: places in FileEvent.
enum FileStep : std::uint8_t { root_read, file_finished, records_finished, checkpoint, failed };
constexpr std::uint8_t skipped_hole = 0, proven = 1, sent = 2;  // places in `events`
constexpr std::array<EventKind, 11> events{
    EventKind::block_skipped, EventKind::path_proven,     EventKind::block_sent,
    EventKind::all_arrived,   EventKind::path_dead,       EventKind::first_data,
    EventKind::stalled,       EventKind::feedback_silent, EventKind::port_refused,
    EventKind::port_failed,   EventKind::peer_heard};

list::Manifest some_files() {
  return {
      {{"a", 3 * block_bytes, 0644, 1}, {"b/c", 0, 0600, 2}, {"b/d", block_bytes + 1, 0644, 3}}};
}
/// As the sender cuts them: indices 0, 1 and 3.
std::array<list::Manifest, 2> some_volumes() {
  const list::Manifest all = some_files();
  return {list::Manifest{{all.files[0], all.files[1]}}, list::Manifest{{all.files[2]}}};
}
SendOptions send_options() {
  SendOptions options;
  options.host = "10.0.0.2";
  return options;
}

class Play {
 public:
  explicit Play(std::uint8_t first)
      : is_sender_{(first & 1) != 0},
        end_{is_sender_ ? VirtualEnd{send_options(), each_of(some_files()), first, 2}
                        : VirtualEnd{RecvOptions{}, first}} {
    end_.is_mute = true;
    end_.is_peer_hostile = !is_sender_;
    end_.start(now_);
  }

  void take(Step step, ByteReader& in) {
    SessionMachine& machine = end_.machine();
    switch (step) {
      case message: take_message(in); break;
      case event: take_event(in); break;
      case file_event: take_file_event(in); break;
      case wait: now_ += 10ms * in.u16(); break;
      case decide:
        if (end_.considered) end_.decide(now_);
        break;
      case path:
        if (machine.follows_path())
          machine.on_path("virtual0", PathUpdate{.is_link_up = in.u8() % 2 == 0});
        break;
      case interrupt:
        if (in.u8() % 2 == 0)
          machine.interrupt();
        else
          machine.end_with({ExitCode::timed_out, "wait", "another sender waits", ""});
        break;
      default: machine.on_channel_end(now_, static_cast<ChannelEnd>(1 + in.u8() % 4), "it ended");
    }
    turn();
  }
  [[nodiscard]] bool is_over() const { return end_.machine().is_over(); }

  /// finish: a session whose connection has ended is over when its limits have gone.
  void finish() {
    end_.machine().on_channel_end(now_, ChannelEnd::closed_by_peer, "it ended");
    for (int i = 0; i < 4; ++i) {
      now_ += 1min;
      end_.run_engine(now_);
      turn();
    }
    ONEHOP_CHECK(is_over());
    ONEHOP_CHECK(end_.opened == end_.stopped);
    ONEHOP_CHECK(!end_.has_engine());
    fuzz::accepted_total += end_.phases.contains(Phase::transferring) ? 1 : 0;
  }

 private:
  void turn() {
    SessionMachine& machine = end_.machine();
    end_.perform_all(now_);
    end_.run_engine(now_);
    for (int i = 0; i < 8 && (i == 0 || machine.has_more_to_send()); ++i) {
      machine.tick(now_);
      end_.perform_all(now_);
    }
    ONEHOP_CHECK(machine.is_over() || machine.next_wakeup(now_) <= now_ + 2h);
    end_.said.clear();
    for (const std::string& fault : end_.faults) std::fprintf(stderr, "%s\n", fault.c_str());
    ONEHOP_CHECK(end_.faults.empty());
    if (!is_sender_) return;
    for (const auto& [name, done] : end_.outcomes) {
      if (!checked_.insert(name).second) continue;
      const bool is_told_by_accept =
          done.root == Digest{} && (done.outcome == FileOutcome::not_compared ||
                                    done.outcome == FileOutcome::kept || !is_named(done.outcome));
      ONEHOP_CHECK(is_told_by_accept || end_.announced.at(name) == done.root);
    }
  }
  void take_message(ByteReader& in) {
    const auto type = static_cast<MessageType>(in.u8());
    const auto body = in.bytes(std::min<std::size_t>(in.u16(), in.remaining()));
    auto decoded = decode_message(type, body);
    if (decoded && end_.machine().can_take_message())
      end_.machine().on_message(now_, std::move(*decoded));
  }
  void take_event(ByteReader& in) {
    Event made{.kind = events[in.u8() % events.size()]};
    made.value = in.u8();
    made.block.kind = static_cast<BlockKind>(in.u8() % 5);
    made.block.file = in.u8() % 6;
    made.block.offset = std::uint64_t{in.u8()} * block_bytes;
    made.block.digest[0] = static_cast<std::byte>(in.u8());
    // An engine speaks of files that it was given.
    if (end_.entry_of(made.block.file) != nullptr) end_.take_event(now_, made);
  }
  void take_file_event(ByteReader& in) {
    const std::uint8_t kind = in.u8() % 5;
    const std::uint32_t file = in.u8() % 6, first = in.u8();
    const auto outcome = static_cast<FileOutcome>(in.u8() % 7);
    const auto failure = static_cast<FileFailure>(in.u8() % 13);
    const Digest root{static_cast<std::byte>(in.u8())};
    if (end_.entry_of(file) == nullptr) return;
    const std::array<FileEvent, 5> made{
        RootRead{file, root}, FileFinished{.file = file, .root = root, .outcome = outcome},
        RecordsFinished{.pack = file, .first = first, .count = first % 3U, .outcome = outcome},
        CheckpointMade{}, FileFailed{file, failure}};
    end_.take_event(now_, made[kind]);
  }

  const bool is_sender_;
  Instant now_{1s};
  VirtualEnd end_;
  std::set<std::string> checked_;
};

// --- valid inputs

class Script {
 public:
  Script(ByteWriter& to, std::mt19937_64& random) : to_{to}, random_{random} {}
  void say(const Message& said) {
    std::vector<std::byte> bytes;
    encode_message(said, bytes);
    const auto body = std::span{bytes}.subspan(message_header_bytes);
    to_.u8(message), to_.u8(static_cast<std::uint8_t>(bytes[0]));
    to_.u16(static_cast<std::uint16_t>(body.size()));
    for (const std::byte byte : body) to_.u8(static_cast<std::uint8_t>(byte));
  }
  void happen(std::uint8_t kind, BlockKind block = BlockKind::block, std::uint8_t file = 0,
              std::uint8_t index = 0) {
    to_.u8(event), to_.u8(kind), to_.u8(200), to_.u8(static_cast<std::uint8_t>(block));
    to_.u8(file), to_.u8(index), to_.u8(file);
  }
  void happen(FileStep kind, std::uint8_t file = 0, FileFailure failure = FileFailure::none) {
    to_.u8(file_event), to_.u8(kind), to_.u8(file), to_.u8(0), to_.u8(0);
    to_.u8(static_cast<std::uint8_t>(failure)), to_.u8(file);
  }
  void pass() {
    if (random_() % 4 == 0)
      to_.u8(wait),
          to_.u16(static_cast<std::uint16_t>(random_() % (random_() % 8 == 0 ? 5'000 : 50)));
  }
  void answer(const list::Manifest& volume, std::vector<FileAction>& actions) {
    VolumeAnswer said{
        .manifest_hash = list::manifest_hash(volume), .actions = {}, .name_faults = {}};
    for (std::size_t i = 0; i < volume.files.size(); ++i) {
      said.actions.push_back(static_cast<FileAction>(random_() % 8));
      if (said.actions.back() == FileAction::name_refused)
        said.name_faults.push_back(static_cast<std::uint8_t>(1 + random_() % 255));
    }
    actions.insert(actions.end(), said.actions.begin(), said.actions.end());
    actions.push_back(FileAction::keep);  // the index of the pack
    say(said);
  }
  void send_side() {
    const auto volumes = some_volumes();
    std::vector<FileAction> actions;  // by index in the session
    say(Welcome{});
    say(Accept{.data_port = 40'002, .frame_body_max_bytes = 1400, .io = "fuzz", .folder = "there"});
    answer(volumes[0], actions);
    happen(proven), say(PathReady{1400});
    for (std::uint8_t file = 0; file < 4; ++file) {
      pass();
      if (file == 1) answer(volumes[1], actions);
      if (file == 2) continue;
      if (random_() % 12 == 0) happen(failed, file, FileFailure::source_changed), say(Restarted{});
      if (random_() % 4 == 0) happen(skipped_hole, BlockKind::hole, file, 1);
      happen(sent, BlockKind::block, file, 0), happen(root_read, file);
      FileDone done{.file = file};
      done.root[0] = std::byte{file};
      if (actions[file] == FileAction::compare) done.outcome = FileOutcome::there;
      say(done);
    }
    say(Bye{});
  }
  void offer(const list::Manifest& volume, bool is_last) {
    say(ManifestPart{volume.files}), say(VolumeEnd{list::manifest_hash(volume), is_last});
    to_.u8(decide);
  }
  void receive_side(std::uint8_t session) {
    const auto volumes = some_volumes();
    Offer said;
    said.frame_body_max_bytes = 1400;
    said.data_port = 40'000;
    said.context.session_id[0] = std::byte{session};
    say(said), offer(volumes[0], false);
    say(DataReady{}), happen(proven), say(PathReady{1400});
    if (session < 3 && random_() % 4 == 0) {
      say(Restart{}), happen(checkpoint);
      to_.u8(wait), to_.u16(3);
      return receive_side(static_cast<std::uint8_t>(session + 1));
    }
    for (std::uint8_t file = 0; file < 4; ++file) {
      pass();
      if (file == 1) offer(volumes[1], true);
      if (file == 2) continue;
      BlockDigests digests{.is_skipped = random_() % 4 == 0};
      digests.digests.push_back({file, 0, {}});
      const auto blocks = static_cast<std::uint32_t>(1 + random_() % 3);
      if (random_() % 4 == 0) say(Holes{{{file, random_() % 3, blocks}}});
      if (random_() % 2 == 0) say(digests), say(FileRoot{file, {}});
      happen(file_finished, file);
    }
    say(Complete{});
  }

 private:
  ByteWriter& to_;
  std::mt19937_64& random_;
};

}  // namespace

std::size_t fuzz::make_valid(std::uint64_t seed, std::span<std::byte, input_bytes_max> out) {
  std::mt19937_64 random{seed};
  ByteWriter to{out};
  const auto first = static_cast<std::uint8_t>(random());
  to.u8(first);
  Script script{to, random};
  if ((first & 1) != 0)
    script.send_side();
  else
    script.receive_side(0);
  return to.size();
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  ByteReader in{{reinterpret_cast<const std::byte*>(bytes), size}};
  Play play{in.u8()};
  while (in.remaining() > 0 && !play.is_over())
    play.take(static_cast<Step>(in.u8() % step_count), in);
  play.finish();
  return 0;
}
