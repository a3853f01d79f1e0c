// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// SessionMachine: what both ends of a session do alike, without I/O. SendMachine and RecvMachine
// are its two halves.
//
//   message, engine event, answer, end of the channel ─▶ ┌─────────┐ ─▶ actions, in order
//                                               tick() ─▶ │ machine │ ─▶ next_wakeup()
//                                                         └─────────┘
//
// It calls no socket, no TLS, no clock and no host. Each input comes with the time; each output is
// an Action that the shell (session_shell.hpp) performs in order. So tests and the fuzzer play both
// machines in virtual time. One thread.
//
//   sender                                  receiver
//   greeting, waiting_turn                  (the listener reads the Hello)
//   opening_data, offering                  awaiting_offer, reading_offer
//   awaiting_accept                         deciding, opening_data, starting_data
//   starting_data                           awaiting_data_ready
//   proving                                 proving
//   transferring ─▶ restarting ─▶ again     transferring ─▶ restarting ─▶ awaiting_offer
//   completing
//   both, at any time: an Error ─▶ checkpointing ─▶ finishing ─▶ over
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "control/session/liveness.hpp"
#include "control/session/path_proof.hpp"
#include "control/session/session.hpp"
#include "control/session/volume.hpp"

namespace onehop::session {

using SessionId = std::array<std::byte, crypto::session_id_bytes>;

// --- Actions. Besides these a Message goes to the peer, a Command to the engine, a FileCommand to
// the file thread, an Accepted and each SessionFact to the host.
struct OpenData {};  ///< ask the host for its port; answered by on_data_opened()
/// StartData: derive the keys, find the path, have the host start its threads; answered by
/// on_data_started().
struct StartData {
  DataTerms terms;
  std::uint16_t peer_port = 0;
};
/// AskPeer: ask for a sign of life on the control connection (note_heard()).
struct AskPeer {};
/// FallBack: have the host's port go over to the other one that it has (DataOpened::other_io).
struct FallBack {};
struct StopData {};    ///< the engine has closed or never ran: have the host join its threads
struct WantVolume {};  ///< sending; answered by SendMachine::on_volume()
struct OfferAgain {    ///< sending; answered by SendMachine::on_offered_again()
  std::vector<Unsettled> volumes;
};
struct Consider {  ///< receiving; answered by RecvMachine::on_decision()
  std::shared_ptr<const OfferedVolume> offer;
};
struct TakeOffered {  ///< receiving: have the host take a volume; an Error of it goes to fail()
  std::shared_ptr<const OfferedVolume> offer;
};
/// ChangePath: while the link is down nothing is sent on the connection; tell the host where it is
/// up, then the engine.
struct ChangePath {
  PathUpdate update;
};
using Action = std::variant<Message, Command, FileCommand, SessionFact, Accepted, OpenData,
                            StartData, ChangePath, AskPeer, FallBack, StopData, WantVolume,
                            OfferAgain, Consider, TakeOffered>;

/// file_error: what a failure of the file side is to the user. `name` is for people.
[[nodiscard]] Error file_error(const FileFailed& failed, const std::string& name);

class SessionMachine {
 public:
  SessionMachine(const SessionMachine&) = delete;
  SessionMachine& operator=(const SessionMachine&) = delete;
  virtual ~SessionMachine() = default;

  // --- inputs
  virtual void start(Instant now) = 0;
  /// on_message takes the peer's next message. Only while can_take_message().
  void on_message(Instant now, Message message);
  void on_event(Instant now, const Event& event);
  /// on_file_event: only while can_take_file_event().
  void on_file_event(Instant now, const FileEvent& event);
  /// on_channel_end: the connection has ended, and every message of it was taken.
  void on_channel_end(Instant now, ChannelEnd end, const std::string& cause);
  /// `fresh_id` was never used before: it separates the keys of this offer from all others.
  void on_data_opened(Instant now, const Result<DataOpened>& opened, const SessionId& fresh_id);
  /// `interface` is the one that leads to the peer.
  void on_data_started(Instant now, const Result<std::string>& interface);
  void on_path(const std::string& interface, const PathUpdate& update);
  /// note_heard: when the peer was last heard on the control connection.
  void note_heard(Instant at) noexcept { heard_at_ = at; }
  /// fail ends the session in order because of `why`, which the peer is told.
  void fail(Instant now, Error why);
  /// interrupt asks for an orderly end (exit code 7) at the next tick.
  void interrupt() noexcept { is_interrupted_ = true; }
  /// end_with asks for an orderly end with `why` at the next tick. An interrupt goes first.
  void end_with(Error why);
  /// tick comes after the other inputs of a turn, and when next_wakeup() is there.
  void tick(Instant now);

