// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/plane/recv_session.hpp"

#include <boost/asio/post.hpp>

#include <algorithm>
#include <unordered_map>
#include <utility>

namespace onehop::plane {

namespace {

// Names of a manifest while it arrives. A million names of 60 bytes fit; a million of 4096 would be 4 GB of RAM that a
// peer makes us spend before anybody has agreed to anything.
constexpr std::size_t manifest_name_bytes_max = 64U << 20;
constexpr std::size_t unsent_bytes_max = 4U << 20;

}  // namespace

RecvSession::RecvSession(asio::io_context& io, const RecvOptions& options, RecvHost& host,
                         std::shared_ptr<Channel> channel, const SenderToken& sender)
    : SessionBase{io, host, options.limits, Role::receiver}, recv_host_{host}, options_{options}, sender_{sender} {
  channel_ = std::move(channel);
  peer_name_ = channel_->peer().address.text();
}

void RecvSession::replace() {
  is_replaced_ = true;
  end_with({ExitCode::interrupted, "receive files from " + peer_name_, "it came back over another connection", ""});
  channel_->abort();
}

Task<Result<void>> RecvSession::converse() {
  channel_->send(Welcome{protocol_version, "onehop " ONEHOP_VERSION});
  for (;;) {
    ONEHOP_CO_TRYV(co_await receive_offered());
    if (!is_restarting_) co_return success();
    ONEHOP_CO_TRYV(co_await restart());
  }
}

// One offer and what follows from it: until every file of it is done, or the sender wants to offer again.
Task<Result<void>> RecvSession::receive_offered() {
  ONEHOP_CO_TRYV(co_await take_offer());
  ONEHOP_CO_TRYV(co_await consider());
  ONEHOP_CO_TRYV(open_data());
  const std::uint32_t frame_body = std::min(offer_.frame_body_max_bytes, data_->frame_body_max_bytes);
  if (files_left_ > 0) {
    ONEHOP_CO_TRYV(start_data(context_, {.port = offer_.data_port, .frame_body_max_bytes = frame_body, .is_repair_lazy = is_repair_lazy(),
                                          .has_fragments = offer_.has_fragments},
                              options_.interface, options_.dscp));
  }
  co_await send_accept();
  if (files_left_ > 0) {
    ONEHOP_CO_TRYV(co_await expect<DataReady>(limits_.offer, "wait for the sender's data port"));
    ONEHOP_CO_TRYV(co_await prove());
  }
  co_return co_await transfer();
}

// The offer is refused as a whole before the host learns a single name.
Task<Result<void>> RecvSession::take_offer() {
  const std::string step = "read the offer";
  const auto deadline = Clock::now() + limits_.offer;
  ONEHOP_CO_TRY(offer_taken, co_await expect<Offer>(limits_.step, step));
  offer_ = std::move(offer_taken);
  info_ = std::make_shared<OfferInfo>();
  if (offer_.file_count > files_max) co_return refuse(file::too_many_entries(offer_.file_count));
  info_->manifest.files.reserve(offer_.file_count);  // address space; memory is taken as entries come
  name_bytes_ = 0;
  for (;;) {
    const Nanos left = std::max<Nanos>(deadline - Clock::now(), 0ns);
    ONEHOP_CO_TRY(message, co_await receive(std::min(limits_.step, left), step));
    if (auto* part = std::get_if<ManifestPart>(&message)) {
      ONEHOP_CO_TRYV(take_entries(*part));
      continue;
    }
    const auto* end = std::get_if<OfferEnd>(&message);
    if (end == nullptr) co_return violation("the peer sent a message out of turn", step);
    info_->manifest_hash = end->manifest_hash;
    break;
  }
  if (info_->manifest.files.size() != offer_.file_count)
    co_return violation("the manifest has fewer entries than it announced", step);
  if (const auto valid = file::validate(info_->manifest); !valid) co_return refuse(valid.error());
  if (file::total_bytes(info_->manifest) != offer_.total_bytes ||
      file::manifest_hash(info_->manifest) != info_->manifest_hash)
    co_return violation("sizes or hash of the manifest do not agree with the offer", step);
  if (std::ranges::find(session_ids_, offer_.session_id) != session_ids_.end())  // the same id gives the same keys
    co_return violation("the peer offers again with the keys of its offer before", step);
  session_ids_.push_back(offer_.session_id);
  if (offered_before_) {
    ONEHOP_CO_TRYV(check_offer_again());
  } else {
    restarts_left_ = offer_.file_count;
  }
  has_offer_ = true;
  info_->total_bytes = offer_.total_bytes;
  info_->digest = offer_.digest;
  info_->has_fragments = offer_.has_fragments;
  info_->peer = channel_->peer();
  info_->peer_software = file::display_name(offer_.software);
  context_.digest = offer_.digest;
  context_.key_interval = offer_.key_interval;
  context_.queue_count = offer_.queue_count;
  context_.session_id = offer_.session_id;
  co_return success();
}

Result<void> RecvSession::take_entries(ManifestPart& part) {
  auto& files = info_->manifest.files;
  if (part.entries.empty() || part.entries.size() > offer_.file_count - files.size())
    return violation("the manifest has other entries than it announced", "read the offer");
  for (auto& entry : part.entries) {
    name_bytes_ += entry.name.size();
    files.push_back(std::move(entry));
  }
  if (name_bytes_ <= manifest_name_bytes_max) return success();
  return refuse({ExitCode::local_file_error, "take the list of files",
                 "its names have more than " + std::to_string(manifest_name_bytes_max) + " bytes in sum, which is the limit",
                 "Nothing was written. Send them in several sessions, or in an archive"});
}

// The peer is told why, and ends with 5; this end has the code of `why`.
Error RecvSession::refuse(Error why) {
  channel_->send(Refuse{ExitCode::refused_by_peer, why.message()});
  has_peer_verdict_ = true;  // it has our Refuse: no Failure on top
  return why;
}

// What was approved stays approved, and nothing else is: files of the offer before that are not done, by their names.
Result<void> RecvSession::check_offer_again() {
  std::unordered_map<std::string_view, const file::ManifestEntry*> open;
  for (std::size_t i = 0; i < was_settled_.size(); ++i)
    if (!was_settled_[i]) open.emplace(offered_before_->manifest.files[i].name, &offered_before_->manifest.files[i]);
  for (const file::ManifestEntry& entry : info_->manifest.files) {
    const auto before = open.find(entry.name);
    if (before == open.end()) return violation("the peer offers again what it did not offer before", "read the offer");
    info_->is_changed.push_back(entry != *before->second);
  }
  return success();
}

// Everything that arrived is made durable, and every file that this finished is told, before the sender offers again.
Task<Result<void>> RecvSession::restart() {
  const std::string step = "stop for the sender's changed file";
  host_.on_notice("a file changed while " + peer_name_ + " sent it: it is received again");
  engine_->push_file(BlockKind::abort, 0, 0, {});
  const auto deadline = Clock::now() + limits_.checkpoint;
  while (!engine_->is_closed()) {
    if (is_interrupted_) co_return Error{ExitCode::interrupted, step, "interrupted", ""};
    engine_->flush();
    Event event;
    while (engine_->pop(event) && event.kind != EventKind::closed) {
      ONEHOP_CO_TRYV(take_event(event));
      if (event.kind == EventKind::file_message && event.block.kind == BlockKind::checkpointed)
        engine_->push(CommandKind::finish);
    }
    if (channel_->end() != ChannelEnd::open) co_return ended(step);
    if (Clock::now() >= deadline) co_return Error{ExitCode::timed_out, step, "the disk did not take it in time", ""};
    co_await channel_->wait_turn(limits_.poll_short);
  }
  drop_data();
  offered_before_ = info_;
  was_settled_ = is_done_;
  for (std::size_t i = 0; i < was_settled_.size(); ++i)
    if (!has_digests(decision_.actions[i])) was_settled_[i] = true;
  is_restarting_ = false;
  channel_->send(Restarted{});
  co_return success();
}

Task<Result<void>> RecvSession::consider() {
  const std::string step = "decide on the offer";
  set_phase(Phase::waiting_for_accept);
  answer_ = std::make_shared<std::optional<Result<Decision>>>();
  recv_host_.consider(info_, [&io = io_, answer = answer_, channel = channel_](Result<Decision> decision) {
    asio::post(io, [answer, channel, decision = std::move(decision)]() mutable {
      if (!answer->has_value()) answer->emplace(std::move(decision));
      channel->poke();
    });
  });
  is_deciding_ = true;
  const auto deadline = Clock::now() + limits_.consider;
  while (!answer_->has_value()) {
    if (is_interrupted_) co_return Error{ExitCode::interrupted, step, "interrupted", ""};
    if (const auto message = channel_->pop()) {
      if (auto verdict = verdict_of(*message, step)) co_return std::move(*verdict);
      co_return violation("the peer sent a message out of turn", step);
    }
    if (channel_->end() != ChannelEnd::open) co_return ended(step);
    if (Clock::now() >= deadline) co_return Error{ExitCode::timed_out, step, "nobody decided in time", "Send again; --on-exist answers without a person"};
    co_await channel_->wait_activity(deadline - Clock::now());
  }
  is_deciding_ = false;
  if (!**answer_) co_return refuse((*answer_)->error());
  decision_ = std::move((*answer_)->value());
  ONEHOP_CO_TRYV(check_decision());
  bytes_claimed_ = 0;
  for (const auto& claims : decision_.claims) bytes_claimed_ += claims.size() * block_bytes;
  files_left_ = static_cast<std::size_t>(std::ranges::count_if(decision_.actions, has_digests));
  roots_left_ = files_left_;
  has_root_.assign(info_->manifest.files.size(), false);
  is_done_.assign(info_->manifest.files.size(), false);
  co_return success();
}

// The host's answer is ours, so a wrong one is a bug; it is reported, not sent.
Result<void> RecvSession::check_decision() const {
  bool is_right = decision_.actions.size() == info_->manifest.files.size();
  is_right = is_right && decision_.claims.size() <= decision_.actions.size();
  for (std::size_t i = 0; is_right && i < decision_.claims.size(); ++i)
    is_right = decision_.claims[i].empty() || decision_.actions[i] == FileAction::resume;
  if (is_right) return success();
  return Error{ExitCode::internal_error, "decide on the offer", "the decision does not fit the manifest", ""};
}

Task<void> RecvSession::send_accept() {
  Accept accept;
  accept.manifest_hash = info_->manifest_hash;
  accept.data_port = data_->data_port;
  accept.frame_body_max_bytes = std::min(offer_.frame_body_max_bytes, data_->frame_body_max_bytes);
  accept.has_claims = std::ranges::any_of(decision_.claims, [](const auto& claims) { return !claims.empty(); });
  accept.is_repair_lazy = is_repair_lazy();
  accept.io = data_->io;
  accept.folder = decision_.folder;
  accept.actions = decision_.actions;
  channel_->send(accept);
  for (std::uint32_t file = 0; file < accept.actions.size(); ++file)
    if (!has_digests(accept.actions[file])) report_done(kept_by(accept.actions[file], file), info_->manifest);
  if (!accept.has_claims) co_return;
  for (std::uint32_t file = 0; file < decision_.claims.size(); ++file) {
    send_claims(file, decision_.claims[file]);
    co_await channel_->wait_sent(unsent_bytes_max);
  }
  channel_->send(ClaimPart{.is_last = true});
  decision_.claims = {};
}

// Runs of consecutive blocks, cut at the bound of a message.
void RecvSession::send_claims(std::uint32_t file, const std::vector<file::Claim>& claims) {
  ClaimPart part{.file = file};
  for (const file::Claim& claim : claims) {
    const bool is_next = !part.digests.empty() && claim.block == part.first_block + part.digests.size() &&
                         part.digests.size() < digests_per_message_max;
    if (!is_next) {
      if (!part.digests.empty()) channel_->send(part);
      part.first_block = claim.block;
      part.digests.clear();
    }
    part.digests.push_back(claim.digest);
  }
  if (!part.digests.empty()) channel_->send(part);
}

Task<Result<void>> RecvSession::transfer() {
  const std::string step = "receive files from " + peer_name_;
  set_phase(Phase::transferring);
  while (!is_complete_) {
    if (is_interrupted_)
      co_return Error{ExitCode::interrupted, step, "interrupted", "What arrived was kept; send again to go on"};
    if (engine_) {
      engine_->flush();
      ONEHOP_CO_TRYV(follow_path());
      ONEHOP_CO_TRYV(take_events());
    }
    // While the engine does not take our commands, messages stay in the inbox and then in TCP.
    bool can_take = !engine_ || engine_->has_room();
    while (can_take && !is_complete_ && !is_restarting_) {
      const auto message = channel_->pop();
      if (!message) break;
      ONEHOP_CO_TRYV(take_message(*message));
      can_take = !engine_ || engine_->has_room();
    }
    if (is_complete_) break;
    if (is_restarting_) co_return success();
    if (files_left_ == 0) channel_->nudge();  // our last FileDone, until the Complete comes
    if (channel_->end() != ChannelEnd::open && !channel_->has_message()) {
      // Every file is verified and in place: that the sender's Complete is missing changes nothing here.
      if (files_left_ == 0) break;
      co_return ended(step);
    }
    const Nanos pause = pause_for(!engine_ ? limits_.keep_alive : roots_left_ == 0 ? limits_.poll_short : limits_.poll);
    if (can_take) co_await channel_->wait_activity(pause);
    else co_await channel_->wait_turn(pause);
  }
  channel_->send(Bye{ExitCode::done});
  co_return success();
}

Result<void> RecvSession::take_events() {
  Event event;
  while (channel_->unsent_bytes() < unsent_bytes_max && engine_->pop(event)) {
    ONEHOP_TRYV(take_event(event));
  }
  return success();
}

Result<void> RecvSession::take_event(const Event& event) {
  auto fault = fault_of(event, info_->manifest);
  if (event.kind == EventKind::file_message && event.block.kind == BlockKind::file_done &&
      is_file_expected(event.block.file) && !is_done_[event.block.file]) {
    is_done_[event.block.file] = true;
    --files_left_;
    const FileDone done{.file = event.block.file, .root = event.block.digest, .outcome = event.block.outcome,
                        .name_number = static_cast<std::uint16_t>(event.block.status)};
    channel_->send(done);
    report_done(done, info_->manifest);
  }
  host_.on_event(event);
  if (fault) return std::move(*fault);
  return success();
}

bool RecvSession::is_file_expected(std::uint32_t file) const noexcept {
  return file < decision_.actions.size() && has_digests(decision_.actions[file]);
}

Result<void> RecvSession::take_message(const Message& message) {
  const std::string step = "receive files from " + peer_name_;
  if (auto verdict = verdict_of(message, step)) {
    if (files_left_ == 0) {  // the sender gave up after everything was in place
      is_complete_ = true;
      return success();
    }
    return std::move(*verdict);
  }
  if (const auto* digests = std::get_if<BlockDigests>(&message)) return take_digests(*digests);
  if (const auto* root = std::get_if<FileRoot>(&message)) return take_root(*root);
  if (std::holds_alternative<Restart>(message) && engine_ && restarts_left_ > 0) {
    --restarts_left_;
    is_restarting_ = true;
    return success();
  }
  if (std::holds_alternative<Complete>(message) && files_left_ == 0) {
    is_complete_ = true;
    return success();
  }
  return violation("the peer sent " + std::string{name_of(type_of(message))} + " out of turn", step);
}

Result<void> RecvSession::take_digests(const BlockDigests& message) {
  std::uint64_t skipped_bytes = 0;
  for (const BlockDigest& item : message.digests) {
    // Digests may follow their file's root: the file thread reads ahead of what the engine has sent.
    if (!engine_ || !is_file_expected(item.file) ||
        item.block >= file::blocks_of(info_->manifest.files[item.file].size))
      return violation("the peer announced a digest of a block that the manifest does not have", "receive files");
    if (message.is_skipped && bytes_claimed_ > 0) {  // no more of them than we claimed
      bytes_claimed_ -= block_bytes;
      bytes_confirmed_ += block_bytes;
    }
    engine_->push_file(message.is_skipped ? BlockKind::skipped : BlockKind::digest, item.file, item.block, item.digest);
    if (message.is_skipped) skipped_bytes += file::block_length(info_->manifest.files[item.file].size, item.block);
  }
  if (skipped_bytes > 0) recv_host_.on_skipped(skipped_bytes);
  return success();
}

Result<void> RecvSession::take_root(const FileRoot& message) {
  if (!engine_ || !is_file_expected(message.file) || has_root_[message.file])
    return violation("the peer announced a root of a file that it cannot have sent", "receive files");
  has_root_[message.file] = true;
  if (--roots_left_ == 0) set_phase(Phase::verifying);
  engine_->push_file(BlockKind::root, message.file, 0, message.root);
  return success();
}

}  // namespace onehop::plane
