// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// SendSession: one transfer from this end, from the peer's name to the last file verified there:
// connect, TLS, then SendMachine.
//
// It owns the control connection on the given io_context (the session thread); the host owns
// engine, files and ports. It sends no file name before the peer has proven that it knows the code.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "control/session/awaited.hpp"
#include "control/session/channel/connect.hpp"
#include "control/session/send_machine.hpp"
#include "control/session/session_shell.hpp"

namespace onehop::session {

class SendSession final : private SessionShell, public std::enable_shared_from_this<SendSession> {
 public:
  /// The host must outlive the session, and the io_context must run on the thread on which the host
  /// may be called.
  SendSession(asio::io_context& io, SendOptions options, const PairingCode& code, SendHost& host);
  /// start returns at once; `on_end` is called once, on the session thread, after stop_data().
  void start(std::function<void(const SessionEnd&)> on_end);
  /// interrupt ends the session in order, exit code 7. Any thread; not from a signal handler.
  void interrupt();
  /// unproven counts the connections that may have been guesses at the code, with those of
  /// SendOptions::unproven. On the session thread, after the end.
  [[nodiscard]] unsigned unproven() const noexcept { return connect_state_.unproven; }

 private:
  Task<SessionEnd> run();
  void perform_own(Action& action) override;
  void take_answer() override;

  SendHost& send_host_;
  const SendOptions send_options_;
  const Result<std::shared_ptr<const TlsContext>> tls_;
  ConnectState connect_state_;
  std::optional<SendMachine> machine_;
  Awaited<list::Volume> volume_;
};

}  // namespace onehop::session
