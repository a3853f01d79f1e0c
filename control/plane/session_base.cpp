// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/plane/session_base.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "engine/base/memory.hpp"
#include "engine/base/time.hpp"
#include "engine/wire/feedback.hpp"
#include "engine/wire/frame.hpp"

namespace onehop::plane {

namespace {

std::string failure_text(FileFailure failure) {
  switch (failure) {
    case FileFailure::read_error: return "read";
    case FileFailure::source_changed: return "it changed while it was being sent, and again when it was sent anew";
    case FileFailure::source_vanished: return "it vanished while it was being sent";
    case FileFailure::source_length: return "it holds more or less than its size says";
    case FileFailure::write_error: return "write";
    case FileFailure::sync_error: return "write to the disk";
    case FileFailure::rename_error: return "rename";
    case FileFailure::exists: return "a file of this name exists";
    case FileFailure::differs: return "a file of this name and size with other content is there";
    case FileFailure::digest_mismatch: return "a block's digest differs from what was sent";
    case FileFailure::root_mismatch: return "the file's digest differs from what was sent";
    case FileFailure::protocol: return "the peer announced what cannot be";
    case FileFailure::none: break;
  }
  return "failed";
}

Error file_error(const BlockRef& block, const file::Manifest& manifest) {
  const bool is_known = block.file < manifest.files.size();
  const std::string name = is_known ? file::display_name(manifest.files[block.file].name) : "a file";
  Error error{ExitCode::local_file_error, "transfer " + name, failure_text(block.failure), "", block.status};
  switch (block.failure) {
    case FileFailure::digest_mismatch:
    case FileFailure::root_mismatch:
      error.code = ExitCode::verification_failed;
      error.hint = "Run the same command again; if it persists, suspect memory or disk of either machine";
      return error;
    case FileFailure::protocol: error.code = ExitCode::internal_error; return error;
    case FileFailure::source_changed: error.hint = "Wait until nothing writes to it, then send it again"; break;
    case FileFailure::source_vanished: error.hint = "Put it back, or send the others without it"; break;
    case FileFailure::exists: error.hint = "It came up meanwhile: move it away, or choose --on-exist, then run the same command again"; break;
    case FileFailure::differs: error.hint = "Move it away, or choose --on-exist rename or overwrite, then run the same command again"; break;
    case FileFailure::source_length: error.hint = "Files of /proc and /sys are such: copy it with cat, then send the copy"; break;
    case FileFailure::read_error: error.hint = "Look at the disk that it is on, then run the same command again"; break;
    default: error.hint = "What arrived was kept: look at the disk there, then run the same command again"; break;
  }
  if (block.status != 0) error.cause += ": " + errno_text(block.status);
  if (block.status == ENOSPC || block.status == EDQUOT)
    error.hint = "Free space there, then run the same command with --on-exist resume";
  return error;
}

}  // namespace

std::string_view name_of(Phase phase) noexcept {
  switch (phase) {
    case Phase::connecting: return "connecting";
    case Phase::authenticating: return "authenticating";
    case Phase::waiting_for_accept: return "waiting_for_accept";
    case Phase::proving_path: return "proving_path";
    case Phase::transferring: return "transferring";
    case Phase::verifying: return "verifying";
    case Phase::done: return "done";
  }
  return "?";
}

ExitCode exit_code_for_failure_of_peer(ExitCode code) noexcept {
  switch (code) {
    case ExitCode::peer_unreachable:
    case ExitCode::authentication_failed:
    case ExitCode::verification_failed:
    case ExitCode::interrupted:
    case ExitCode::timed_out: return code;
    default: return ExitCode::refused_by_peer;
  }
}

SessionBase::SessionBase(asio::io_context& io, SessionHost& host, const SessionLimits& limits, Role role)
    : io_{io}, host_{host}, limits_{limits}, role_{role} {}

Task<SessionEnd> SessionBase::run() {
  std::optional<Error> error;
  try {
    const auto outcome = co_await converse();
    if (!outcome) error = end_reason_ ? *end_reason_ : outcome.error();
  } catch (const std::bad_alloc& refused) {
    error = memory_error("run the session", refused);  // the peer must hear of it: it would wait for us
  }
  co_await wind_down(error ? &*error : nullptr);
  if (error) co_return SessionEnd{error->code, *error};
  set_phase(Phase::done);
  if (kept_total_ > 0) co_return SessionEnd{ExitCode::verification_failed, kept_error()};
  co_return SessionEnd{};
}

void SessionBase::interrupt() {
  is_interrupted_ = true;
  if (channel_) channel_->poke();
}

void SessionBase::end_with(Error why) {
  if (is_interrupted_) return;
  end_reason_ = std::move(why);
  interrupt();
}

void SessionBase::set_phase(Phase phase) { host_.on_phase(phase); }

void SessionBase::report_done(const FileDone& done, const file::Manifest& manifest) {
  host_.on_file_done(done);
  if (done.outcome != FileOutcome::kept && done.outcome != FileOutcome::not_compared) return;
  if (kept_total_++ > 0) return;
  kept_name_ = file::display_name(manifest.files[done.file].name);
  is_kept_compared_ = done.outcome == FileOutcome::kept;
}

// One code at both ends: what has the name does not have the announced digest, as far as anybody knows.
Error SessionBase::kept_error() const {
  const bool is_sender = role_ == Role::sender;
  std::string cause = "'" + kept_name_ + "' exists" + (is_sender ? " there" : "") + ", was kept, and " +
                      (is_kept_compared_ ? "is not the same" : "could not be compared");
  if (kept_total_ > 1) cause += " (and " + std::to_string(kept_total_ - 1) + " more)";
  return {ExitCode::verification_failed, (is_sender ? "send every file to " : "receive every file from ") + peer_name_, std::move(cause),
          is_sender ? "Ask for --on-exist rename or overwrite there" : "Choose --on-exist rename or overwrite"};
}

Error SessionBase::ended(const std::string& step) const {
  switch (channel_->end()) {
    case ChannelEnd::silent:
      return {ExitCode::timed_out, step, channel_->end_cause(), "Look at the link and at the other machine"};
    case ChannelEnd::violation:
      return {ExitCode::internal_error, step, channel_->end_cause(), "Both ends should run the same version"};
    default:
      return {ExitCode::interrupted, step, peer_name_ + " went away: " + channel_->end_cause(),
              "What arrived was kept; run the same command again to go on"};
  }
}

Error SessionBase::violation(std::string cause, std::string step) const {
  return {ExitCode::internal_error, std::move(step), std::move(cause), "Both ends should run the same version"};
}

std::optional<Error> SessionBase::verdict_of(const Message& message, const std::string& step) {
  // A peer's text reaches a terminal only through the one escaping function.
  if (const auto* refuse = std::get_if<Refuse>(&message)) {
    has_peer_verdict_ = true;
    const ExitCode code = refuse->code == ExitCode::authentication_failed ? refuse->code : ExitCode::refused_by_peer;
    return Error{code, step, peer_name_ + " refused: " + file::display_name(refuse->text), ""};
  }
  if (const auto* failure = std::get_if<Failure>(&message)) {
    has_peer_verdict_ = true;
    return Error{exit_code_for_failure_of_peer(failure->code), step,
                 peer_name_ + " gave up: " + file::display_name(failure->text), ""};
  }
  if (const auto* bye = std::get_if<Bye>(&message)) {
    has_peer_verdict_ = true;
    if (bye->code == ExitCode::done) return violation("the peer ended the session before it was complete", step);
    return Error{exit_code_for_failure_of_peer(bye->code), step, peer_name_ + " was interrupted",
                 "What arrived was kept; run the same command again to go on"};
  }
  return std::nullopt;
}

Task<Result<Message>> SessionBase::receive(Nanos limit, std::string step) {
  const auto deadline = Clock::now() + limit;
  for (;;) {
    if (is_interrupted_) co_return Error{ExitCode::interrupted, step, "interrupted", ""};
    if (auto message = channel_->pop()) {
      if (auto verdict = verdict_of(*message, step)) co_return std::move(*verdict);
      co_return std::move(*message);
    }
    if (channel_->end() != ChannelEnd::open) co_return ended(step);
    const auto now = Clock::now();
    if (now >= deadline)
      co_return Error{ExitCode::timed_out, step, peer_name_ + " did not answer in time", "Look at the link and at the other machine"};
    co_await channel_->wait_activity(deadline - now);
  }
}

Result<void> SessionBase::open_data() {
  auto opened = host_.open_data({channel_->local(), channel_->peer()});
  if (!opened) return opened.error();
  data_ = std::move(opened.value());
  data_->frame_body_max_bytes = std::min(data_->frame_body_max_bytes, frame_body_bytes_max);
  if (data_->data_port != 0 && data_->frame_body_max_bytes >= frame_body_bytes_min) return success();
  return Error{ExitCode::io_unavailable, "open the data port", "the interface's MTU is too small",
               "Raise the MTU to 1280 or more"};
}

Result<void> SessionBase::start_data(const crypto::ExporterContext& context, DataTerms terms, const std::string& interface,
                                     std::uint8_t dscp) {
  DataPlan plan;
  plan.local = {channel_->local().address, data_->data_port};
  plan.peer = {channel_->peer().address, terms.port};
  plan.frame_body_max_bytes = terms.frame_body_max_bytes;
  plan.is_repair_lazy = terms.is_repair_lazy;
  plan.has_fragments = has_fragments_ = terms.has_fragments;
  plan.digest = context.digest;
  plan.key_interval = context.key_interval;
  plan.queue_count = context.queue_count;
  plan.peer_io = std::move(terms.peer_io);
  ONEHOP_TRY(plan_secret_taken, export_data_secret(channel_->ssl(), context));
  plan.secret = std::move(plan_secret_taken);
  peer_data_port_ = terms.port;
  ONEHOP_TRY(follower, PathFollower::open({plan.local, plan.peer, interface, dscp}));
  path_.emplace(std::move(follower));
  ONEHOP_TRY(news, NewsWake::open(io_, path_->fd(), [channel = channel_] { channel->poke(); }));
  news_ = std::move(news);
  plan.path = path_->update();
  if (const auto& gateway = path_->route().gateway)
    host_.on_notice("the route to " + plan.peer.address.text() + " leads through the gateway " + gateway->text() +
                    ": onehop's rate laws assume one hop, and see only the first");
  ONEHOP_TRY(rings, host_.start_data(plan));
  engine_.emplace(rings);
  engine_->push(Command{.kind = CommandKind::path_update, .path = plan.path});
  return success();
}

Error SessionBase::path_error() const {
  const std::string interface = path_ ? path_->route().link.name : "?";
  return {ExitCode::peer_unreachable,
          "prove the data path to " + peer_name_ + ", UDP port " + std::to_string(peer_data_port_) + " over " +
              interface,
          "no frame of full size came back",
          "let UDP ports " + std::to_string(peer_data_port_) + " (there) and " + std::to_string(data_->data_port) +
              " (here) through the firewalls, check that " + interface +
              " is the right interface (--iface) and that both MTUs are real" +
              (has_fragments_ ? "; leave out --fragment, or wait 30 s: a reassembly memory that is full takes no fragment" : "")};
}

Task<Result<void>> SessionBase::prove() {
  set_phase(Phase::proving_path);
  engine_->push(CommandKind::prove_path);
  const auto begun = Clock::now();
  bool is_peer_ready = false;
  while (!is_path_proven_ || !is_peer_ready) {
    if (is_interrupted_) co_return Error{ExitCode::interrupted, "prove the data path", "interrupted", ""};
    engine_->flush();
    ONEHOP_CO_TRYV(follow_path());
    Event event;
    while (engine_->pop(event)) {
      if (event.kind == EventKind::path_proven) {
        is_path_proven_ = true;
        channel_->send(PathReady{static_cast<std::uint32_t>(std::min<std::uint64_t>(event.value, 65'535))});
      }
      auto fault = fault_of(event, {});
      host_.on_event(event);
      if (fault) co_return std::move(*fault);
    }
    if (auto message = channel_->pop()) {
      if (auto verdict = verdict_of(*message, "prove the data path")) {
        // The peer saw first what we see as well; ours names our ports and interface.
        if (verdict->code == ExitCode::peer_unreachable) co_return path_error();
        co_return std::move(*verdict);
      }
      if (!std::holds_alternative<PathReady>(*message))
        co_return violation("the peer sent a message out of turn", "prove the data path");
      is_peer_ready = true;
      continue;
    }
    if (channel_->end() != ChannelEnd::open) co_return ended("prove the data path");
    // Once our own frames pass, the peer's word may be a retransmission of TCP's away.
    if (Clock::now() - begun >= (is_path_proven_ ? limits_.silent : limits_.prove)) co_return path_error();
    co_await channel_->wait_activity(pause_for(limits_.poll_short));
  }
  engine_->push(CommandKind::start);
  co_return success();
}

Result<void> SessionBase::follow_path() {
  if (!path_ || !engine_) return success();
  while (const auto update = path_->poll(monotonic_now())) {
    // Before all else, and TCP as well: whoever sends on a link without a carrier makes the kernel ask for the neighbour in vain.
    if (channel_) channel_->hold(!update->is_link_up);
    if (update->is_link_up) {
      ONEHOP_TRYV(host_.on_path(path_->route().link.name, *update));
    }
    Command command{.kind = CommandKind::path_update};
    command.path = *update;
    engine_->push(command);
  }
  news_->arm();
  return success();
}

Nanos SessionBase::pause_for(Nanos pause) const noexcept {
  return path_ ? std::min(pause, path_->due_in(monotonic_now())) : pause;
}

std::optional<Error> SessionBase::fault_of(const Event& event, const file::Manifest& manifest) {
  const std::string step = "transfer files with " + peer_name_;
  switch (event.kind) {
    case EventKind::path_dead: return path_error();
    case EventKind::feedback_silent:
      if (path_ && !path_->update().is_link_up)
        return Error{ExitCode::timed_out, step, path_->route().link.name + " was down or gone for the session's limit",
                     "Bring it up, then run the same command again to go on"};
      return Error{ExitCode::timed_out, step, "nothing came back on the data path for the session's limit",
                   "Look at the link and at the other machine"};
    case EventKind::stalled:
      return Error{ExitCode::timed_out, step, "no file data has come through for the session's limit, although " + peer_name_ + " still answers",
                   "Check that both MTUs are real, and the disk of the receiving machine; run the same command again to go on"};
    case EventKind::protocol_error:
      return violation("the peer broke the data protocol: " + std::string{wire::to_string(static_cast<wire::Violation>(event.value))}, step);
    case EventKind::port_failed: {
      const std::string io = data_ ? data_->io : "data";
      return Error{ExitCode::io_unavailable, "use the " + io + " port", errno_text(static_cast<int>(event.value)),
                   "Run the same command again to go on", static_cast<int>(event.value)};
    }
    case EventKind::port_refused:
      host_.on_notice("this machine refuses the frames that we send to " + peer_name_ + ", UDP port " + std::to_string(peer_data_port_) +
                      " (" + errno_text(static_cast<int>(event.value)) + "): a firewall rule for its output (`nft list ruleset`), an IPsec policy "
                      "or a prohibit route. Let them through; the transfer goes on then");
      return std::nullopt;
    case EventKind::peer_heard:
      channel_->note_life();
      return std::nullopt;
    case EventKind::closed: return Error{ExitCode::internal_error, step, "the engine stopped on its own", ""};
    case EventKind::file_message:
      if (event.block.kind != BlockKind::failed) return std::nullopt;
      is_file_side_dead_ = true;
      return file_error(event.block, manifest);
    default: return std::nullopt;
  }
}

Task<bool> SessionBase::wait_event(EventKind kind, std::optional<BlockKind> block, Nanos limit) {
  const auto deadline = Clock::now() + limit;
  for (;;) {
    engine_->flush();
    Event event;
    while (engine_->pop(event)) {
      host_.on_event(event);
      if (event.kind == kind && (!block || event.block.kind == *block)) co_return true;
      if (event.kind == EventKind::file_message && event.block.kind == BlockKind::failed) is_file_side_dead_ = true;
      if (event.kind == EventKind::closed || (block && is_file_side_dead_)) co_return false;
    }
    if (engine_->is_closed() || Clock::now() >= deadline) co_return false;
    // What the peer still says has no part in the end of the session.
    while (channel_->pop()) {}
    co_await channel_->wait_turn(limits_.poll_short);
  }
}

void SessionBase::drop_data() {
  if (data_) host_.stop_data();
  engine_.reset();
  data_.reset();
  if (news_) news_->close();
  news_.reset();
  path_.reset();
  if (channel_) channel_->hold(false);  // nobody is left to tell that the link is up
  is_path_proven_ = is_file_side_dead_ = false;
}

Task<void> SessionBase::wind_down(const Error* error) {
  const bool is_engine_running = engine_ && !engine_->is_closed();
  if (error != nullptr && is_engine_running && !is_file_side_dead_) {
    engine_->push(CommandKind::checkpoint);
    if (role_ == Role::receiver)
      (void)co_await wait_event(EventKind::file_message, BlockKind::checkpointed, limits_.checkpoint);
  }
  if (error != nullptr && channel_) {
    if (error->code == ExitCode::interrupted && is_interrupted_ && !end_reason_) channel_->send(Bye{ExitCode::interrupted});
    else if (!has_peer_verdict_) channel_->send(Failure{error->code, error->message()});
  }
  if (is_engine_running) {
    engine_->push(CommandKind::finish);
    (void)co_await wait_event(EventKind::closed, std::nullopt, limits_.engine_stop);
  }
  drop_data();
  if (channel_) co_await channel_->close();
}

}  // namespace onehop::plane
