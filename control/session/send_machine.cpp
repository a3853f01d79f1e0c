// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/session/send_machine.hpp"

#include <algorithm>

#include "control/session/tls.hpp"

namespace onehop::session {

namespace {

// A part of the manifest is sent when it reaches this; the bound of a message is four times as
// high.
constexpr std::size_t manifest_part_bytes = message_body_bytes_max / 4;

// A name may have several addresses: then errors tell both.
std::string name_of_peer(const std::string& host, const Endpoint& peer) {
  const std::string address = peer.address.text();
  return address == host ? host : host + " (" + address + ")";
}

}  // namespace

SendMachine::SendMachine(const SendOptions& options, const file::Manifest& manifest,
                         Connection connection)
    : SessionMachine{options.limits, Role::sender, name_of_peer(options.host, connection.peer)},
      options_{options},
      manifest_{manifest},
      connection_{std::move(connection)} {}

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
  if (state_ == State::offering) await_accept(now);  // it judges what it has read so far
  auto* accept = std::get_if<Accept>(&message);
  if (accept != nullptr && state_ == State::awaiting_accept)
    return take_accept(now, std::move(*accept));
  const auto* claims = std::get_if<ClaimPart>(&message);
  if (claims != nullptr && state_ == State::taking_claims) return take_claims(now, *claims);
  const bool is_done_due = state_ == State::transferring || state_ == State::restarting;
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
    act(Notice{peer_name_ + " is busy with another sender: waiting for it, " +
               std::to_string((left + 1s - 1ns) / 1s) + " s at most (--wait)"});
    enter(State::waiting_turn, connection_.busy_until, step_);
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

// --- the offer

void SendMachine::begin_offer() {
  act(OpenData{});
  enter(State::opening_data, Instant::max(), "open the data port");
}

void SendMachine::on_opened(Instant, const SessionId& fresh_id) {
  context_.session_id = fresh_id;
  context_.digest = options_.digest;
  context_.key_interval = options_.key_interval;
  Offer offer;
  offer.software = "onehop " ONEHOP_VERSION;
  offer.session_id = context_.session_id;
  offer.digest = context_.digest;
  offer.key_interval = context_.key_interval;
  offer.queue_count = context_.queue_count;
  offer.frame_body_max_bytes = data_->frame_body_max_bytes;
  offer.data_port = data_->data_port;
  offer.file_count = static_cast<std::uint32_t>(manifest_.files.size());
  offer.total_bytes = file::total_bytes(manifest_);
  offer.is_repair_lazy = options_.is_repair_lazy;
  offer.has_fragments = options_.has_fragments;
  send(std::move(offer));
  next_entry_ = 0;
  enter(State::offering, Instant::max(), "offer the files");
}

void SendMachine::send_part(Instant now) {
  ManifestPart part;
  for (std::size_t bytes = 0; next_entry_ < manifest_.files.size() && bytes < manifest_part_bytes &&
                              part.entries.size() < manifest_entries_per_part_max;
       ++next_entry_) {
    const auto& entry = manifest_.files[next_entry_];
    part.entries.push_back(entry);
    bytes += entry.name.size() + sizeof entry;
  }
  if (!part.entries.empty()) send(std::move(part));
  if (next_entry_ < manifest_.files.size()) return;
  send(OfferEnd{file::manifest_hash(manifest_)});
  await_accept(now);
}

void SendMachine::await_accept(Instant now) {
  act(Phase::waiting_for_accept);
  enter(State::awaiting_accept, now + limits_.consider, "offer the files");
}

Result<void> SendMachine::take_accept(Instant now, Accept&& accept) {
  accept_ = std::move(accept);
  if (accept_.actions.size() != manifest_.files.size() ||
      accept_.manifest_hash != file::manifest_hash(manifest_) ||
      accept_.frame_body_max_bytes > data_->frame_body_max_bytes ||
      (accept_.is_repair_lazy && !options_.is_repair_lazy))
    return violation("the peer accepted something else than what was offered");
  if (options_.is_repair_lazy && !accept_.is_repair_lazy)
    act(Notice{"the peer keeps to eager repair: --repair lazy has no effect"});
  accepted_ = {.actions = accept_.actions, .claims = {}, .folder = accept_.folder};
  if (accept_.has_claims)
    enter(State::taking_claims, now + limits_.step, step_);
  else
    end_accept(now);
  return success();
}

// A claim is bounded by our own manifest: each block of each file at most once, in ascending
// order.
Result<void> SendMachine::take_claims(Instant now, const ClaimPart& part) {
  const Error bad = violation("the peer claims blocks that the offer does not have");
  deadline_ = now + limits_.step;
  if (!part.digests.empty()) {
    if (part.file >= manifest_.files.size() || accepted_.actions[part.file] != FileAction::resume)
      return bad;
    accepted_.claims.resize(manifest_.files.size());
    auto& blocks = accepted_.claims[part.file];
    if (!blocks.empty() && part.first_block <= blocks.back().block) return bad;
    if (part.first_block + part.digests.size() > blocks_of(manifest_.files[part.file].size))
      return bad;
    for (std::size_t i = 0; i < part.digests.size(); ++i)
      blocks.push_back({part.first_block + i, part.digests[i]});
  } else if (!part.is_last) {
    return bad;
  }
  if (part.is_last) end_accept(now);
  return success();
}

void SendMachine::end_accept(Instant now) {
  files_left_ = static_cast<std::size_t>(std::ranges::count_if(accepted_.actions, has_digests));
  pack_ = accepted_.pack = pack_of(accepted_.actions, context_.digest);
  roots_.assign(manifest_.files.size(), std::nullopt);
  is_done_.assign(manifest_.files.size(), false);
  act(accepted_);
  for (std::uint32_t file = 0; file < accepted_.actions.size(); ++file)
    if (!has_digests(accepted_.actions[file])) report_done(kept_by(accepted_.actions[file], file));
  if (files_left_ == 0) return complete(now);
  start_data({.terms = {.context = context_,
                        .frame_body_max_bytes = accept_.frame_body_max_bytes,
                        .is_repair_lazy = accept_.is_repair_lazy,
                        .has_fragments = options_.has_fragments},
              .peer_port = accept_.data_port});
}

void SendMachine::on_started(Instant now) {
  send(DataReady{});
  begin_proof(now);
}

// --- the transfer

void SendMachine::on_proven(Instant) {
  pause_.emplace(limits_);
  bytes_total_ = bytes_done_ = 0;
  for (std::size_t i = 0; i < roots_.size(); ++i)
    if (has_digests(accepted_.actions[i])) bytes_total_ += manifest_.files[i].size;
  if (pack_ != nullptr) bytes_total_ += pack_->digests_bytes();
  enter(State::transferring, Instant::max(), "transfer files");
}

void SendMachine::advance(Instant now) {
  if (state_ == State::offering) send_part(now);
  if (state_ == State::transferring)
    poll_pause_ = pause_->next(now.time_since_epoch(), bytes_done_, bytes_total_);
}

Result<void> SendMachine::take_event(Instant now, const Event& event) {
  if (state_ == State::completing) return success();
  if (state_ == State::restarting) {
    end_restart();
    return success();
  }
  if (may_restart(event)) {
    begin_restart(now, event.block.file);
    return success();
  }
  const BlockRef& block = event.block;
  const bool is_of_file = event.kind == EventKind::file_message;
  // A block that the peer has already is announced as well: that is how the peer learns that its
  // copy is right.
  const bool is_skipped = is_of_file && block.kind == FileMessageKind::skipped;
  if (event.kind == EventKind::block_sent || is_skipped) {
    announce(event, is_skipped);
  } else if (is_of_file && block.kind == FileMessageKind::root) {
    flush_digests();  // a file's root follows its last digest
    if (block.file < roots_.size()) roots_[block.file] = block.digest;
    send(FileRoot{block.file, block.digest});
  } else if (event.kind == EventKind::all_arrived) {
    act(Phase::verifying);
  }
  if (auto fault = fault_of(event)) return std::move(*fault);
  return success();
}

void SendMachine::announce(const Event& event, bool is_skipped) {
  bytes_done_ += event.block.length;
  if (event.block.file == file::pack_file(manifest_)) return;  // its records bring their roots
  if (batch_.is_skipped != is_skipped || batch_.digests.size() == digests_per_message_max)
    flush_digests();
  batch_.is_skipped = is_skipped;
  batch_.digests.push_back(
      {event.block.file, event.block.offset / block_bytes, event.block.digest});
}

void SendMachine::flush_digests() {
  if (!batch_.digests.empty()) send(std::exchange(batch_, {}));
}

Result<void> SendMachine::take_done(Instant now, const FileDone& done) {
  if (done.file >= roots_.size() || is_done_[done.file] || !roots_[done.file] || !can_come_to(done))
    return violation("the peer reports a file as done that cannot be");
  if (*roots_[done.file] != done.root)
    return Error{ExitCode::verification_failed,
                 "verify " + file::display_name(manifest_.files[done.file].name),
                 "the peer's digest of the file differs from ours", "Send it again"};
  is_done_[done.file] = true;
  --files_left_;
  report_done(done);
  if (files_left_ == 0 && state_ == State::transferring) complete(now);
  return success();
}

Result<void> SendMachine::take_pack_done(Instant now, const PackDone& done) {
  if (!take_packed(done, is_done_))
    return violation("the peer reports packed files as done that cannot be");
  files_left_ -= done.count;
  if (files_left_ == 0 && state_ == State::transferring) complete(now);
  return success();
}

// A comparison writes nothing, and only it can find that something else was kept.
bool SendMachine::can_come_to(const FileDone& done) const {
  const FileAction action = accepted_.actions[done.file];
  if (!has_digests(action)) return false;
  if (action == FileAction::compare)
    return done.outcome == FileOutcome::there || done.outcome == FileOutcome::kept;
  return done.outcome == FileOutcome::received || done.outcome == FileOutcome::there;
}

// Every file is verified at the peer: nothing that happens now can change the outcome.
void SendMachine::complete(Instant now) {
  send(Complete{});
  enter(State::completing, now + limits_.step, "end the session");
}

// --- a source that changed

// A source that changes gets one more chance: somebody saved it, say. One that changes again is
// being written to.
bool SendMachine::may_restart(const Event& event) const {
  if (state_ != State::transferring || event.kind != EventKind::file_message ||
      event.block.kind != FileMessageKind::failed)
    return false;
  const FileFailure failure = event.block.failure;
  return (failure == FileFailure::source_changed || failure == FileFailure::source_vanished) &&
         event.block.file < manifest_.files.size() &&
         !restarted_names_.contains(manifest_.files[event.block.file].name);
}

// Both ends stop the data path in order. What the receiver finished until then it says before it
// answers, so that no file is offered that it has.
void SendMachine::begin_restart(Instant now, std::uint32_t changed_file) {
  flush_digests();
  const std::string& name = manifest_.files[changed_file].name;
  act(Notice{file::display_name(name) +
             " changed while it was being sent: it is sent again as it is now"});
  restarted_names_.insert(name);
  send(Restart{});
  command(CommandKind::checkpoint);
  finish_engine();
  is_restart_answered_ = false;
  enter(State::restarting, now + limits_.checkpoint + limits_.step, "start the changed file again");
}

void SendMachine::end_restart() {
  if (!is_restart_answered_ || !is_engine_closed_) return;
  drop_data();
  std::vector<bool> is_settled = is_done_;
  for (std::size_t i = 0; i < is_settled.size(); ++i)
    is_settled[i] = is_settled_in(i, accepted_.actions[i], is_settled[i]);
  enter(State::opening_data, Instant::max(), step_);
  act(OfferAgain{std::move(is_settled)});
}

void SendMachine::on_offered_again(Instant now, const Result<void>& renewed) {
  if (!renewed) return fail(now, renewed.error());
  if (const auto valid = file::validate(manifest_); !valid) return fail(now, valid.error());
  accepted_ = {};
  begin_offer();
}

}  // namespace onehop::session