  // --- outputs
  [[nodiscard]] std::optional<Action> pop_action();
  [[nodiscard]] Instant next_wakeup(Instant now) const noexcept;
  [[nodiscard]] virtual bool can_take_message() const noexcept;
  /// can_take_file_event: a sender's file thread reads ahead; its roots wait until data flows.
  [[nodiscard]] bool can_take_file_event() const noexcept {
    return role_ == Role::receiver || state_ >= State::transferring;
  }
  /// has_more_to_send: the next tick sends one more large message. Call it when the connection has
  /// room.
  [[nodiscard]] virtual bool has_more_to_send() const noexcept { return false; }
  /// wants_keepalive: this end said all it had to say and waits for the answer
  /// (Liveness::is_early_keepalive_due()).
  [[nodiscard]] virtual bool wants_keepalive() const noexcept = 0;
  /// follows_path: changes of the path matter now.
  [[nodiscard]] bool follows_path() const noexcept {
    return state_ == State::proving || state_ == State::transferring || state_ == State::restarting;
  }
  [[nodiscard]] Role role() const noexcept { return role_; }
  [[nodiscard]] bool is_winding_down() const noexcept { return state_ >= State::checkpointing; }
  [[nodiscard]] bool is_over() const noexcept { return state_ == State::over; }
  /// end: valid when it is over. Without an Error every file came to its outcome.
  [[nodiscard]] SessionEnd end() const;
  [[nodiscard]] bool has_error() const noexcept { return error_.has_value(); }
  /// context of the offer under way, from which its keys are derived.
  [[nodiscard]] const crypto::ExporterContext& context() const noexcept { return context_; }

 protected:
  enum class State : std::uint8_t {
    greeting,
    waiting_turn,
    opening_data,
    offering,
    awaiting_accept,
    awaiting_offer,
    reading_offer,
    deciding,
    starting_data,
    awaiting_data_ready,
    proving,
    transferring,
    restarting,
    completing,
    checkpointing,  // the receiver's file side makes durable what arrived
    finishing,      // the engine's loop ends
    over,
  };
  SessionMachine(const SessionLimits& limits, Role role, std::string peer_name)
      : limits_{limits}, role_{role}, peer_name_{std::move(peer_name)} {}

  // --- what the halves do. An Error ends the session.
  [[nodiscard]] virtual Result<void> take_message(Instant now, Message& message) = 0;
  [[nodiscard]] virtual Result<void> take_event(Instant now, const Event& event) = 0;
  [[nodiscard]] virtual Result<void> take_file_event(Instant now, const FileEvent& event) = 0;
  /// advance does what a state does by itself.
  virtual void advance(Instant now) = 0;
  virtual void on_opened(Instant now, const SessionId& fresh_id) = 0;
  virtual void on_started(Instant now) = 0;
  virtual void on_proven(Instant now) = 0;
  [[nodiscard]] virtual Error deadline_error() const;
  /// again_hint is what to do so that an interrupted transfer goes on.
  [[nodiscard]] virtual std::string again_hint() const {
    return "Run the same command again to go on";
  }
  /// is_outcome_certain: every file is verified, whatever happens to the connection now.
  [[nodiscard]] virtual bool is_outcome_certain() const noexcept = 0;
  /// flush sends what was gathered in this turn.
  virtual void flush() {}

