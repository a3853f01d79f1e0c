// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// SendMachine, the offer: volumes out, answers and claims in.
//
//   WantVolume ─▶ on_volume ─▶ ManifestPart.., VolumeEnd
//     ─▶ VolumeAnswer, HeldPart.. ─▶ Accepted ─▶ ClaimPart..

#include "control/session/send_machine.hpp"

namespace onehop::session {

namespace {

// A part of the manifest is sent when it reaches this; the bound of a message is four times as
// high.
constexpr std::size_t manifest_part_bytes = message_body_bytes_max / 4;

}  // namespace

void SendMachine::begin_offer() {
  act(OpenData{});
  want_volume();
  enter(State::opening_data, Instant::max(), "open the data port");
}

/// A volume may be empty: the last one, where nothing more was found, and what is left of a
/// restart, where all of it is gone. The receiver refuses a tree that begins with one.
Result<void> SendMachine::check(const list::Manifest& manifest) {
  return manifest.files.empty() ? success() : list::validate(manifest);
}

/// One volume ahead of what is offered: the host makes it while this one is sent.
void SendMachine::want_volume() {
  if (is_volume_wanted_ || has_asked_all_ || !ready_.empty()) return;
  is_volume_wanted_ = true;
  act(WantVolume{});
}

void SendMachine::on_volume(Instant now, Result<list::Volume> volume, const KnownTree& known) {
  is_volume_wanted_ = false;
  if (is_winding_down()) return;
  if (!volume) return fail(now, volume.error());
  has_asked_all_ = volume.value().is_last;
  known_ = known;
  if (const auto checked = check(*volume.value().manifest); !checked)
    return fail(now, checked.error());
  ready_.push_back(std::move(volume).value());
  if (state_ == State::offering || state_ == State::transferring) begin_volume(now);
}

void SendMachine::on_opened(Instant now, const SessionId& fresh_id) {
  context_.session_id = fresh_id;
  context_.digest = digest_;
  context_.key_interval = options_.key_interval;
  volumes_.restart();
  accept_.reset();
  is_offering_ = reading_.is_taking_held = false;
  untold_.clear();
  enter(State::offering, Instant::max(), "offer the files");
  begin_volume(now);
}

/// The next volume, as soon as there is one and room for it.
void SendMachine::begin_volume(Instant now) {
  if (is_offering_ || ready_.empty() || !volumes_.has_room()) return;
  if (state_ == State::offering && volumes_.open().empty()) {
    Offer offer;
    offer.software = "onehop " ONEHOP_VERSION;
    offer.context = context_;
    offer.frame_body_max_bytes = data_->frame_body_max_bytes;
    offer.data_port = data_->data_port;
    offer.known = known_;
    offer.is_repair_lazy = options_.is_repair_lazy;
    offer.has_fragments = options_.has_fragments;
    send(std::move(offer));
  }
  list::Volume next = std::move(ready_.front());
  ready_.pop_front();
  next.manifest_hash = list::manifest_hash(*next.manifest);
  if (volumes_.add(next) == nullptr)
    return fail(now, {ExitCode::local_file_error, "offer the files",
                      "they have more than " + std::to_string(file_index_max) + " entries",
                      "Send them in several sessions"});
  is_offering_ = true;
  next_entry_ = 0;
}

void SendMachine::send_part(Instant now) {
  const VolumeState& volume = volumes_.open().back();
  const std::vector<list::ManifestEntry>& entries = volume.manifest->files;
  ManifestPart part;
  for (std::size_t bytes = 0; next_entry_ < entries.size() && bytes < manifest_part_bytes &&
                              part.entries.size() < manifest_entries_per_part_max;
       ++next_entry_) {
    part.entries.push_back(entries[next_entry_]);
    bytes += entries[next_entry_].name.size() + sizeof entries[next_entry_];
  }
  if (!part.entries.empty()) send(std::move(part));
  if (next_entry_ < entries.size()) return;
  send(VolumeEnd{volume.manifest_hash, volume.is_last});
  is_offering_ = false;
  if (state_ == State::offering) return await_accept(now);
  set_answer_deadline(now);
}

void SendMachine::await_accept(Instant now) {
  learn(Phase::waiting_for_accept);
  enter(State::awaiting_accept, now + limits_.consider_all(*volumes_.unanswered()->manifest),
        "offer the files");
}

/// While data flows nothing else has a limit: the engine watches that it does.
void SendMachine::set_answer_deadline(Instant now) {
  const VolumeState* const volume = volumes_.unanswered();
  const bool is_answer_due = reading_.is_taking_held || (volume != nullptr && !is_offering_);
  deadline_ = is_answer_due     ? now + limits_.consider_all(*volume->manifest)
              : untold_.empty() ? Instant::max()
                                : now + limits_.consider;
}

Result<void> SendMachine::take_accept(Accept&& accept) {
  if (accept.frame_body_max_bytes > data_->frame_body_max_bytes ||
      (accept.is_repair_lazy && !options_.is_repair_lazy))
    return violation("the peer accepted something else than what was offered");
  if (options_.is_repair_lazy && !accept.is_repair_lazy)
    learn(Notice{"the peer keeps to eager repair: --repair lazy has no effect"});
  accept_ = std::move(accept);
  return success();
}

Result<void> SendMachine::take_answer(Instant now, VolumeAnswer&& answer) {
  VolumeState* const volume = volumes_.unanswered();
  const bool is_offered = volume != nullptr && !(is_offering_ && volume == &volumes_.open().back());
  if (!is_offered || answer.actions.size() != volume->manifest->files.size() ||
      answer.manifest_hash != volume->manifest_hash)
    return violation("the peer accepted something else than what was offered");
  reading_.answer = std::move(answer);
  reading_.held.clear();
  reading_.is_taking_held = reading_.answer.has_held;
  if (!reading_.is_taking_held)
    end_answer(now);
  else if (state_ == State::awaiting_accept)
    deadline_ = now + limits_.step;
  return success();
}

// What is held is bounded by our own manifest: each block of each file at most once, in ascending
// order, and few runs of a file.
Result<void> SendMachine::take_held(Instant now, const HeldPart& part) {
  const Error bad = violation("the peer claims blocks that the offer does not have");
  if (state_ == State::awaiting_accept) deadline_ = now + limits_.step;
  const VolumeState& volume = *volumes_.unanswered();
  reading_.held.resize(volume.manifest->files.size());
  for (const HeldRun& run : part.runs) {
    if (!volume.has_entry(run.file)) return bad;
    const std::size_t entry = run.file - volume.first_file;
    if (reading_.answer.actions[entry] != FileAction::resume) return bad;
    std::vector<BlockRun>& held = reading_.held[entry];
    const std::uint64_t blocks = blocks_of(volume.entry(run.file).size);
    if (run.first_block >= blocks || run.count > blocks - run.first_block ||
        held.size() == list::held_runs_max || (!held.empty() && run.first_block <= held.back().end))
      return bad;
    held.push_back({run.first_block, run.first_block + run.count});
  }
  if (part.runs.empty() && !part.is_last) return bad;
  if (part.is_last) end_answer(now);
  return success();
}

Result<void> SendMachine::take_claims(Instant now, const ClaimPart& part) {
  if (state_ == State::restarting) return success();  // it is asked again
  const Error bad = violation("the peer claims blocks that it did not say it held");
  const auto untold = untold_.find(part.file);
  if (untold == untold_.end() || (part.digests.empty() && !part.is_last)) return bad;
  const std::uint64_t blocks = blocks_of(volumes_.find(part.file)->entry(part.file).size);
  if (!part.digests.empty() &&
      (part.first_block < untold->second || part.first_block + part.digests.size() > blocks))
    return bad;
  for (std::size_t i = 0; i < part.digests.size(); ++i)
    act(FileCommand{HeldBlock{part.file, part.first_block + i, part.digests[i]}});
  untold->second = part.first_block + part.digests.size();
  if (part.is_last) {
    act(FileCommand{HeldEnd{part.file}});
    untold_.erase(untold);
  }
  set_answer_deadline(now);
  return success();
}

void SendMachine::end_answer(Instant now) {
  reading_.is_taking_held = false;
  VolumeState& volume = *volumes_.unanswered();
  list::Answer answer{.actions = std::move(reading_.answer.actions),
                      .held = std::move(reading_.held),
                      .folder = accept_ ? accept_->folder : "",
                      .name_faults = std::move(reading_.answer.name_faults)};
  answer.set_pack(*volume.manifest, context_.digest);
  if (answer.pack != nullptr)
    answer.pack_roots = std::make_shared<list::PackRoots>(answer.pack->entries().size());
  for (std::uint32_t entry = 0; entry < answer.held.size(); ++entry)
    if (!answer.held[entry].empty()) untold_.emplace(volume.first_file + entry, 0);
  volume.take_answer(std::move(answer));
  bytes_total_ += volume.bytes_of_blocks();
  // What the peer answered before it heard of a restart tells no more than what it keeps.
  if (state_ == State::restarting) return report_kept(volume);
  act(Accepted{volume, volume.answer});
  note_held(volume);
  report_kept(volume);
  if (state_ == State::transferring) {
    set_answer_deadline(now);
    return complete_if_over(now);
  }
  if (volume.is_last && volume.is_over()) return complete(now);
  start_data({.terms = {.context = context_,
                        .frame_body_max_bytes = accept_->frame_body_max_bytes,
                        .is_repair_lazy = accept_->is_repair_lazy,
                        .has_fragments = options_.has_fragments},
              .peer_port = accept_->data_port});
}

}  // namespace onehop::session
