// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// RecvMachine, the offer: volumes in, answers out. A volume is refused as a whole
// before the host learns a single name.
//
//   ManifestPart.., VolumeEnd ─▶ Consider ─▶ on_decision
//     ─▶ TakeOffered ─▶ VolumeAnswer, HeldPart..
#include <algorithm>

#include "control/session/recv_machine.hpp"

namespace onehop::session {

namespace {

// Names of a volume while it arrives. All that it may have of 250 bytes fit; of 4096 bytes they
// would be 256 MB of RAM that a peer makes us spend before anybody has agreed to anything.
constexpr std::size_t volume_name_bytes_max = 16U << 20;

}  // namespace

void RecvMachine::await_offer(Instant now) {
  offer_deadline_ = now + limits_.offer;
  enter(State::awaiting_offer, now + limits_.step, "read the offer");
}

Result<void> RecvMachine::take_offer(Instant now, Offer&& offer) {
  offer_ = std::move(offer);
  // The same id would give the same keys.
  if (std::ranges::find(session_ids_, offer_.context.session_id) != session_ids_.end())
    return violation("the peer offers again with the keys of its offer before");
  if (options_.is_sha256_required && offer_.context.digest != crypto::DigestKind::sha256)
    return refuse({ExitCode::refused_by_peer, "agree on a digest with " + peer_name_,
                   "this end asked for SHA-256, and was offered XXH3",
                   "Start the receiver without --digest sha256 and --receipt"});
  context_ = offer_.context;
  session_ids_.push_back(context_.session_id);
  volumes_.restart();
  offered_.clear();
  reading_.reset();
  bytes_offered_ = 0;
  enter(State::reading_offer, std::min(now + limits_.step, offer_deadline_), step_);
  return success();
}

Result<void> RecvMachine::take_entries(Instant now, ManifestPart& part) {
  if (!reading_) {
    reading_ = std::make_shared<list::Manifest>();
    name_bytes_ = 0;
  }
  auto& files = reading_->files;
  if (part.entries.empty() || part.entries.size() > volume_entries_max - files.size())
    return violation("a volume has no entry in one of its parts, or too many");
  for (auto& entry : part.entries) {
    name_bytes_ += entry.name.size();
    files.push_back(std::move(entry));
  }
  // What was begun is owed at once.
  deadline_ = now + limits_.step;
  if (state_ == State::reading_offer) deadline_ = std::min(deadline_, offer_deadline_);
  if (name_bytes_ <= volume_name_bytes_max) return success();
  return refuse({ExitCode::local_file_error, "take the list of files",
                 "names of one part of it have more than " + std::to_string(volume_name_bytes_max) +
                     " bytes in sum, which is the limit",
                 "Send them in an archive"});
}

Result<void> RecvMachine::take_volume_end(Instant now, const VolumeEnd& end) {
  const auto info = std::make_shared<OfferedVolume>();
  info->manifest = reading_ ? std::exchange(reading_, nullptr) : std::make_shared<list::Manifest>();
  const list::Manifest& manifest = *info->manifest;
  info->manifest_hash = end.manifest_hash;
  info->is_last = end.is_last;
  // What a person approves is not empty. Later volumes may be, and what a restart left.
  const bool may_be_empty = state_ != State::reading_offer || offered_before_;
  if (!manifest.files.empty() || !may_be_empty)
    if (const auto valid = list::validate(manifest); !valid) return refuse(valid.error());
  if (list::manifest_hash(manifest) != info->manifest_hash)
    return violation("the hash of a volume does not agree with its entries");
  bytes_offered_ += list::total_bytes(manifest);
  if (bytes_offered_ > list::ManifestLimits{}.total_bytes_max)
    return refuse({ExitCode::local_file_error, "take the list of files",
                   "its sizes have a sum that no disk holds", ""});
  if (!volumes_.has_room() || volumes_.has_last())
    return violation("the peer offers more volumes than it may");
  const VolumeState* const volume = volumes_.add(*info);
  if (volume == nullptr) return violation("the peer offers more entries than there are indices");
  info->first_file = volume->first_file;
  if (offered_before_) {
    ONEHOP_TRYV(note_changes(*info));
  } else {
    restarts_left_ += 2 * manifest.files.size();
  }
  info->known = offer_.known;
  info->digest = context_.digest;
  info->has_fragments = offer_.has_fragments;
  info->peer = peer_;
  offered_.push_back(info);
  if (state_ == State::reading_offer) {
    has_offer_ = true;
    learn(Phase::waiting_for_accept);
    enter(State::deciding, now + limits_.consider_all(manifest), "decide on the offer");
  } else {
    deadline_ = Instant::max();
  }
  consider_next();
  return success();
}

void RecvMachine::consider_next() {
  if (is_deciding_ || offered_.empty()) return;
  is_deciding_ = true;
  act(Consider{offered_.front()});
}

// The session reports `why` to the peer, which ends with 5; this end ends with the code of `why`.
Error RecvMachine::refuse(Error why) {
  send(Refuse{ExitCode::refused_by_peer, why.message()});
  has_peer_verdict_ = true;  // it has our Refuse: no Failure on top
  return why;
}

// Every refusal that depends on this machine reads the same: otherwise a sender could probe for
// names, sizes and contents by offers.
Error RecvMachine::refuse_unsaid(Error why) {
  has_refused_unsaid_ = true;
  static_cast<void>(
      refuse({ExitCode::refused_by_peer, "receive what was offered", "the offer was refused there",
              "Ask who runs the receiver, which shows why"}));
  return why;
}

// The first volume after a restart offers again what was not done, and nothing else. Of an entry
// that is another one now, nothing that came before is of use.
Result<void> RecvMachine::note_changes(OfferedVolume& info) {
  KnownEntries known = *std::exchange(offered_before_, std::nullopt);
  info.is_again = true;
  for (const list::ManifestEntry& entry : info.manifest->files) {
    const auto before = known.extract(entry.name);
    if (before.empty()) return violation("the peer offers again what it did not offer before");
    info.is_changed.push_back(before.mapped() != entry);
  }
  for (auto& [name, entry] : known) info.left_out.push_back(std::move(entry));
  return success();
}

void RecvMachine::on_decision(Instant now, Result<list::Answer> decision) {
  if (!std::exchange(is_deciding_, false) || offered_.empty()) return;
  if (state_ != State::deciding && state_ != State::transferring) return;
  if (!decision)
    return fail(now, decision.error().code == ExitCode::timed_out ? decision.error()
                                                                  : refuse(decision.error()));
  if (decision.value().refusal) return fail(now, refuse_unsaid(*decision.value().refusal));
  list::Answer answer = std::move(decision.value());
  VolumeState& volume = *volumes_.unanswered();
  if (const auto checked = check_decision(volume, answer); !checked)
    return fail(now, checked.error());
  answer.set_pack(*volume.manifest, context_.digest);
  volume.take_answer(std::move(answer));
  note_held(volume);
  for (std::uint32_t i = 0; i < volume.manifest->files.size(); ++i)
    if (volume.answer->actions[i] == FileAction::compare &&
        volume.has_blocks(volume.first_file + i))
      bytes_claimed_ += blocks_of(volume.manifest->files[i].size) * block_bytes;
  if (state_ == State::transferring) {
    act(TakeOffered{offered_.front()});
    return send_answer(now);
  }
  act(OpenData{});
  enter(State::opening_data, Instant::max(), "open the data port");
}

// The host's answer is ours, so a wrong one is a bug; it is reported, not sent.
Result<void> RecvMachine::check_decision(const VolumeState& volume,
                                         const list::Answer& answer) const {
  bool is_right = answer.actions.size() == volume.manifest->files.size() &&
                  std::ranges::count(answer.actions, FileAction::name_refused) ==
                      std::ssize(answer.name_faults);
  is_right = is_right && answer.held.size() <= answer.actions.size();
  for (std::size_t i = 0; is_right && i < answer.held.size(); ++i)
    is_right = answer.held[i].empty() || answer.actions[i] == FileAction::resume;
  if (is_right) return success();
  return Error{ExitCode::internal_error, step_, "the decision does not fit the volume", ""};
}

void RecvMachine::on_opened(Instant now, const SessionId&) {
  const VolumeState& volume = volumes_.open().front();
  if (volume.is_last && volume.is_over()) return send_accept(now);
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
  accept.folder = volumes_.open().front().answer->folder;
  send(std::move(accept));
  send_answer(now);
}

void RecvMachine::send_answer(Instant now) {
  VolumeAnswer answer;
  answer.manifest_hash = offered_.front()->manifest_hash;
  const list::Answer& given = *volumes_.find(offered_.front()->first_file)->answer;
  answer.has_held = std::ranges::any_of(given.held, [](const auto& runs) { return !runs.empty(); });
  answer.actions = given.actions;
  answer.name_faults = given.name_faults;
  const bool has_held = answer.has_held;
  send(std::move(answer));
  if (has_held) send_held(given.held, offered_.front()->first_file);
  end_answer(now);
}

void RecvMachine::send_held(const list::Held& held, std::uint32_t first_file) {
  HeldPart part;
  for (std::uint32_t entry = 0; entry < held.size(); ++entry)
    for (const BlockRun& run : held[entry]) {
      if (part.runs.size() == digests_per_message_max) send(std::exchange(part, {}));
      part.runs.push_back({first_file + entry, run.first, run.end - run.first});
    }
  part.is_last = true;
  send(std::move(part));
}

/// The newest volume has its whole answer.
void RecvMachine::end_answer(Instant now) {
  const VolumeState* const volume = volumes_.find(offered_.front()->first_file);
  offered_.pop_front();
  report_kept(*volume);
  const bool is_only = volume->is_last && volume->is_over();
  if (state_ == State::transferring) {
    drop_over();
    return consider_next();
  }
  if (!is_only)
    return enter(State::awaiting_data_ready, now + limits_.offer,
                 "wait for the sender's data port");
  learn(Phase::transferring);
  on_proven(now);
}

}  // namespace onehop::session
