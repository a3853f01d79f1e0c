// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// RecvSession: one transfer to this end: a RecvMachine on an authenticated channel. Internal to
// control/session: RecvServer (listener.hpp) makes one when it has room.
#pragma once

#include <utility>

#include "control/session/awaited.hpp"
#include "control/session/recv_machine.hpp"
#include "control/session/session_shell.hpp"
#include "engine/base/time.hpp"

namespace onehop::session {

class RecvSession final : public SessionShell {
 public:
  RecvSession(asio::io_context& io, const RecvOptions& options, RecvHost& host,
              std::shared_ptr<Channel> channel, const SenderToken& sender)
      : SessionShell{io, host, std::move(channel), options},
        recv_host_{host},
        machine_{options, channel_->peer()},
        sender_{sender},
        progress_timer_{io} {}

  [[nodiscard]] Task<SessionEnd> run() { return SessionShell::run(machine_); }
  [[nodiscard]] const RecvMachine& machine() const noexcept { return machine_; }
  /// is_of: the session's sender has this token, which is not zero.
  [[nodiscard]] bool is_of(const SenderToken& sender) const noexcept {
    return sender == sender_ && sender != SenderToken{};
  }
  [[nodiscard]] Task<bool> is_alive() { return channel_->answers(options_.limits.answer); }
  /// replace ends a session whose sender came back over another connection. What arrived is kept;
  /// the old connection is aborted without a message.
  void replace() {
    is_replaced_ = true;
    end_with({ExitCode::interrupted, "receive files from " + channel_->peer().address.text(),
              "it came back over another connection", ""});
    channel_->abort();
  }
  [[nodiscard]] bool is_replaced() const noexcept { return is_replaced_; }
  [[nodiscard]] RecvHost& host() const noexcept { return recv_host_; }
  [[nodiscard]] asio::steady_timer& progress_timer() noexcept { return progress_timer_; }

 private:
  void perform_own(Action& action) override {
    if (const auto* considered = std::get_if<Consider>(&action)) {
      const auto key = export_compare_key(channel_->ssl(), machine_.context());
      if (key.has_error()) return machine_.fail(monotonic_now(), key.error());
      return recv_host_.consider(considered->offer, key.value(), decision_.expect(io_, channel_));
    }
    const auto* taken = std::get_if<TakeOffered>(&action);
    if (taken == nullptr) return;
    if (const auto command = recv_host_.take_volume(*taken->offer); command.has_value())
      push_command(command.value());
    else
      machine_.fail(monotonic_now(), command.error());
  }
  void take_answer() override {
    if (auto decision = decision_.take())
      machine_.on_decision(monotonic_now(), std::move(*decision));
  }

  RecvHost& recv_host_;
  RecvMachine machine_;
  const SenderToken sender_;
  asio::steady_timer progress_timer_;  // used by watch_progress()
  Awaited<list::Answer> decision_;
  bool is_replaced_ = false;
};

}  // namespace onehop::session
