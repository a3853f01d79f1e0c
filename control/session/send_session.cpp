// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/session/send_session.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>

#include <algorithm>
#include <utility>

#include "control/session/introduction.hpp"
#include "engine/base/memory.hpp"
#include "engine/base/time.hpp"

namespace onehop::session {

SendSession::SendSession(asio::io_context& io, SendOptions options, const PairingCode& code,
                         SendHost& host)
    : SessionShell{io, host, nullptr, options},
      send_host_{host},
      send_options_{std::move(options)},
      tls_{TlsContext::make({.role = Role::sender,
                             .device = send_options_.device,
                             .peer = send_options_.peer,
                             .prefers_chacha20 = send_options_.prefers_chacha20},
                            code)},
      connect_state_{.unproven = send_options_.unproven} {}

void SendSession::start(std::function<void(const SessionEnd&)> on_end) {
  asio::co_spawn(
      io_, [self = shared_from_this()] { return self->run(); },
      [self = shared_from_this(), on_end = std::move(on_end)](const std::exception_ptr& thrown,
                                                              SessionEnd end) {
        if (thrown)
          end = {ExitCode::internal_error,
                 {ExitCode::internal_error, "end the session", "out of memory", ""}};
        on_end(end);
      });
}

void SendSession::interrupt() {
  asio::post(io_, [self = shared_from_this()] {
    self->connect_state_.interrupt();
    self->SessionShell::interrupt();
  });
}

Task<SessionEnd> SendSession::run() {
  if (!tls_) co_return SessionEnd{tls_.error().code, tls_.error()};
  const Instant busy_until =
      monotonic_now() + std::max(send_options_.limits.connect, send_options_.busy);
  try {
    auto channel = co_await connect_and_authenticate(io_, tls_.value(), send_options_, send_host_,
                                                     connect_state_);
    if (!channel) co_return SessionEnd{channel.error().code, channel.error()};
    channel_ = std::move(channel).value();
    channel_->start();
    // A paired device is known already.
    if (send_options_.introduction != Introduction::none && channel_->device() == nullptr) {
      const auto known = co_await introduce(channel_, send_options_, send_host_);
      if (send_options_.introduction == Introduction::only) {
        co_await channel_->close();
        co_return known ? SessionEnd{} : SessionEnd{known.error().code, known.error()};
      }
      if (!known) send_host_.on_fact(Notice{known.error().message(), true});
    }
    machine_.emplace(send_options_,
                     SendMachine::Connection{channel_->peer(), channel_->alpn(), busy_until});
  } catch (const std::bad_alloc& refused) {
    const Error error = memory_error("run the session", refused);
    co_return SessionEnd{error.code, error};
  }
  co_return co_await SessionShell::run(*machine_);
}

void SendSession::perform_own(Action& action) {
  if (const auto* accepted = std::get_if<Accepted>(&action)) send_host_.on_accepted(*accepted);
  if (const auto* again = std::get_if<OfferAgain>(&action))
    machine_->on_offered_again(monotonic_now(), send_host_.offer_again(again->volumes));
  if (std::holds_alternative<WantVolume>(action))
    send_host_.next_volume(volume_.expect(io_, channel_));
}

void SendSession::take_answer() {
  if (auto volume = volume_.take())
    machine_->on_volume(monotonic_now(), std::move(*volume), send_host_.known());
}

}  // namespace onehop::session
