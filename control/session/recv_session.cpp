// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/session/recv_session.hpp"

#include <boost/asio/post.hpp>

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
  if (const auto* taken = std::get_if<TakeOffered>(&action)) {
    if (const auto command = recv_host_.take_chapter(*taken->offer); command.has_value())
      push_command(command.value());
    else
      machine_.fail(monotonic_now(), command.error());
    return;
  }
  const auto* considered = std::get_if<Consider>(&action);
  if (considered == nullptr) return;
  answer_ = std::make_shared<std::optional<Result<Decision>>>();
  recv_host_.consider(considered->offer,
                      [&io = io_, answer = answer_, channel = channel_](Result<Decision> decision) {
                        asio::post(io, [answer, channel, decision = std::move(decision)]() mutable {
                          if (!answer->has_value()) answer->emplace(std::move(decision));
                          channel->wake();
                        });
                      });
}

void RecvSession::take_answer() {
  if (!answer_ || !answer_->has_value()) return;
  machine_.on_decision(monotonic_now(), std::move(**std::exchange(answer_, nullptr)));
}

}  // namespace onehop::session
