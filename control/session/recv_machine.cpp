// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/session/recv_machine.hpp"

#include <algorithm>
#include <utility>

namespace onehop::session {

RecvMachine::RecvMachine(const RecvOptions& options, const Endpoint& peer)
    : SessionMachine{options.limits, Role::receiver, peer.address.text()},
      options_{options},
      peer_{peer} {}

void RecvMachine::start(Instant now) {
  if (options_.is_sha256_required) send(RequireSha256{});
  send(Welcome{protocol_version, "onehop " ONEHOP_VERSION});
  await_offer(now);
}

Result<void> RecvMachine::take_message(Instant now, Message& message) {
  if (state_ == State::transferring) return take_in_transfer(now, message);
  if (auto verdict = verdict_of(message)) return std::move(*verdict);
  if (auto* offer = std::get_if<Offer>(&message); offer && state_ == State::awaiting_offer)
    return take_offer(now, std::move(*offer));
  if (state_ == State::reading_offer) {
    if (auto* part = std::get_if<ManifestPart>(&message)) return take_entries(now, *part);
    if (const auto* end = std::get_if<VolumeEnd>(&message)) return take_volume_end(now, *end);
  }
  if (std::holds_alternative<DataReady>(message) && state_ == State::awaiting_data_ready) {
    begin_proof(now);
    return success();
  }
  return out_of_turn(message);
}

Error RecvMachine::deadline_error() const {
  if (state_ == State::deciding)
    return {ExitCode::timed_out, step_, "what is there already was not read in time",
            "Look at the disk; or move it away and send again"};
  if (state_ == State::restarting)
    return {ExitCode::timed_out, step_, "the disk did not take it in time", ""};
  return SessionMachine::deadline_error();
}

// --- the transfer

void RecvMachine::advance(Instant) {
  if (state_ == State::transferring) {
    // With as many volumes under way as may be the sender waits for the end of one.
    const bool is_awaited = volumes_.are_roots_announced() || !volumes_.has_room();
    poll_pause_ = threads_.engine == EngineState::none ? limits_.keep_alive
                  : is_awaited                         ? limits_.poll_short
                                                       : limits_.poll;
  }
}

void RecvMachine::on_proven(Instant) {
  enter(State::transferring, Instant::max(), "receive files from " + peer_name_);
  drop_over();
}

Result<void> RecvMachine::take_event(Instant now, const Event& event) {
  if (state_ == State::restarting && event.kind == EventKind::closed) {
    end_restart(now);
    return success();
  }
  if (auto fault = fault_of(event)) return std::move(*fault);
  return success();
}

Result<void> RecvMachine::take_file_event(Instant, const FileEvent& event) {
  if (state_ == State::restarting && std::holds_alternative<CheckpointMade>(event)) finish_engine();
  if (const auto* file = std::get_if<FileFinished>(&event)) take_finished(*file);
  if (const auto* records = std::get_if<RecordsFinished>(&event)) {
    ONEHOP_TRYV(take_finished(*records));
  }
  if (const auto* held = std::get_if<HeldBlock>(&event)) take_held(*held);
  if (const auto* end = std::get_if<HeldEnd>(&event)) take_held(*end);
  drop_over();
  if (auto fault = fault_of(event)) return std::move(*fault);
  return success();
}

/// Runs of consecutive blocks, cut at the bound of a message.
void RecvMachine::take_held(const HeldBlock& held) {
  const bool is_next = !claims_.empty() && claims_.back().file == held.file &&
                       claims_.back().first_block + claims_.back().digests.size() == held.block &&
                       claims_.back().digests.size() < digests_per_message_max;
  if (!is_next) claims_.push_back({.file = held.file, .first_block = held.block, .digests = {}});
  claims_.back().digests.push_back(held.tag);
  bytes_claimed_ += block_bytes;
}

void RecvMachine::take_held(const HeldEnd& end) {
  if (claims_.empty() || claims_.back().file != end.file)
    claims_.push_back({.file = end.file, .first_block = 0, .digests = {}});
  claims_.back().is_last = true;
}

void RecvMachine::flush() {
  // The file thread begins to read before the sender is ready to be told.
  for (; state_ == State::transferring && !claims_.empty(); claims_.pop_front())
    send(std::move(claims_.front()));
  if (!done_.runs.empty()) send(std::exchange(done_, {}));
}

void RecvMachine::take_finished(const FileFinished& finished) {
  const std::uint32_t file = finished.file;
  VolumeState* const volume = volumes_.find(file);
  if (volume == nullptr || !volume->has_blocks(file) || volume->is_file_done(file)) return;
  volume->is_done[file - volume->first_file] = true;
  --volume->files_left;
  const FileDone done{.file = file,
                      .root = finished.root,
                      .outcome = finished.outcome,
                      .name_number = static_cast<std::uint16_t>(finished.name_number),
                      .name_fault = static_cast<std::uint8_t>(finished.name_fault)};
  send(done);
  report_done(*volume, done);
}

Result<void> RecvMachine::take_finished(const RecordsFinished& finished) {
  const RecordRun run{.pack = finished.pack,
                      .first = finished.first,
                      .count = finished.count,
                      .name_number = static_cast<std::uint16_t>(finished.name_number),
                      .outcome = finished.outcome == FileOutcome::name_refused
                                     ? RecordOutcome::refused
                                 : finished.outcome == FileOutcome::kept ? RecordOutcome::kept
                                                                         : RecordOutcome{},
                      .name_fault = static_cast<std::uint8_t>(finished.name_fault)};
  if (!take_packed(run))
    return Error{ExitCode::internal_error, step_, "files are reported as done that cannot be", ""};
  if (done_.runs.size() == digests_per_message_max) flush();
  done_.runs.push_back(run);
  return success();
}

Result<void> RecvMachine::take_in_transfer(Instant now, Message& message) {
  auto verdict = verdict_of(message);
  if (volumes_.is_over() && (verdict || std::holds_alternative<Complete>(message))) {
    // Also where the sender gave up after everything was in place.
    flush();
    send(Bye{ExitCode::done});
    wind_down(now, std::nullopt);
    return success();
  }
  if (verdict) return std::move(*verdict);
  if (const auto* digests = std::get_if<BlockDigests>(&message)) return take_digests(*digests);
  if (const auto* holes = std::get_if<Holes>(&message)) return take_holes(*holes);
  if (const auto* root = std::get_if<FileRoot>(&message)) return take_root(*root);
  if (auto* part = std::get_if<ManifestPart>(&message)) return take_entries(now, *part);
  if (const auto* end = std::get_if<VolumeEnd>(&message)) return take_volume_end(now, *end);
  if (std::holds_alternative<Restart>(message) && threads_.engine != EngineState::none &&
      restarts_left_ > 0) {
    begin_restart(now);
    return success();
  }
  return out_of_turn(message);
}

Result<void> RecvMachine::take_digests(const BlockDigests& message) {
  std::uint64_t skipped_bytes = 0;
  for (const BlockDigest& item : message.digests) {
    // Digests may follow their file's root: the file thread reads ahead of what the engine has
    // sent.
    const VolumeState* const volume = volumes_.find(item.file);
    if (volume == nullptr || !volume->has_blocks(item.file) ||
        item.block >= blocks_of(volume->entry(item.file).size))
      return violation("the peer announced a digest of a block that the manifest does not have");
    if (message.is_skipped && bytes_claimed_ > 0) {  // no more of them than we claimed
      bytes_claimed_ -= block_bytes;
      bytes_confirmed_ += block_bytes;
    }
    const std::uint64_t offset = item.block * block_bytes;
    if (!message.is_skipped) {
      act(FileCommand{AnnouncedDigest{item.file, offset, item.digest}});
      continue;
    }
    skip({.offset = offset, .file = item.file, .kind = BlockKind::skipped, .digest = item.digest});
    skipped_bytes += block_length_at(volume->entry(item.file).size, offset);
  }
  if (skipped_bytes > 0) learn(Skipped{skipped_bytes});
  return success();
}

Result<void> RecvMachine::take_holes(const Holes& message) {
  for (const HoleRun& run : message.runs) {
    const VolumeState* const volume = volumes_.find(run.file);
    const bool has_blocks = volume != nullptr && volume->has_blocks(run.file);
    const std::uint64_t size = has_blocks ? volume->entry(run.file).size : 0,
                        offset = run.first_block * block_bytes;
    if (offset >= size || run.count > blocks_of(size - offset))
      return violation("the peer announced a hole that the manifest has no room for");
    const std::uint64_t bytes = std::min(run.count * std::uint64_t{block_bytes}, size - offset);
    skip({.offset = offset,
          .file = run.file,
          .length = static_cast<std::uint32_t>(bytes),
          .kind = BlockKind::hole});
    learn(HoleAnnounced{run.file, bytes});
  }
  return success();
}

Result<void> RecvMachine::take_root(const FileRoot& message) {
  if (!volumes_.take_root(message.file, message.root))
    return violation("the peer announced a root of a file that it cannot have sent");
  if (volumes_.are_roots_announced()) learn(Phase::verifying);
  act(FileCommand{AnnouncedRoot{message.file, message.root}});
  drop_over();
  return success();
}

// --- a file changed at the sender. Everything that arrived is made durable, and every file that
// this finished is reported, before the sender offers again.

void RecvMachine::begin_restart(Instant now) {
  --restarts_left_;
  learn(Notice{"a file changed while " + peer_name_ +
               " sent it, or cannot be read there: what is left is received anew"});
  act(FileCommand{EndAtCheckpoint{}});
  command(CommandKind::checkpoint);
  enter(State::restarting, now + limits_.checkpoint, "stop for the sender's changed file");
}

void RecvMachine::end_restart(Instant now) {
  drop_data();
  offered_before_.emplace();
  for (const VolumeState& volume : volumes_.open())
    for (std::size_t i = 0; i < volume.manifest->files.size(); ++i)
      if (!volume.is_settled(i))
        offered_before_->emplace(volume.manifest->files[i].name, volume.manifest->files[i]);
  is_deciding_ = false;
  claims_.clear();
  bytes_claimed_ = 0;
  flush();
  send(Restarted{});
  await_offer(now);
}

}  // namespace onehop::session
