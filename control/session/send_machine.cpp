// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/session/send_machine.hpp"

#include "control/session/channel/tls.hpp"
#include "engine/base/display_name.hpp"

namespace onehop::session {

namespace {

// A name may have several addresses: then errors tell both.
std::string name_of_peer(const std::string& host, const Endpoint& peer) {
  const std::string address = peer.address.text();
  return address == host ? host : host + " (" + address + ")";
}

}  // namespace

SendMachine::SendMachine(const SendOptions& options, Connection connection)
    : SessionMachine{options.limits, Role::sender, name_of_peer(options.host, connection.peer)},
      options_{options},
      connection_{std::move(connection)},
      digest_{options.digest} {}

void SendMachine::start(Instant now) {
  send(Hello{options_.token});
  enter(State::greeting, now + limits_.step, "greet the peer");
}

Result<void> SendMachine::take_message(Instant now, Message& message) {
  if (state_ == State::completing) {
    if (std::holds_alternative<Bye>(message)) wind_down(now, std::nullopt);
    return success();
  }
  if (state_ == State::restarting && is_restart_answered_) return success();
  if (auto verdict = verdict_of(message)) return std::move(*verdict);
  if (state_ == State::greeting || state_ == State::waiting_turn)
    return take_greeting(now, message);
  auto* accept = std::get_if<Accept>(&message);
  if (accept != nullptr && state_ == State::awaiting_accept && !accept_)
    return take_accept(std::move(*accept));
  auto* answer = std::get_if<VolumeAnswer>(&message);
  const auto* held = std::get_if<HeldPart>(&message);
  const bool is_answer_due = state_ == State::transferring || state_ == State::restarting ||
                             (state_ == State::awaiting_accept && accept_);
  if (answer != nullptr && is_answer_due && !reading_.is_taking_held)
    return take_answer(now, std::move(*answer));
  if (held != nullptr && is_answer_due && reading_.is_taking_held) return take_held(now, *held);
  const bool is_done_due = state_ == State::transferring || state_ == State::restarting;
  if (const auto* claims = std::get_if<ClaimPart>(&message); claims && is_done_due)
    return take_claims(now, *claims);
  if (const auto* done = std::get_if<FileDone>(&message); done && is_done_due)
    return take_done(now, *done);
  if (const auto* done = std::get_if<PackDone>(&message); done && is_done_due)
    return take_pack_done(now, *done);
  if (std::holds_alternative<Restarted>(message) && state_ == State::restarting) {
    is_restart_answered_ = true;
    end_restart();
    return success();
  }
  return out_of_turn(message);
}

// --- greeting

Error SendMachine::busy_error() const {
  return {ExitCode::refused_by_peer, "be served by " + peer_name_, "it is busy with another sender",
          "Try again later, or wait longer for it with --wait SECONDS"};
}

Error SendMachine::deadline_error() const {
  return state_ == State::waiting_turn ? busy_error() : SessionMachine::deadline_error();
}

Result<void> SendMachine::take_greeting(Instant now, const Message& message) {
  if (std::holds_alternative<Busy>(message) && state_ == State::greeting) {
    const Nanos left = connection_.busy_until - now;
    if (left <= 0ns) return busy_error();
    learn(Notice{peer_name_ + " is busy with another sender: waiting for it, " +
                 std::to_string((left + 1s - 1ns) / 1s) + " s at most (--wait)"});
    enter(State::waiting_turn, connection_.busy_until, step_);
    return success();
  }
  if (std::holds_alternative<RequireSha256>(message)) {
    digest_ = crypto::DigestKind::sha256;
    return success();
  }
  const auto* welcome = std::get_if<Welcome>(&message);
  if (welcome == nullptr) return out_of_turn(message);
  if (welcome->version != protocol_version || connection_.alpn != alpn_name)
    return Error{ExitCode::refused_by_peer, "agree on a version",
                 "this end speaks " + std::string{alpn_name} + ", the peer " +
                     std::string{alpn_prefix} + std::to_string(welcome->version),
                 "Run the same version on both ends"};
  begin_offer();
  return success();
}

void SendMachine::on_started(Instant now) {
  send(DataReady{});
  begin_proof(now);
}

// --- the transfer

void SendMachine::on_proven(Instant now) {
  pause_.emplace(limits_);
  enter(State::transferring, Instant::max(), "transfer files");
  complete_if_over(now);
}

void SendMachine::advance(Instant now) {
  if (has_more_to_send()) send_part(now);
  if (state_ != State::transferring) return;
  begin_volume(now);
  want_volume();
  poll_pause_ = pause_->next(now.time_since_epoch(), bytes_done_, bytes_total_);
}

Result<void> SendMachine::take_event(Instant, const Event& event) {
  if (state_ == State::completing) return success();
  if (state_ == State::restarting) {
    end_restart();
    return success();
  }
  if (event.kind == EventKind::block_sent || event.kind == EventKind::block_skipped) {
    if (event.block.kind == BlockKind::hole)
      announce_hole(event.block);
    else
      announce(event.block);
  } else if (event.kind == EventKind::all_arrived) {
    learn(Phase::verifying);
  }
  if (auto fault = fault_of(event)) return std::move(*fault);
  return success();
}

Result<void> SendMachine::take_file_event(Instant now, const FileEvent& event) {
  if (state_ != State::transferring) return success();
  if (const auto* read = std::get_if<RootRead>(&event)) {
    flush();  // where a file's digests are at hand they go before its root
    announce_root(now, *read);
  }
  if (const auto* failed = std::get_if<FileFailed>(&event); failed && may_restart(*failed)) {
    begin_restart(now, *failed);
    return success();
  }
  if (auto fault = fault_of(event)) return std::move(*fault);
  return success();
}

void SendMachine::announce_root(Instant now, const RootRead& read) {
  if (!volumes_.take_root(read.file, read.root)) return;
  send(FileRoot{read.file, read.root});
  complete_if_over(now);
}

/// A block that the peer has already is announced as well: that is how the peer learns that its
/// copy is right.
void SendMachine::announce(const BlockRef& block) {
  const bool is_skipped = block.kind == BlockKind::skipped;
  bytes_done_ += block.length;
  if (is_skipped) learn(Skipped{block.length});
  const VolumeState* const volume = volumes_.find(block.file);
  if (volume == nullptr || volume->is_pack(block.file))
    return;  // a pack's records bring their roots
  if (batch_.is_skipped != is_skipped || batch_.digests.size() == digests_per_message_max) flush();
  batch_.is_skipped = is_skipped;
  batch_.digests.push_back({block.file, block.offset / block_bytes, block.digest});
}

void SendMachine::announce_hole(const BlockRef& run) {
  bytes_done_ += run.length;
  learn(HoleAnnounced{run.file, run.length});
  if (holes_.runs.size() == digests_per_message_max) flush();
  holes_.runs.push_back(
      {run.file, run.offset / block_bytes, static_cast<std::uint32_t>(blocks_of(run.length))});
}

void SendMachine::flush() {
  if (!batch_.digests.empty()) send(std::exchange(batch_, {}));
  if (!holes_.runs.empty()) send(std::exchange(holes_, {}));
}

Result<void> SendMachine::take_done(Instant now, const FileDone& done) {
  VolumeState* const volume = volumes_.find(done.file);
  if (volume == nullptr || !volume->has_blocks(done.file) || volume->is_file_done(done.file) ||
      !volume->roots.contains(done.file) || !can_come_to(volume->action(done.file), done.outcome))
    return violation("the peer reports a file as done that cannot be");
  if (volume->roots.at(done.file) != done.root)
    return Error{ExitCode::verification_failed,
                 "verify " + display_name(volume->entry(done.file).name),
                 "the peer's digest of the file differs from ours", "Send it again"};
  volume->is_done[done.file - volume->first_file] = true;
  --volume->files_left;
  untold_.erase(done.file);
  report_done(*volume, done);
  complete_if_over(now);
  return success();
}

Result<void> SendMachine::take_pack_done(Instant now, const PackDone& done) {
  for (const RecordRun& run : done.runs)
    if (!take_packed(run)) return violation("the peer reports packed files as done that cannot be");
  complete_if_over(now);
  return success();
}

void SendMachine::complete_if_over(Instant now) {
  if (state_ != State::transferring) return;
  drop_over();
  if (volumes_.is_over() && !is_offering_) complete(now);
}

// Every file is verified at the peer: nothing that happens now can change the outcome.
void SendMachine::complete(Instant now) {
  send(Complete{});
  enter(State::completing, now + limits_.step, "end the session");
}

// --- a source that changed

bool SendMachine::may_restart(const FileFailed& failed) {
  const VolumeState* const volume = volumes_.find(failed.file);
  return volume != nullptr && volume->has_entry(failed.file);
}

// Both ends stop the data path in order. What the receiver finished until then it says before it
// answers, so that no file is offered that it has.
//
// A source that changes gets one more chance: somebody saved it, say. One that changes again is
// being written to, and one that cannot be read will not be readable soon: the host leaves it out.
void SendMachine::begin_restart(Instant now, const FileFailed& failed) {
  flush();
  const std::string& name = volumes_.find(failed.file)->entry(failed.file).name;
  const bool has_changed = failed.failure == FileFailure::source_changed ||
                           failed.failure == FileFailure::source_vanished;
  unsent_.reset();
  if (has_changed && restarted_names_.insert(name).second)
    learn(Notice{display_name(name) +
                 " changed while it was being sent: it is sent again as it is now"});
  else
    unsent_ = failed;
  send(Restart{});
  command(CommandKind::checkpoint);
  finish_engine();
  is_restart_answered_ = false;
  enter(State::restarting, now + limits_.checkpoint + limits_.step, "start the changed file again");
}

void SendMachine::end_restart() {
  if (!is_restart_answered_ || threads_.engine != EngineState::closed) return;
  drop_over();  // the receiver has forgotten what it reported as done before it answered
  drop_data();
  // Of a volume that the receiver has not read to its end nothing is known there: it comes later.
  std::deque<VolumeState>& open = volumes_.open();
  is_last_again_ = volumes_.has_last() && !is_offering_;
  if (is_offering_) {
    ready_.push_front({open.back().manifest, open.back().is_last});
    open.pop_back();
  }
  OfferAgain again;
  for (const VolumeState& volume : open) {
    std::vector<bool> is_settled(volume.manifest->files.size());
    for (std::size_t i = 0; i < is_settled.size(); ++i) is_settled[i] = volume.is_settled(i);
    Unsettled& left = again.volumes.emplace_back();
    left = {.manifest = volume.manifest, .is_settled = std::move(is_settled), .unsent = {}};
    if (!unsent_ || !volume.has_entry(unsent_->file)) continue;
    const std::size_t entry = unsent_->file - volume.first_file;
    left.is_settled[entry] = true;
    left.unsent = {entry, file_error(*unsent_, display_name(volume.entry(unsent_->file).name))};
  }
  enter(State::opening_data, Instant::max(), step_);
  act(std::move(again));
}

void SendMachine::on_offered_again(Instant now,
                                   Result<std::shared_ptr<const list::Manifest>> renewed) {
  if (!renewed) return fail(now, renewed.error());
  if (const auto checked = check(*renewed.value()); !checked) return fail(now, checked.error());
  ready_.push_front({std::move(renewed).value(), is_last_again_});
  bytes_total_ = bytes_done_ = 0;
  begin_offer();
}

}  // namespace onehop::session
