// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/session/recv_machine.hpp"

#include <algorithm>
#include <unordered_map>

namespace onehop::session {

namespace {

// Names of a manifest while it arrives. A million names of 60 bytes fit; a million of 4096 would be
// 4 GB of RAM that a peer makes us spend before anybody has agreed to anything.
constexpr std::size_t manifest_name_bytes_max = 64U << 20;

}  // namespace

RecvMachine::RecvMachine(const RecvOptions& options, const Endpoint& peer)
    : SessionMachine{options.limits, Role::receiver, peer.address.text()},
      options_{options},
      peer_{peer} {}

void RecvMachine::start(Instant now) {
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
    if (const auto* end = std::get_if<OfferEnd>(&message)) return take_offer_end(now, *end);
  }
  if (std::holds_alternative<DataReady>(message) && state_ == State::awaiting_data_ready) {
    begin_proof(now);
    return success();
  }
  return out_of_turn(message);
}

Error RecvMachine::deadline_error() const {
  if (state_ == State::deciding)
    return {ExitCode::timed_out, step_, "nobody decided in time",
            "Send again; --on-exist answers without a person"};
  if (state_ == State::restarting)
    return {ExitCode::timed_out, step_, "the disk did not take it in time", ""};
  return SessionMachine::deadline_error();
}

// --- the offer. It is refused as a whole before the host learns a single name.

void RecvMachine::await_offer(Instant now) {
  offer_deadline_ = now + limits_.offer;
  enter(State::awaiting_offer, now + limits_.step, "read the offer");
}

Result<void> RecvMachine::take_offer(Instant now, Offer&& offer) {
  offer_ = std::move(offer);
  info_ = std::make_shared<OfferInfo>();
  if (offer_.file_count > files_max) return refuse(file::too_many_entries(offer_.file_count));
  // Address space only: memory is taken as entries come.
  info_->manifest.files.reserve(offer_.file_count);
  name_bytes_ = 0;
  enter(State::reading_offer, std::min(now + limits_.step, offer_deadline_), step_);
  return success();
}

Result<void> RecvMachine::take_entries(Instant now, ManifestPart& part) {
  auto& files = info_->manifest.files;
  if (part.entries.empty() || part.entries.size() > offer_.file_count - files.size())
    return violation("the manifest has other entries than it announced");
  for (auto& entry : part.entries) {
    name_bytes_ += entry.name.size();
    files.push_back(std::move(entry));
  }
  deadline_ = std::min(now + limits_.step, offer_deadline_);
  if (name_bytes_ <= manifest_name_bytes_max) return success();
  return refuse({ExitCode::local_file_error, "take the list of files",
                 "its names have more than " + std::to_string(manifest_name_bytes_max) +
                     " bytes in sum, which is the limit",
                 "Nothing was written. Send them in several sessions, or in an archive"});
}

Result<void> RecvMachine::take_offer_end(Instant now, const OfferEnd& end) {
  info_->manifest_hash = end.manifest_hash;
  if (info_->manifest.files.size() != offer_.file_count)
    return violation("the manifest has fewer entries than it announced");
  if (const auto valid = file::validate(info_->manifest); !valid) return refuse(valid.error());
  if (file::total_bytes(info_->manifest) != offer_.total_bytes ||
      file::manifest_hash(info_->manifest) != info_->manifest_hash)
    return violation("sizes or hash of the manifest do not agree with the offer");
  // The same id would give the same keys.
  if (std::ranges::find(session_ids_, offer_.session_id) != session_ids_.end())
    return violation("the peer offers again with the keys of its offer before");
  session_ids_.push_back(offer_.session_id);
  if (offered_before_) {
    ONEHOP_TRYV(check_offer_again());
  } else {
    restarts_left_ = offer_.file_count;
  }
  has_offer_ = true;
  info_->total_bytes = offer_.total_bytes;
  info_->digest = context_.digest = offer_.digest;
  info_->has_fragments = offer_.has_fragments;
  info_->peer = peer_;
  info_->peer_software = file::display_name(offer_.software);
  context_.key_interval = offer_.key_interval;
  context_.queue_count = offer_.queue_count;
  context_.session_id = offer_.session_id;
  act(Phase::waiting_for_accept);
  act(Consider{info_});
  is_deciding_ = true;
  enter(State::deciding, now + limits_.consider, "decide on the offer");
  return success();
}

// The peer is told why, and ends with 5; this end has the code of `why`.
Error RecvMachine::refuse(Error why) {
  send(Refuse{ExitCode::refused_by_peer, why.message()});
  has_peer_verdict_ = true;  // it has our Refuse: no Failure on top
  return why;
}

