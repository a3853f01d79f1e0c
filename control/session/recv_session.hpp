// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// RecvSession: one transfer to this end: a RecvMachine on an authenticated channel. Internal to
// control/session: RecvServer (listener.hpp) makes one when nothing else is under way.
#pragma once

#include "control/session/awaited.hpp"
#include "control/session/recv_machine.hpp"
#include "control/session/session_shell.hpp"

namespace onehop::session {

class RecvSession final : public SessionShell {
 public:
  RecvSession(asio::io_context& io, const RecvOptions& options, RecvHost& host,
              std::shared_ptr<Channel> channel, const SenderToken& sender);

  [[nodiscard]] Task<SessionEnd> run();
  [[nodiscard]] const RecvMachine& machine() const noexcept { return machine_; }
  /// is_of: its sender proved to be this one.
  [[nodiscard]] bool is_of(const SenderToken& sender) const noexcept {
    return sender == sender_ && sender != SenderToken{};
  }
  [[nodiscard]] Task<bool> is_alive() { return channel_->answers(answer_limit_); }
  /// replace ends a session whose sender is gone and came back: what arrived is kept, and nobody is
  /// left to be told.
  void replace();
  [[nodiscard]] bool is_replaced() const noexcept { return is_replaced_; }

 private:
  void perform_own(Action& action) override;
  void take_answer() override;

  RecvHost& recv_host_;
  RecvMachine machine_;
  const Nanos answer_limit_;
  const SenderToken sender_;
  Awaited<Decision> decision_;
  bool is_replaced_ = false;
};

}  // namespace onehop::session
