// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// SessionShell: the I/O around a SessionMachine: the connection, the rings of engine and file
// thread, the path and the host. Internal to control/session; session thread only.
//
//   turn: events of engine and files, path, messages, end of connection, tick() ─▶ the actions
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

/// Bytes that may be unsent on the connection before the session waits for the peer to read.
inline constexpr std::size_t unsent_bytes_max = 4U << 20;
/// Commands that may wait for room in a ring before the session must stop reading its
/// control connection.
inline constexpr std::size_t commands_waiting_max = 4096;
/// When to retry while commands wait for the ring. Longer: each retry passes at most a ring of 1024
/// digests, and a comparison gets no more. Shorter: wake-ups while the engine sleeps.
inline constexpr Nanos command_retry_pause = 2ms;

class SessionShell {
 public:
  SessionShell(const SessionShell&) = delete;
  SessionShell& operator=(const SessionShell&) = delete;

  /// interrupt asks for an orderly end (exit code 7).
  void interrupt();
  /// end_with asks for an orderly end with `why`, which the session reports to the peer.
  void end_with(Error why);

 protected:
  SessionShell(asio::io_context& io, SessionHost& host, std::shared_ptr<Channel> channel,
               const SessionOptions& options)
      : io_{io}, host_{host}, channel_{std::move(channel)}, options_{options} {}
  ~SessionShell() = default;

  /// run plays the machine to the end of the session. When it returns, the data path has stopped
  /// and the channel is closed.
  [[nodiscard]] Task<SessionEnd> run(SessionMachine& machine);
  /// perform_own performs the actions of one role: WantVolume, Accepted, OfferAgain; Consider,
  /// TakeOffered.
  virtual void perform_own(Action& action) = 0;
  /// take_answer passes the machine an answer that came since the last turn.
  virtual void take_answer() {}
  using AnyCommand = std::variant<Command, FileCommand>;
  /// push_command passes a command to the engine or to the file thread as soon as that ring has
  /// room; without an engine it does nothing.
  void push_command(const AnyCommand& command);

  asio::io_context& io_;
  SessionHost& host_;
  std::shared_ptr<Channel> channel_;  ///< from run() on
  const SessionOptions options_;

 private:
  void turn();
  void perform_all();
  void perform(Action& action);
  /// postpone repeats an action later, if `error` says that the path to the peer is missing for
  /// now, as may happen while data flows. False: it is another error, or lasts too long.
  [[nodiscard]] bool postpone(const Error& error, Action action);
  void open_data();
  [[nodiscard]] Result<std::string> start_data(const StartData& start);
  void stop_data();
  void change_path(const PathUpdate& update);
  void flush_commands();
  /// watch_path wakes the session once at the next change of the path.
  void watch_path();
  [[nodiscard]] bool can_take_message() const;
  [[nodiscard]] Task<void> wait();

  SessionMachine* session_ = nullptr;  ///< while run() plays it
  std::uint16_t data_port_ = 0;
  std::optional<SessionRings> rings_;  ///< while there is an engine
  std::deque<AnyCommand> waiting_;     ///< until its ring has room
  std::optional<Action> postponed_;
  Instant postponed_until_{};
  std::optional<Instant> postponed_since_;
  std::optional<PathFollower> path_;
  // A duplicate of the path's fd, so that a change does not wait for the next poll: an AF_XDP
  // sender stops from the moment its link is back until it gets the update.
  std::optional<asio::posix::stream_descriptor> path_events_;
  std::shared_ptr<bool> is_path_watched_;  // shared with the pending wait
};

}  // namespace onehop::session