// What was approved stays approved, and nothing else is: files of the offer before that are not
// done, by their names.
Result<void> RecvMachine::check_offer_again() {
  std::unordered_map<std::string_view, const file::ManifestEntry*> open;
  for (std::size_t i = 0; i < was_settled_.size(); ++i)
    if (!was_settled_[i])
      open.emplace(offered_before_->manifest.files[i].name, &offered_before_->manifest.files[i]);
  for (const file::ManifestEntry& entry : info_->manifest.files) {
    const auto before = open.find(entry.name);
    if (before == open.end())
      return violation("the peer offers again what it did not offer before");
    info_->is_changed.push_back(entry != *before->second);
  }
  return success();
}

// --- the answer

void RecvMachine::on_decision(Instant now, Result<Decision> decision) {
  is_deciding_ = false;
  if (state_ != State::deciding) return;
  if (!decision) return fail(now, refuse(decision.error()));
  decision_ = std::move(decision.value());
  if (const auto checked = check_decision(); !checked) return fail(now, checked.error());
  bytes_claimed_ = 0;
  for (const auto& claims : decision_.claims) bytes_claimed_ += claims.size() * block_bytes;
  files_left_ = static_cast<std::size_t>(std::ranges::count_if(decision_.actions, has_digests));
  pack_ = pack_of(decision_.actions, offer_.digest);
  roots_left_ = files_left_;
  if (pack_ != nullptr) roots_left_ -= pack_->entries().size() - 1;  // one over all of them
  has_pack_root_ = false;
  has_root_.assign(info_->manifest.files.size(), false);
  is_done_.assign(info_->manifest.files.size(), false);
  act(OpenData{});
  enter(State::opening_data, Instant::max(), "open the data port");
}

// The host's answer is ours, so a wrong one is a bug; it is reported, not sent.
Result<void> RecvMachine::check_decision() const {
  bool is_right = decision_.actions.size() == info_->manifest.files.size();
  is_right = is_right && decision_.claims.size() <= decision_.actions.size();
  for (std::size_t i = 0; is_right && i < decision_.claims.size(); ++i)
    is_right = decision_.claims[i].empty() || decision_.actions[i] == FileAction::resume;
  if (is_right) return success();
  return Error{ExitCode::internal_error, step_, "the decision does not fit the manifest", ""};
}

void RecvMachine::on_opened(Instant now, const SessionId&) {
  if (files_left_ == 0) return send_accept(now);
  start_data({.terms = {.context = context_,
                        .frame_body_max_bytes =
                            std::min(offer_.frame_body_max_bytes, data_->frame_body_max_bytes),
                        .is_repair_lazy = is_repair_lazy(),
                        .has_fragments = offer_.has_fragments},
              .peer_port = offer_.data_port});
}

void RecvMachine::on_started(Instant now) { send_accept(now); }

void RecvMachine::send_accept(Instant now) {
  Accept accept;
  accept.manifest_hash = info_->manifest_hash;
  accept.data_port = data_->data_port;
  accept.frame_body_max_bytes = std::min(offer_.frame_body_max_bytes, data_->frame_body_max_bytes);
  accept.has_claims =
      std::ranges::any_of(decision_.claims, [](const auto& claims) { return !claims.empty(); });
  accept.is_repair_lazy = is_repair_lazy();
  accept.io = data_->io;
  accept.folder = decision_.folder;
  accept.actions = decision_.actions;
  const bool has_claims = accept.has_claims;
  send(std::move(accept));
  for (std::uint32_t file = 0; file < decision_.actions.size(); ++file)
    if (!has_digests(decision_.actions[file])) report_done(kept_by(decision_.actions[file], file));
  if (!has_claims) return end_accept(now);
  next_claims_ = 0;
  enter(State::sending_claims, Instant::max(), "wait for the sender's data port");
}

void RecvMachine::advance(Instant now) {
  if (state_ == State::transferring)
    poll_pause_ = !has_engine()      ? limits_.keep_alive
                  : roots_left_ == 0 ? limits_.poll_short
                                     : limits_.poll;
  if (state_ != State::sending_claims) return;
  while (next_claims_ < decision_.claims.size() && decision_.claims[next_claims_].empty())
    ++next_claims_;
  if (next_claims_ < decision_.claims.size()) return send_claims(next_claims_++);
  send(ClaimPart{.is_last = true});
  decision_.claims = {};
  end_accept(now);
}

// Runs of consecutive blocks, cut at the bound of a message.
void RecvMachine::send_claims(std::uint32_t file) {
  ClaimPart part{.file = file};
  const auto send_run = [&] {
    if (!part.digests.empty()) send(part);
    part.digests.clear();
  };
  for (const file::Claim& claim : decision_.claims[file]) {
    if (claim.block != part.first_block + part.digests.size() ||
        part.digests.size() == digests_per_message_max)
      send_run();
    if (part.digests.empty()) part.first_block = claim.block;
    part.digests.push_back(claim.digest);
  }
  send_run();
}

