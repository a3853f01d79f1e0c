// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// SessionShell: the I/O around a SessionMachine: the connection, the engine's rings, the path and
// the host. Internal to control/session; session thread only.
//
//   turn: engine events, path, messages, end of the connection, tick() ─▶ perform the actions
//   wait: until a message, a change of the path, a wake(), or next_wakeup()
#pragma once

#include <boost/asio/posix/stream_descriptor.hpp>

#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "control/session/channel/channel.hpp"
#include "control/session/channel/path_follower.hpp"
#include "control/session/session_machine.hpp"

namespace onehop::session {

/// What may wait unsent on the connection before the session waits for the peer to read.
inline constexpr std::size_t unsent_bytes_max = 4U << 20;
/// Commands that may wait for room in the engine's ring before the session must stop reading its
/// control connection.
inline constexpr std::size_t commands_waiting_max = 4096;
/// When to look at the ring again while commands wait. Longer: a ring of 1024 digests per look is
/// all that a comparison gets. Shorter: wake-ups while the engine sleeps.
inline constexpr Nanos command_retry_pause = 2ms;

class SessionShell {
 public:
  SessionShell(const SessionShell&) = delete;
  SessionShell& operator=(const SessionShell&) = delete;

  /// interrupt asks for an orderly end (exit code 7).
  void interrupt();
  /// end_with asks for an orderly end with `why`, which the peer is told.
  void end_with(Error why);

 protected:
  SessionShell(asio::io_context& io, SessionHost& host, std::shared_ptr<Channel> channel,
               const SessionOptions& options)
      : io_{io}, host_{host}, channel_{std::move(channel)}, options_{options} {}
  ~SessionShell() = default;

  /// run plays the machine to the end of the session; it has stopped the data path and closed the
  /// channel when it returns.
  [[nodiscard]] Task<SessionEnd> run(SessionMachine& machine);
  /// perform_own performs the actions of one half: WantVolume, Accepted, OfferAgain; Consider,
  /// TakeOffered.
  virtual void perform_own(Action& action) = 0;
  /// take_answer gives the machine an answer that came since the last turn.
  virtual void take_answer() {}
  /// push_command gives the engine a command as soon as its ring has room; nothing without engine.
  void push_command(const Command& command);

  asio::io_context& io_;
  SessionHost& host_;
  std::shared_ptr<Channel> channel_;  ///< from run() on
  const SessionOptions options_;

 private:
  void turn();
  void perform_all();
  void perform(Action& action);
  /// postpone has an action performed again, where `error` says that its way to the peer is gone
  /// for now, as it may be while data flows. False: it is another error, or lasts too long.
  [[nodiscard]] bool postpone(const Error& error, Action action);
  void open_data();
  [[nodiscard]] Result<std::string> start_data(const StartData& start);
  void stop_data();
  void change_path(const PathUpdate& update);
  void flush_commands();
  /// watch_path has the next change of the path wake the session, once.
  void watch_path();
  [[nodiscard]] bool can_take_message() const;
  [[nodiscard]] Task<void> wait();

  SessionMachine* session_ = nullptr;  ///< while run() plays it
  std::uint16_t data_port_ = 0;
  std::optional<EngineRings> rings_;  ///< while there is an engine
  std::deque<Command> waiting_;       ///< until the ring has room
  std::optional<Action> postponed_;
  Instant postponed_until_{};
  std::optional<Instant> postponed_since_;
  std::optional<PathFollower> path_;
  // A duplicate of the path's, so that a change does not wait for the next poll: an AF_XDP sender
  // stands still from the moment its link is back until it knows.
  std::optional<asio::posix::stream_descriptor> path_events_;
  std::shared_ptr<bool> is_path_watched_;  // also held by what waits
};

}  // namespace onehop::session
