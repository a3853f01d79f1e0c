// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/session/session_machine.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "engine/base/display_name.hpp"
#include "engine/wire/frame.hpp"

namespace onehop::session {

namespace {
// Less is read before anybody asks why nothing is sent.
constexpr std::uint64_t held_told_bytes = 1'000'000'000;
constexpr const char* stream_hint = "Nothing of a stream is kept: send it again from its beginning";
}  // namespace

void SessionMachine::enter(State state, Instant deadline, std::string step) {
  state_ = state;
  deadline_ = deadline;
  step_ = std::move(step);
}

std::optional<Action> SessionMachine::pop_action() {
  if (actions_.empty()) return std::nullopt;
  Action action = std::move(actions_.front());
  actions_.pop_front();
  return action;
}

// --- inputs

void SessionMachine::on_message(Instant now, Message message) {
  if (is_winding_down()) return;  // what the peer still says has no part in the end of the session
  const auto taken =
      state_ == State::proving ? take_proof(now, message) : take_message(now, message);
  if (!taken) fail(now, taken.error());
}

void SessionMachine::on_event(Instant now, const Event& event) {
  ++events_of_turn_;
  if (event.kind == EventKind::closed) threads_.engine = EngineState::closed;
  if (state_ == State::checkpointing && threads_.engine == EngineState::closed)
    return tell_and_finish(now);
  if (state_ == State::finishing && threads_.engine == EngineState::closed) return conclude();
  if (is_winding_down()) return;
  // Of two rounds at once, as after a fall-back whose first round ended meanwhile, each reports.
  const bool is_known = state_ == State::proving && proof_.is_proven();
  if (is_known && (event.kind == EventKind::path_proven || event.kind == EventKind::path_dead))
    return;
  if (state_ == State::proving && event.kind == EventKind::path_proven) {
    proof_.note_proven();
    const auto frame_bytes =
        static_cast<std::uint32_t>(std::min<std::uint64_t>(event.value, 65'535));
    send(PathReady{frame_bytes});
    // Once our own frames pass, the peer's word may be a retransmission of TCP's away.
    deadline_ = now + limits_.silent;
    return end_proof(now);
  }
  if (state_ == State::proving && event.kind == EventKind::path_dead) return end_round(now);
  if (const auto taken = take_event(now, event); !taken) fail(now, taken.error());
}

void SessionMachine::on_file_event(Instant now, const FileEvent& event) {
  ++events_of_turn_;
  threads_.is_file_side_dead =
      threads_.is_file_side_dead || std::holds_alternative<FileFailed>(event);
  if (state_ == State::checkpointing &&
      (threads_.is_file_side_dead || std::holds_alternative<CheckpointMade>(event)))
    return tell_and_finish(now);
  if (is_winding_down()) return;
  if (const auto taken = take_file_event(now, event); !taken) fail(now, taken.error());
}

void SessionMachine::on_channel_end(Instant now, ChannelEnd end, const std::string& cause) {
  if (is_winding_down()) return;
  if (is_outcome_certain()) return wind_down(now, std::nullopt);
  fail(now, ended(end, cause));
}

void SessionMachine::on_data_opened(Instant now, const Result<DataOpened>& opened,
                                    const SessionId& fresh_id) {
  if (!opened) return fail(now, opened.error());
  data_ = opened.value();
  data_->frame_body_max_bytes = std::min(data_->frame_body_max_bytes, frame_body_bytes_max);
  if (data_->data_port == 0 || data_->frame_body_max_bytes < frame_body_bytes_min)
    return fail(now, {ExitCode::io_unavailable, "open the data port",
                      "the interface's MTU is too small", "Raise the MTU to 1280 or more"});
  on_opened(now, fresh_id);
}

void SessionMachine::start_data(StartData start) {
  path_.peer_port = start.peer_port;
  path_.has_fragments = start.terms.has_fragments;
  act(std::move(start));
  enter(State::starting_data, Instant::max(), "start the data path");
}

void SessionMachine::on_data_started(Instant now, const Result<std::string>& interface) {
  if (!interface) return fail(now, interface.error());
  path_.interface = interface.value();
  if (threads_.engine == EngineState::none) threads_.engine = EngineState::running;
  on_started(now);
}

void SessionMachine::on_path(const std::string& interface, const PathUpdate& update) {
  path_.interface = interface;
  path_.is_link_up = update.is_link_up;
  proof_.note_link(path_.is_link_up);
  act(ChangePath{update});
}

void SessionMachine::end_with(Error why) {
  if (is_interrupted_) return;
  end_reason_ = std::move(why);
  is_interrupted_ = true;
}

void SessionMachine::tick(Instant now) {
  if (is_over()) return;
  if (is_winding_down()) {
    if (now < deadline_) return;
    return state_ == State::checkpointing ? tell_and_finish(now) : conclude();
  }
  flush();
  if (is_interrupted_ && state_ != State::completing) {
    if (is_outcome_certain()) return wind_down(now, std::nullopt);
    std::string hint;
    if (state_ == State::transferring)
      hint = role_ == Role::sender ? again_hint() : "What arrived was kept; send again to go on";
    return fail(now, {ExitCode::interrupted, step_, "interrupted", std::move(hint)});
  }
  advance(now);
  if (std::exchange(events_of_turn_, 0) > events_crowded)
    poll_pause_ = std::min(poll_pause_, limits_.poll_short);
  if (state_ == State::proving && data_ && !data_->other_io.empty() &&
      proof_.is_fall_back_due(now, heard_at_))
    return end_round(now);
  if (is_winding_down() || now < deadline_) return;
  if (is_outcome_certain()) return wind_down(now, std::nullopt);
  if (state_ == State::proving && !proof_.is_proven()) return end_round(now);
  fail(now, state_ == State::proving ? path_error() : deadline_error());
}

// --- outputs

Instant SessionMachine::next_wakeup(Instant now) const noexcept {
  Nanos pause = 1h;
  if (state_ == State::transferring) pause = poll_pause_;
  if (state_ == State::proving || state_ >= State::restarting) pause = limits_.poll_short;
  return std::min(deadline_, now + pause);
}

bool SessionMachine::can_take_message() const noexcept {
  if (is_winding_down() || state_ == State::completing) return true;
  return !is_interrupted_;
}

// --- proof of the data path

void SessionMachine::begin_proof(Instant now) {
  learn(Phase::proving_path);
  proof_.begin(now, path_.is_link_up);
  begin_round(now);
}

void SessionMachine::begin_round(Instant now) {
  proof_.begin_round(now, path_.is_link_up);
  act(AskPeer{});
  command(CommandKind::prove_path);
  enter(State::proving, now + limits_.prove, "prove the data path");
}

// end_round: the engine's PINGs were not answered. While a link is down the channel's own limit of
// silence ends the session.
void SessionMachine::end_round(Instant now) {
  const auto verdict = proof_.end_round(now, heard_at_, !data_->other_io.empty());
  if (verdict == PathProof::Verdict::dead) return fail(now, path_error());
  if (verdict == PathProof::Verdict::fall_back) {
    act(FallBack{});
    data_->io = std::exchange(data_->other_io, {});
  }
  begin_round(now);
}

Result<void> SessionMachine::take_proof(Instant now, const Message& message) {
  if (auto verdict = verdict_of(message)) {
    // The peer saw first what we see as well; ours names our ports and interface.
    if (verdict->code == ExitCode::peer_unreachable) return path_error();
    return std::move(*verdict);
  }
  if (!std::holds_alternative<PathReady>(message)) return out_of_turn(message);
  proof_.note_peer_ready();
  end_proof(now);
  return success();
}

void SessionMachine::end_proof(Instant now) {
  if (!proof_.is_over()) return;
  command(CommandKind::start);
  learn(Phase::transferring);
  on_proven(now);
}

// --- the end

void SessionMachine::fail(Instant now, Error why) {
  if (!is_winding_down()) wind_down(now, end_reason_ ? *end_reason_ : std::move(why));
}

void SessionMachine::wind_down(Instant now, std::optional<Error> error) {
  flush();  // the peer can keep only blocks whose digests it has
  error_ = std::move(error);
  if (error_ && data_ && data_->is_stream && proof_.is_over()) {
    // The peer's text may say so.
    error_->hint = error_->cause.find(stream_hint) == std::string::npos ? stream_hint : "";
  }
  if (error_ && threads_.engine == EngineState::running && !threads_.is_file_side_dead) {
    command(CommandKind::checkpoint);
    if (role_ == Role::receiver)
      return enter(State::checkpointing, now + limits_.checkpoint, "keep what arrived");
  }
  tell_and_finish(now);
}

void SessionMachine::tell_and_finish(Instant now) {
  if (error_ && error_->code == ExitCode::interrupted && is_interrupted_ && !end_reason_)
    send(Bye{ExitCode::interrupted});
  else if (error_ && !has_peer_verdict_)
    send(Failure{error_->code, error_->message()});
  if (threads_.engine == EngineState::none || threads_.engine == EngineState::closed)
    return conclude();
  finish_engine();
  enter(State::finishing, now + limits_.engine_stop, "stop the engine");
}

void SessionMachine::finish_engine() {
  if (threads_.engine == EngineState::finishing || threads_.engine == EngineState::closed) return;
  threads_.engine = EngineState::finishing;
  command(CommandKind::finish);
}

void SessionMachine::conclude() {
  drop_data();
  state_ = State::over;
}

void SessionMachine::drop_data() {
  if (data_) act(StopData{});
  data_.reset();
  threads_ = {};
  path_.is_link_up = true;
}

// --- outcomes and errors

void SessionMachine::note_held(const VolumeState& volume) {
  std::uint64_t bytes = 0;
  for (std::uint32_t entry = 0; entry < volume.answer->held.size(); ++entry)
    for (const BlockRun& run : volume.answer->held[entry])
      bytes += std::min(run.end * block_bytes, volume.manifest->files[entry].size) -
               run.first * block_bytes;
  if (bytes > 0) learn(SeemsHeld{bytes});
  if (bytes >= held_told_bytes)
    learn(Notice{
        fmt::format("{:.1f} GB seem to be there already: {}", static_cast<double>(bytes) / 1e9,
                    role_ == Role::receiver ? "they are read while the rest comes"
                                            : "the receiver reads them while the rest is sent")});
}

bool SessionMachine::take_packed(const RecordRun& run) {
  VolumeState* const volume = volumes_.find(run.pack);
  if (volume == nullptr) return false;
  const auto entries = volume->take_packed(run);
  for (std::uint32_t i = 0; i < entries.size(); ++i)
    report_done(*volume,
                {.file = volume->first_file + entries[i],
                 .root = run.name_fault != 0 ? Digest{} : volume->packed_root(run.first + i),
                 .outcome = volume->outcome_of(run, run.first + i),
                 .name_number = run.name_number,
                 .is_small = true,
                 .name_fault = run.name_fault});
  return !entries.empty();
}

void SessionMachine::report_done(const VolumeState& volume, const FileDone& done) {
  learn(Report{done, volume.manifest, done.file - volume.first_file});
  const bool is_kept =
      done.outcome == FileOutcome::kept || done.outcome == FileOutcome::not_compared;
  if (!is_kept && is_named(done.outcome)) return;
  Tally& tally = is_kept ? missing_.kept : missing_.unnamed;
  if (tally.total++ > 0) return;
  tally.first = "'" + display_name(volume.entry(done.file).name) + "'";
  if (is_kept)
    tally.first +=
        std::string{role_ == Role::sender ? " exists there" : " exists"} + ", was kept, and " +
        (done.outcome == FileOutcome::kept ? "is not the same" : "could not be compared");
  else
    tally.first += ": " + name_fault_text(done.outcome, done.name_fault);
}

void SessionMachine::report_kept(const VolumeState& volume) {
  const bool has_pack = list::has_pack(*volume.manifest);
  const list::Answer& answer = *volume.answer;
  auto fault = answer.name_faults.begin();
  for (std::uint32_t i = 0; i < answer.actions.size(); ++i)
    if (!has_digests(answer.actions[i])) {
      FileDone done = kept_by(answer.actions[i], volume.first_file + i);
      done.is_small = has_pack && list::is_packable(volume.manifest->files[i]);
      if (done.outcome == FileOutcome::name_refused) done.name_fault = *fault++;
      report_done(volume, done);
    }
}

void SessionMachine::drop_over() {
  while (auto over = volumes_.pop_over()) learn(VolumeOver{std::move(over)});
}

Error SessionMachine::violation(std::string cause) const {
  return {ExitCode::internal_error, step_, std::move(cause),
          "Both ends should run the same version"};
}

Error SessionMachine::out_of_turn(const Message& message) const {
  return violation("the peer sent " + std::string{name_of(type_of(message))} + " out of turn");
}

Error SessionMachine::deadline_error() const {
  return {ExitCode::timed_out, step_, peer_name_ + " did not answer in time",
          "Look at the link and at the other machine"};
}

Error SessionMachine::ended(ChannelEnd end, const std::string& cause) const {
  if (end == ChannelEnd::silent)
    return {ExitCode::timed_out, step_, cause, "Look at the link and at the other machine"};
  if (end == ChannelEnd::violation) return violation(cause);
  return {ExitCode::interrupted, step_, peer_name_ + " went away: " + cause,
          "What arrived was kept. " + again_hint()};
}

/// A peer's remedies are of its own command line.
std::string SessionMachine::whose_options(std::string_view text) const {
  if (text.find("--") == std::string_view::npos) return {};
  return std::string{"The options that it names are of `onehop "} +
         (role_ == Role::sender ? "recv" : "send") + "` there";
}

std::optional<Error> SessionMachine::verdict_of(const Message& message) {
  // A peer's text reaches a terminal only through the one escaping function.
  if (const auto* refuse = std::get_if<Refuse>(&message)) {
    has_peer_verdict_ = true;
    const ExitCode code =
        refuse->code == ExitCode::authentication_failed ? refuse->code : ExitCode::refused_by_peer;
    return Error{code, step_, peer_name_ + " refused: " + display_name(refuse->text),
                 whose_options(refuse->text)};
  }
  if (const auto* failure = std::get_if<Failure>(&message)) {
    has_peer_verdict_ = true;
    return Error{exit_code_for_failure_of_peer(failure->code), step_,
                 peer_name_ + " gave up: " + display_name(failure->text),
                 whose_options(failure->text)};
  }
  if (const auto* bye = std::get_if<Bye>(&message)) {
    has_peer_verdict_ = true;
    if (bye->code == ExitCode::done)
      return violation("the peer ended the session before it was complete");
    return Error{exit_code_for_failure_of_peer(bye->code), step_, peer_name_ + " was interrupted",
                 "What arrived was kept. " + again_hint()};
  }
  return std::nullopt;
}

std::string SessionMachine::name_of_file(std::uint32_t file) {
  const VolumeState* const volume = volumes_.find(file);
  return volume != nullptr && volume->has_entry(file) ? display_name(volume->entry(file).name)
                                                      : "a file";
}

}  // namespace onehop::session