void RecvMachine::end_accept(Instant now) {
  if (files_left_ > 0)
    return enter(State::awaiting_data_ready, now + limits_.offer,
                 "wait for the sender's data port");
  act(Phase::transferring);
  on_proven(now);
}

// --- the transfer

void RecvMachine::on_proven(Instant) {
  enter(State::transferring, Instant::max(), "receive files from " + peer_name_);
}

Result<void> RecvMachine::take_event(Instant now, const Event& event) {
  const BlockRef& block = event.block;
  const bool is_of_file = event.kind == EventKind::file_message;
  if (state_ == State::restarting && event.kind == EventKind::closed) {
    end_restart(now);
    return success();
  }
  if (state_ == State::restarting && is_of_file && block.kind == FileMessageKind::checkpointed)
    finish_engine();
  if (is_of_file && block.kind == FileMessageKind::file_done && is_file_expected(block.file) &&
      !is_done_[block.file]) {
    is_done_[block.file] = true;
    --files_left_;
    const FileDone done{.file = block.file,
                        .root = block.digest,
                        .outcome = block.outcome,
                        .name_number = static_cast<std::uint16_t>(block.status)};
    send(done);
    report_done(done);
  }
  if (is_of_file && block.kind == FileMessageKind::pack_done) {
    const PackDone done{.first = static_cast<std::uint32_t>(block.offset),
                        .count = block.length,
                        .name_number = static_cast<std::uint16_t>(block.status)};
    if (!take_packed(done, is_done_))
      return Error{ExitCode::internal_error, step_, "files are reported as done that cannot be",
                   ""};
    files_left_ -= done.count;
    send(done);
  }
  if (auto fault = fault_of(event)) return std::move(*fault);
  return success();
}

/// Of a packed file nothing is said by itself.
bool RecvMachine::is_file_expected(std::uint32_t file) const noexcept {
  return file < decision_.actions.size() && has_digests(decision_.actions[file]) &&
         (pack_ == nullptr || !pack_->contains(file));
}

Result<void> RecvMachine::take_in_transfer(Instant now, const Message& message) {
  auto verdict = verdict_of(message);
  if (files_left_ == 0 && (verdict || std::holds_alternative<Complete>(message))) {
    // Also where the sender gave up after everything was in place.
    send(Bye{ExitCode::done});
    wind_down(now, std::nullopt);
    return success();
  }
  if (verdict) return std::move(*verdict);
  if (const auto* digests = std::get_if<BlockDigests>(&message)) return take_digests(*digests);
  if (const auto* root = std::get_if<FileRoot>(&message)) return take_root(*root);
  if (std::holds_alternative<Restart>(message) && has_engine() && restarts_left_ > 0) {
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
    if (!is_file_expected(item.file) ||
        item.block >= blocks_of(info_->manifest.files[item.file].size))
      return violation("the peer announced a digest of a block that the manifest does not have");
    if (message.is_skipped && bytes_claimed_ > 0) {  // no more of them than we claimed
      bytes_claimed_ -= block_bytes;
      bytes_confirmed_ += block_bytes;
    }
    command_file(message.is_skipped ? FileMessageKind::skipped : FileMessageKind::digest, item.file,
                 item.block, item.digest);
    if (message.is_skipped)
      skipped_bytes +=
          block_length_at(info_->manifest.files[item.file].size, item.block * block_bytes);
  }
  if (skipped_bytes > 0) act(Skipped{skipped_bytes});
  return success();
}

Result<void> RecvMachine::take_root(const FileRoot& message) {
  const bool is_of_pack = pack_ != nullptr && message.file == file::pack_file(info_->manifest);
  if (is_of_pack ? has_pack_root_ : !is_file_expected(message.file) || has_root_[message.file])
    return violation("the peer announced a root of a file that it cannot have sent");
  if (is_of_pack)
    has_pack_root_ = true;
  else
    has_root_[message.file] = true;
  if (--roots_left_ == 0) act(Phase::verifying);
  command_file(FileMessageKind::root, message.file, 0, message.root);
  return success();
}

// --- a file changed at the sender. Everything that arrived is made durable, and every file that
// this finished is told, before the sender offers again.

void RecvMachine::begin_restart(Instant now) {
  --restarts_left_;
  act(Notice{"a file changed while " + peer_name_ + " sent it: it is received again"});
  command_file(FileMessageKind::abort, 0, 0, {});
  enter(State::restarting, now + limits_.checkpoint, "stop for the sender's changed file");
}

void RecvMachine::end_restart(Instant now) {
  drop_data();
  offered_before_ = info_;
  was_settled_ = is_done_;
  for (std::size_t i = 0; i < was_settled_.size(); ++i)
    was_settled_[i] = is_settled_in(i, decision_.actions[i], was_settled_[i]);
  send(Restarted{});
  await_offer(now);
}

}  // namespace onehop::session