  // --- what they share
  void enter(State state, Instant deadline, std::string step);
  void act(Action action) { actions_.push_back(std::move(action)); }
  void send(Message message) {
    actions_.emplace_back(std::in_place_type<Message>, std::move(message));
  }
  void learn(SessionFact fact) {
    actions_.emplace_back(std::in_place_type<SessionFact>, std::move(fact));
  }
  void command(CommandKind kind) { act(Command{.kind = kind}); }
  void start_data(StartData start);
  void begin_proof(Instant now);
  /// finish_engine asks the engine, once, to leave its loop.
  void finish_engine();
  /// wind_down ends the session in order: what arrived is made durable, the peer is told, the
  /// engine stops, the host joins its threads. Every step has a limit.
  void wind_down(Instant now, std::optional<Error> error);
  /// drop_data has the host stop, and forgets the data path; the engine has closed or never ran.
  void drop_data();
  /// report_done tells the host what became of a file. One that was kept makes the session end
  /// with `verification_failed`, one that has no name there with `partly_done`.
  void report_done(const VolumeState& volume, const FileDone& done);
  /// report_kept does so for all that the receiver wants nothing of.
  void report_kept(const VolumeState& volume);
  /// take_packed marks and reports the records of `done`; false: it has some that are done, or are
  /// none.
  [[nodiscard]] bool take_packed(const RecordRun& run);
  /// note_held tells of what the receiver says it holds of an answered volume.
  void note_held(const VolumeState& volume);
  /// drop_over forgets volumes that are over.
  void drop_over();
  /// verdict_of gives the Error of a Refuse, Failure or Bye, and nothing for other messages.
  [[nodiscard]] std::optional<Error> verdict_of(const Message& message);
  [[nodiscard]] std::string whose_options(std::string_view text) const;
  /// fault_of turns an event that ends the session into an Error.
  [[nodiscard]] std::optional<Error> fault_of(const Event& event);
  [[nodiscard]] std::optional<Error> fault_of(const FileEvent& event);
  [[nodiscard]] Error violation(std::string cause) const;
  [[nodiscard]] Error out_of_turn(const Message& message) const;

  const SessionLimits limits_;
  const Role role_;
  const std::string peer_name_;  // for errors: address, or host and address
  State state_ = State::greeting;
  std::string step_;  // what the state is at, for errors
  Instant deadline_ = Instant::max();
  /// So many events at one look: a ring, which has room for 2048 or 4096, would be full before the
  /// next. Small files that are compared bring two each.
  static constexpr std::size_t events_crowded = 512;
  std::size_t events_of_turn_ = 0;
  Nanos poll_pause_ = 1h;  // until the next look at the engine's events
  std::optional<DataOpened> data_;
  Volumes volumes_;
  crypto::ExporterContext context_;
  enum class EngineState : std::uint8_t { none, running, finishing, closed };
  /// The threads that move the files.
  struct {
    EngineState engine = EngineState::none;
    bool is_file_side_dead = false;  // it failed: it will not answer a checkpoint
  } threads_;
  bool is_interrupted_ = false;
  bool has_peer_verdict_ = false;  // the peer ended the session: it need not be told

 private:
  /// Tally counts entries of which one end does not have what the other one offered.
  struct Tally {
    std::size_t total = 0;
    std::string first;  ///< what became of the first of them, for people
  };
  [[nodiscard]] Result<void> take_proof(Instant now, const Message& message);
  void begin_round(Instant now);
  void end_round(Instant now);
  void end_proof(Instant now);
  void tell_and_finish(Instant now);
  void conclude();
  [[nodiscard]] Error path_error() const;
  [[nodiscard]] Error ended(ChannelEnd end, const std::string& cause) const;
  [[nodiscard]] SessionEnd end_of(ExitCode code, const Tally& tally, const char* hint) const;
  [[nodiscard]] std::string name_of_file(std::uint32_t file);

  std::deque<Action> actions_;
  std::optional<Error> error_, end_reason_;  // of the end; of an end that we were asked for
  /// What errors say of the data path.
  struct {
    std::string interface = "?";
    std::uint16_t peer_port = 0, port_elsewhere = 0;
    bool is_link_up = true, has_fragments = false;
  } path_;
  PathProof proof_;
  Instant heard_at_{};
  struct {
    Tally kept;     // offered files whose names keep something else
    Tally unnamed;  // entries whose names the receiver's file system cannot hold
  } missing_;
};

}  // namespace onehop::session
