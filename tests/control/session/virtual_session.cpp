// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tests/control/session/virtual_session.hpp"

#include <algorithm>

#include "control/session/tls.hpp"

namespace onehop::session::test {

Digest some_root(const file::ManifestEntry& entry) {
  Digest root{};
  for (std::size_t i = 0; i < entry.name.size(); ++i)
    root[i % 8] ^= static_cast<std::byte>(entry.name[i]);
  root[14] = static_cast<std::byte>(entry.size & 0xff);
  root[15] = static_cast<std::byte>((entry.size / block_bytes) | 1);
  return root;
}

VirtualEnd::VirtualEnd(const SendOptions& options, file::Manifest files, std::uint64_t seed)
    : random_{seed}, files_{std::move(files)} {
  auto machine =
      std::make_unique<SendMachine>(options, files_,
                                    SendMachine::Connection{{*IpAddress::parse("10.0.0.2"), 7411},
                                                            std::string{alpn_name},
                                                            Instant{options.limits.connect}});
  sender_ = machine.get();
  machine_ = std::move(machine);
}

VirtualEnd::VirtualEnd(const RecvOptions& options, std::uint64_t seed) : random_{seed} {
  auto machine =
      std::make_unique<RecvMachine>(options, Endpoint{*IpAddress::parse("10.0.0.1"), 40'000});
  receiver_ = machine.get();
  machine_ = std::move(machine);
}

void VirtualEnd::start(Instant now) {
  machine_->start(now);
  perform_all(now);
}

Instant VirtualEnd::later(Instant now) {
  return now + Nanos{1'000 + static_cast<std::int64_t>(
                                 draw(static_cast<std::uint64_t>(engine_time_max.count())))};
}

void VirtualEnd::take_event(Instant now, const Event& event) {
  if (!has_engine_) return;
  if (event.kind == EventKind::path_proven) is_proven_ = true;
  machine_->on_event(now, event);
  perform_all(now);
}

void VirtualEnd::run_engine(Instant now) {
  while (!events_.empty() && events_.begin()->first <= now) {
    const Event event = events_.begin()->second;
    events_.erase(events_.begin());
    take_event(now, event);
  }
}

Instant VirtualEnd::next_event_at() const noexcept {
  return events_.empty() ? Instant::max() : events_.begin()->first;
}

void VirtualEnd::perform_all(Instant now) {
  while (auto action = machine_->pop_action()) perform(now, *action);
}

void VirtualEnd::perform(Instant now, Action& action) {
  if (auto* message = std::get_if<Message>(&action)) {
    said.push_back(std::move(*message));
  } else if (const auto* command = std::get_if<Command>(&action)) {
    obey(now, *command);
  } else if (const auto* report = std::get_if<Report>(&action)) {
    if (report->done.file >= manifest().files.size()) return fault("no such file was reported");
    const std::string& name = manifest().files[report->done.file].name;
    const bool is_folder = manifest().files[report->done.file].is_folder;
    if (!outcomes.emplace(name, report->done).second && !is_folder)
      fault(name + " was reported twice");
  } else if (const auto* phase = std::get_if<Phase>(&action)) {
    phases.insert(*phase);
  } else if (const auto* accepted = std::get_if<Accepted>(&action)) {
    actions_ = accepted->actions;
    make_pack();
    claims_ = accepted->claims;
  } else if (const auto* hold = std::get_if<Hold>(&action)) {
    is_held = hold->is_held;
  } else if (std::holds_alternative<OpenData>(action)) {
    if (opened++ != stopped) fault("opened twice");
    SessionId id{};
    id[0] = static_cast<std::byte>(++next_id_);
    machine_->on_data_opened(now, DataOpened{40'001, 1400, "virtual"}, id);
  } else if (std::holds_alternative<StartData>(action)) {
    if (has_engine_ || opened == stopped) fault("started without a port, or twice");
    has_engine_ = true;
    is_finished_ = is_proven_ = is_started_ = false;
    digests_.clear();
    machine_->on_data_started(now, std::string{"virtual0"});
  } else if (std::holds_alternative<StopData>(action)) {
    if (++stopped != opened) fault("stopped what was not open");
    has_engine_ = is_held = false;
    events_.clear();
  } else if (const auto* again = std::get_if<OfferAgain>(&action)) {
    file::Manifest left;
    for (std::size_t i = 0; i < again->is_settled.size(); ++i)
      if (!again->is_settled[i]) left.files.push_back(files_.files[i]);
    if (left.files.empty()) return fault("nothing is left, and it is offered again");
    if (!left.files[0].is_folder) left.files[0].size += block_bytes;
    files_ = std::move(left);
    sender_->on_offered_again(now, success());
  } else if (const auto* consider = std::get_if<Consider>(&action)) {
    considered = consider->offer;
    decision_at = later(now);
  }
}

void VirtualEnd::decide(Instant now) {
  offer_ = std::exchange(considered, nullptr);
  files_now_ = &offer_->manifest;
  Decision decision;
  decision.claims.resize(files_now_->files.size());
  for (std::size_t i = 0; i < files_now_->files.size(); ++i) {
    decision.actions.push_back(static_cast<FileAction>(draw(5)));
    if (decision.actions[i] != FileAction::resume) continue;
    for (std::uint64_t block = 0; block < blocks_of(files_now_->files[i].size); ++block)
      if (draw(2) == 0) decision.claims[i].push_back({block, some_root(files_now_->files[i])});
  }
  actions_ = decision.actions;
  make_pack();
  if (draw(20) == 0)
    receiver_->on_decision(now, Error{ExitCode::local_file_error, "decide", "it is full", ""});
  else
    receiver_->on_decision(now, std::move(decision));
  perform_all(now);
}

// --- the engine

void VirtualEnd::obey(Instant now, const Command& command) {
  if (!has_engine_) return fault("a command, and no engine");
  if (is_finished_) return fault("a command after finish");
  switch (command.kind) {
    case CommandKind::prove_path:
      if (!is_mute) say(later(now), EventKind::path_proven);
      break;
    case CommandKind::start:
      if (!is_proven_ || is_started_) fault("started before the path was proven, or twice");
      is_started_ = true;
      if (sender_ != nullptr && !is_mute) send_files(now);
      break;
    case CommandKind::checkpoint:
      events_.clear();
      if (receiver_ != nullptr) say(later(now), FileMessageKind::checkpointed, {});
      break;
    case CommandKind::finish:
      is_finished_ = true;
      events_.clear();
      say(later(now), EventKind::closed);
      break;
    case CommandKind::file_message: take_file_message(now, command.block); break;
    case CommandKind::path_update: break;
  }
}

void VirtualEnd::say(Instant at, FileMessageKind kind, const BlockRef& block) {
  Event event{.kind = EventKind::file_message, .block = block};
  event.block.kind = kind;
  say(at, event);
}

void VirtualEnd::make_pack() {
  pack_ = file::Pack::make(manifest(), crypto::DigestKind::xxh3, [this](std::uint32_t file) {
    return actions_[file] == FileAction::send;
  });
}

/// The blocks of the pack, and the root over it.
void VirtualEnd::send_pack(Instant& now) {
  BlockRef block{.file = file::pack_file(files_)};
  for (std::uint64_t i = 0; i < blocks_of(pack_.bytes()); ++i) {
    now = later(now);
    block.offset = i * block_bytes;
    block.length = static_cast<std::uint32_t>(block_length_at(pack_.bytes(), block.offset));
    say(now, Event{.kind = EventKind::block_sent, .block = block});
  }
  say(now, FileMessageKind::root, block);
}

/// The records come to their names in runs, in no order.
void VirtualEnd::take_pack(Instant now) {
  const auto count = static_cast<std::uint32_t>(pack_.entries().size());
  for (std::uint32_t first = 0; first < count;) {
    const auto length =
        static_cast<std::uint32_t>(std::min<std::uint64_t>(1 + draw(20), count - first));
    say(later(now), FileMessageKind::pack_done, {.offset = first, .length = length});
    first += length;
  }
}

void VirtualEnd::send_files(Instant now) {
  for (std::uint32_t file = 0; file < files_.files.size(); ++file) {
    if (!has_digests(actions_[file])) continue;
    BlockRef block{.file = file};
    if (changes_left > 0 && draw(3) == 0) {
      --changes_left;
      block.failure = FileFailure::source_changed;
      return say(later(now), FileMessageKind::failed, block);
    }
    if (pack_.contains(file)) continue;
    const std::uint64_t size = files_.files[file].size;
    block.digest = some_root(files_.files[file]);
    for (std::uint64_t i = 0; i < blocks_of(size); ++i) {
      now = later(now);
      block.offset = i * block_bytes;
      block.length = block_length_at(size, i * block_bytes);
      const bool is_claimed =
          actions_[file] == FileAction::compare ||
          (file < claims_.size() &&
           std::ranges::find(claims_[file], i, &file::Claim::block) != claims_[file].end());
      if (is_claimed)
        say(now, FileMessageKind::skipped, block);
      else
        say(now, Event{.kind = EventKind::block_sent, .block = block});
    }
    say(now, FileMessageKind::root, block);
  }
  if (!pack_.is_empty()) send_pack(now);
  say(later(now), EventKind::all_arrived);
}

// As a file thread: a file is done when its root and a digest of each block came.
void VirtualEnd::take_file_message(Instant now, const BlockRef& block) {
  if (block.kind == FileMessageKind::abort) {
    events_.clear();
    return say(later(now), FileMessageKind::checkpointed, {});
  }
  if (block.file == file::pack_file(manifest()) && block.kind == FileMessageKind::root &&
      !pack_.is_empty()) {
    if (!is_mute) take_pack(now);
    return;
  }
  if (block.file >= manifest().files.size()) return fault("a message for no file");
  if (pack_.contains(block.file)) fault("a message for a packed file by itself");
  if (block.kind != FileMessageKind::root) {
    if (block.offset / block_bytes >= blocks_of(manifest().files[block.file].size))
      fault("a digest of a block that the file does not have");
    ++digests_[block.file];
    return;
  }
  const file::ManifestEntry& entry = manifest().files[block.file];
  if (is_mute || digests_[block.file] < blocks_of(entry.size)) return;
  BlockRef done = block;
  if (fails && draw(3) == 0) {
    done.failure = FileFailure::write_error;
    return say(later(now), FileMessageKind::failed, done);
  }
  if (actions_[block.file] == FileAction::compare)
    done.outcome = draw(2) == 0 ? FileOutcome::kept : FileOutcome::there;
  say(later(now), FileMessageKind::file_done, done);
}

}  // namespace onehop::session::test
