// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/session/recv_machine.hpp"

#include <algorithm>
#include <unordered_map>

namespace onehop::session {

namespace {

// Names of a chapter while it arrives. All that it may have of 250 bytes fit; of 4096 bytes they
// would be 256 MB of RAM that a peer makes us spend before anybody has agreed to anything.
constexpr std::size_t chapter_name_bytes_max = 16U << 20;

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
    if (const auto* end = std::get_if<ChapterEnd>(&message)) return take_chapter_end(now, *end);
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

// --- the offer. A chapter is refused as a whole before the host learns a single name.

void RecvMachine::await_offer(Instant now) {
  offer_deadline_ = now + limits_.offer;
  enter(State::awaiting_offer, now + limits_.step, "read the offer");
}

Result<void> RecvMachine::take_offer(Instant now, Offer&& offer) {
  offer_ = std::move(offer);
  // The same id would give the same keys.
  if (std::ranges::find(session_ids_, offer_.session_id) != session_ids_.end())
    return violation("the peer offers again with the keys of its offer before");
  session_ids_.push_back(offer_.session_id);
  context_.digest = offer_.digest;
  context_.key_interval = offer_.key_interval;
  context_.queue_count = offer_.queue_count;
  context_.session_id = offer_.session_id;
  chapters_.restart();
  offered_.clear();
  reading_.reset();
  bytes_offered_ = 0;
  enter(State::reading_offer, std::min(now + limits_.step, offer_deadline_), step_);
  return success();
}

Result<void> RecvMachine::take_entries(Instant now, ManifestPart& part) {
  if (!reading_) {
    reading_ = std::make_shared<OfferInfo>();
    name_bytes_ = 0;
  }
  auto& files = reading_->manifest.files;
  if (part.entries.empty() || part.entries.size() > chapter_entries_max - files.size())
    return violation("a chapter has no entry in one of its parts, or too many");
  for (auto& entry : part.entries) {
    name_bytes_ += entry.name.size();
    files.push_back(std::move(entry));
  }
  // What was begun is owed at once.
  deadline_ = now + limits_.step;
  if (state_ == State::reading_offer) deadline_ = std::min(deadline_, offer_deadline_);
  if (name_bytes_ <= chapter_name_bytes_max) return success();
  return refuse({ExitCode::local_file_error, "take the list of files",
                 "names of one part of it have more than " +
                     std::to_string(chapter_name_bytes_max) + " bytes in sum, which is the limit",
                 "Send them in an archive"});
}

Result<void> RecvMachine::take_chapter_end(Instant now, const ChapterEnd& end) {
  const std::shared_ptr<OfferInfo> info =
      reading_ ? std::exchange(reading_, nullptr) : std::make_shared<OfferInfo>();
  info->manifest_hash = end.manifest_hash;
  info->is_last = end.is_last;
  if (const auto valid = file::validate(info->manifest); !valid) return refuse(valid.error());
  if (file::manifest_hash(info->manifest) != info->manifest_hash)
    return violation("the hash of a chapter does not agree with its entries");
  bytes_offered_ += file::total_bytes(info->manifest);
  if (bytes_offered_ > file::ManifestLimits{}.total_bytes_max)
    return refuse({ExitCode::local_file_error, "take the list of files",
                   "its sizes have a sum that no disk holds", ""});
  if (!chapters_.has_room() || chapters_.has_last())
    return violation("the peer offers more chapters than it may");
  const Chapter* const chapter =
      chapters_.add({info, &info->manifest}, info->manifest_hash, end.is_last);
  if (chapter == nullptr) return violation("the peer offers more entries than there are indices");
  info->first_file = chapter->first_file;
  if (offered_before_) {
    ONEHOP_TRYV(note_changes(*info));
  } else {
    restarts_left_ += info->manifest.files.size();
  }
  info->known = {offer_.entries_known, offer_.bytes_known, offer_.is_all_known};
  info->digest = offer_.digest;
  info->has_fragments = offer_.has_fragments;
  info->peer = peer_;
  info->peer_software = file::display_name(offer_.software);
  offered_.push_back(info);
  if (state_ == State::reading_offer) {
    has_offer_ = true;
    act(Phase::waiting_for_accept);
    enter(State::deciding, now + limits_.consider, "decide on the offer");
  } else {
    deadline_ = Instant::max();
  }
  consider_next();
  return success();
}

void RecvMachine::consider_next() {
  if (is_deciding_ || is_sending_claims_ || offered_.empty()) return;
  is_deciding_ = true;
  act(Consider{offered_.front()});
}

// The peer is told why, and ends with 5; this end has the code of `why`.
Error RecvMachine::refuse(Error why) {
  send(Refuse{ExitCode::refused_by_peer, why.message()});
  has_peer_verdict_ = true;  // it has our Refuse: no Failure on top
  return why;
}

// The first chapter after a restart offers again what was not done, and nothing else. Of an entry
// that is another one now, nothing that came before is of use.
Result<void> RecvMachine::note_changes(OfferInfo& info) {
  const KnownEntries known = *std::exchange(offered_before_, std::nullopt);
  for (const file::ManifestEntry& entry : info.manifest.files) {
    const auto before = known.find(entry.name);
    if (before == known.end())
      return violation("the peer offers again what it did not offer before");
    info.is_changed.push_back(before->second != entry);
  }
  return success();
}

// --- the answer

void RecvMachine::on_decision(Instant now, Result<Decision> decision) {
  if (!std::exchange(is_deciding_, false) || offered_.empty()) return;
  if (state_ != State::deciding && state_ != State::transferring) return;
  if (!decision) return fail(now, refuse(decision.error()));
  decision_ = std::move(decision.value());
  Chapter& chapter = *chapters_.unanswered();
  if (const auto checked = check_decision(chapter); !checked) return fail(now, checked.error());
  chapter.answer(decision_.actions, offer_.digest);
  // Of packed files the pack says whether what is there is the same.
  for (std::uint32_t i = 0; i < decision_.claims.size(); ++i)
    if (!chapter.has_blocks(chapter.first_file + i)) decision_.claims[i].clear();
  for (const auto& claims : decision_.claims) bytes_claimed_ += claims.size() * block_bytes;
  if (state_ == State::transferring) {
    act(TakeOffered{offered_.front()});
    return send_answer(now);
  }
  act(OpenData{});
  enter(State::opening_data, Instant::max(), "open the data port");
}

// The host's answer is ours, so a wrong one is a bug; it is reported, not sent.
Result<void> RecvMachine::check_decision(const Chapter& chapter) const {
  bool is_right = decision_.actions.size() == chapter.manifest->files.size();
  is_right = is_right && decision_.claims.size() <= decision_.actions.size();
  for (std::size_t i = 0; is_right && i < decision_.claims.size(); ++i)
    is_right = decision_.claims[i].empty() || decision_.actions[i] == FileAction::resume;
  if (is_right) return success();
  return Error{ExitCode::internal_error, step_, "the decision does not fit the chapter", ""};
}

void RecvMachine::on_opened(Instant now, const SessionId&) {
  const Chapter& chapter = chapters_.open().front();
  if (chapter.is_last && chapter.is_over()) return send_accept(now);
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
  accept.data_port = data_->data_port;
  accept.frame_body_max_bytes = std::min(offer_.frame_body_max_bytes, data_->frame_body_max_bytes);
  accept.is_repair_lazy = is_repair_lazy();
  accept.io = data_->io;
  accept.folder = decision_.folder;
  send(std::move(accept));
  enter(State::sending_claims, Instant::max(), "wait for the sender's data port");
  send_answer(now);
}

void RecvMachine::send_answer(Instant now) {
  ChapterAnswer answer;
  answer.manifest_hash = offered_.front()->manifest_hash;
  answer.has_claims =
      std::ranges::any_of(decision_.claims, [](const auto& claims) { return !claims.empty(); });
  answer.actions = decision_.actions;
  is_sending_claims_ = answer.has_claims;
  send(std::move(answer));
  next_claims_ = 0;
  if (!is_sending_claims_) end_answer(now);
}

void RecvMachine::advance(Instant now) {
  if (state_ == State::transferring)
    poll_pause_ = !has_engine()                     ? limits_.keep_alive
                  : chapters_.are_roots_announced() ? limits_.poll_short
                                                    : limits_.poll;
  if (has_more_to_send()) send_next_claims(now);
}

void RecvMachine::send_next_claims(Instant now) {
  while (next_claims_ < decision_.claims.size() && decision_.claims[next_claims_].empty())
    ++next_claims_;
  if (next_claims_ < decision_.claims.size()) return send_claims(next_claims_++);
  send(ClaimPart{.file = 0, .first_block = 0, .is_last = true, .digests = {}});
  is_sending_claims_ = false;
  end_answer(now);
}

// Runs of consecutive blocks, cut at the bound of a message.
void RecvMachine::send_claims(std::size_t entry) {
  ClaimPart part{.file = offered_.front()->first_file + static_cast<std::uint32_t>(entry),
                 .first_block = 0,
                 .is_last = false,
                 .digests = {}};
  const auto send_run = [&] {
    if (!part.digests.empty()) send(part);
    part.digests.clear();
  };
  for (const file::Claim& claim : decision_.claims[entry]) {
    if (claim.block != part.first_block + part.digests.size() ||
        part.digests.size() == digests_per_message_max)
      send_run();
    if (part.digests.empty()) part.first_block = claim.block;
    part.digests.push_back(claim.digest);
  }
  send_run();
}

/// The newest chapter has its whole answer.
void RecvMachine::end_answer(Instant now) {
  decision_ = {};
  const Chapter* const chapter = chapters_.find(offered_.front()->first_file);
  offered_.pop_front();
  report_kept(*chapter);
  const bool is_only = chapter->is_last && chapter->is_over();
  if (state_ == State::transferring) {
    drop_over();
    return consider_next();
  }
  if (!is_only) return enter(State::awaiting_data_ready, now + limits_.offer, step_);
  act(Phase::transferring);
  on_proven(now);
}

// --- the transfer

void RecvMachine::on_proven(Instant) {
  enter(State::transferring, Instant::max(), "receive files from " + peer_name_);
  drop_over();
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
  if (is_of_file && block.kind == FileMessageKind::file_done) take_file_done(block);
  if (is_of_file && block.kind == FileMessageKind::pack_done) {
    const PackDone done{.pack = block.file,
                        .first = static_cast<std::uint32_t>(block.offset),
                        .count = block.length,
                        .name_number = static_cast<std::uint16_t>(block.status),
                        .outcome = block.outcome};
    if (!take_packed(done))
      return Error{ExitCode::internal_error, step_, "files are reported as done that cannot be",
                   ""};
    send(done);
  }
  drop_over();
  if (auto fault = fault_of(event)) return std::move(*fault);
  return success();
}

void RecvMachine::take_file_done(const BlockRef& block) {
  Chapter* const chapter = chapters_.find(block.file);
  if (chapter == nullptr || !chapter->has_blocks(block.file) || chapter->is_file_done(block.file))
    return;
  chapter->is_done[block.file - chapter->first_file] = true;
  --chapter->files_left;
  const FileDone done{.file = block.file,
                      .root = block.digest,
                      .outcome = block.outcome,
                      .name_number = static_cast<std::uint16_t>(block.status)};
  send(done);
  report_done(*chapter, done);
}

Result<void> RecvMachine::take_in_transfer(Instant now, Message& message) {
  auto verdict = verdict_of(message);
  if (chapters_.is_over() && (verdict || std::holds_alternative<Complete>(message))) {
    // Also where the sender gave up after everything was in place.
    send(Bye{ExitCode::done});
    wind_down(now, std::nullopt);
    return success();
  }
  if (verdict) return std::move(*verdict);
  if (const auto* digests = std::get_if<BlockDigests>(&message)) return take_digests(*digests);
  if (const auto* root = std::get_if<FileRoot>(&message)) return take_root(*root);
  if (auto* part = std::get_if<ManifestPart>(&message)) return take_entries(now, *part);
  if (const auto* end = std::get_if<ChapterEnd>(&message)) return take_chapter_end(now, *end);
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
    const Chapter* const chapter = chapters_.find(item.file);
    if (chapter == nullptr || !chapter->has_blocks(item.file) ||
        item.block >= blocks_of(chapter->entry(item.file).size))
      return violation("the peer announced a digest of a block that the manifest does not have");
    if (message.is_skipped && bytes_claimed_ > 0) {  // no more of them than we claimed
      bytes_claimed_ -= block_bytes;
      bytes_confirmed_ += block_bytes;
    }
    command_file(message.is_skipped ? FileMessageKind::skipped : FileMessageKind::digest, item.file,
                 item.block, item.digest);
    if (message.is_skipped)
      skipped_bytes += block_length_at(chapter->entry(item.file).size, item.block * block_bytes);
  }
  if (skipped_bytes > 0) act(Skipped{skipped_bytes});
  return success();
}

Result<void> RecvMachine::take_root(const FileRoot& message) {
  Chapter* const chapter = chapters_.find(message.file);
  const bool is_due = chapter != nullptr &&
                      (chapter->has_blocks(message.file) || chapter->is_pack(message.file)) &&
                      chapter->roots.emplace(message.file, message.root).second;
  if (!is_due) return violation("the peer announced a root of a file that it cannot have sent");
  --chapter->roots_left;
  if (chapters_.are_roots_announced()) act(Phase::verifying);
  command_file(FileMessageKind::root, message.file, 0, message.root);
  drop_over();
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
  offered_before_.emplace();
  for (const Chapter& chapter : chapters_.open())
    for (std::size_t i = 0; i < chapter.manifest->files.size(); ++i)
      if (!chapter.is_settled(i))
        offered_before_->emplace(chapter.manifest->files[i].name, chapter.manifest->files[i]);
  is_deciding_ = is_sending_claims_ = false;
  decision_ = {};
  bytes_claimed_ = 0;
  send(Restarted{});
  await_offer(now);
}

}  // namespace onehop::session
