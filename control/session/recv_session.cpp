// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/session/recv_session.hpp"

#include <utility>

#include "engine/base/time.hpp"

namespace onehop::session {

RecvSession::RecvSession(asio::io_context& io, const RecvOptions& options, RecvHost& host,
                         std::shared_ptr<Channel> channel, const SenderToken& sender)
    : SessionShell{io, host, std::move(channel), {options.interface, options.dscp}},
      recv_host_{host},
      machine_{options, channel_->peer()},
      answer_limit_{options.limits.answer},
      sender_{sender} {}

Task<SessionEnd> RecvSession::run() { return SessionShell::run(machine_); }

void RecvSession::replace() {
  is_replaced_ = true;
  end_with({ExitCode::interrupted, "receive files from " + channel_->peer().address.text(),
            "it came back over another connection", ""});
  channel_->abort();
}

void RecvSession::perform_own(Action& action) {
  if (const auto* skipped = std::get_if<Skipped>(&action))
    return recv_host_.on_skipped(skipped->bytes);
  if (const auto* hole = std::get_if<HoleAnnounced>(&action))
    return recv_host_.on_hole(hole->file, hole->bytes);
  if (const auto* taken = std::get_if<TakeOffered>(&action)) {
    if (const auto command = recv_host_.take_chapter(*taken->offer); command.has_value())
      push_command(command.value());
    else
      machine_.fail(monotonic_now(), command.error());
    return;
  }
  const auto* considered = std::get_if<Consider>(&action);
  if (considered == nullptr) return;
  recv_host_.consider(considered->offer, decision_.expect(io_, channel_));
}

void RecvSession::take_answer() {
  if (auto decision = decision_.take()) machine_.on_decision(monotonic_now(), std::move(*decision));
}

}  // namespace onehop::session
