// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/session/send_session.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>

#include <utility>

#include "control/session/awaited.hpp"
#include "control/session/connect.hpp"
#include "control/session/send_machine.hpp"
#include "control/session/session_shell.hpp"
#include "engine/base/memory.hpp"
#include "engine/base/time.hpp"

namespace onehop::session {

namespace {

// One SendMachine on an authenticated channel.
class SendShell final : public SessionShell {
 public:
  SendShell(asio::io_context& io, const SendOptions& options, SendHost& host,
            const std::shared_ptr<Channel>& channel, Instant busy_until)
      : SessionShell{io, host, channel, {options.interface, options.dscp}},
        send_host_{host},
        machine_{options, {channel->peer(), channel->alpn(), busy_until}} {}

  [[nodiscard]] Task<SessionEnd> run() { return SessionShell::run(machine_); }

 private:
  void perform_own(Action& action) override {
    if (const auto* accepted = std::get_if<Accepted>(&action)) send_host_.on_accepted(*accepted);
    if (const auto* again = std::get_if<OfferAgain>(&action))
      machine_.on_offered_again(monotonic_now(), send_host_.offer_again(again->chapters));
    if (std::holds_alternative<WantChapter>(action))
      send_host_.next_chapter(chapter_.expect(io_, channel_));
  }
  void take_answer() override {
    if (auto chapter = chapter_.take())
      machine_.on_chapter(monotonic_now(), std::move(*chapter), send_host_.known());
  }

  SendHost& send_host_;
  SendMachine machine_;
  Awaited<OfferedChapter> chapter_;
};

}  // namespace

class SendSession::Impl final : public std::enable_shared_from_this<Impl> {
 public:
  Impl(asio::io_context& io, SendOptions options, const PairingKey& key, SendHost& host)
      : io_{io},
        host_{host},
        options_{std::move(options)},
        tls_{TlsContext::make({.role = Role::sender}, key)} {}

  void start(std::function<void(const SessionEnd&)> on_end) {
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
  void interrupt_any_thread() {
    asio::post(io_, [self = shared_from_this()] {
      self->connect_state_.interrupt();
      if (self->shell_) self->shell_->interrupt();
    });
  }

 private:
  Task<SessionEnd> run() {
    const Instant busy_until = monotonic_now() + options_.limits.connect;
    std::optional<Error> error;
    try {
      auto channel = co_await connect();
      if (channel) {
        channel.value()->start();
        shell_.emplace(io_, options_, host_, channel.value(), busy_until);
      } else {
        error = channel.error();
      }
    } catch (const std::bad_alloc& refused) {
      error = memory_error("run the session", refused);
    }
    if (error) co_return SessionEnd{error->code, *error};
    co_return co_await shell_->run();
  }

  Task<Result<std::shared_ptr<Channel>>> connect() {
    if (!tls_) co_return tls_.error();
    co_return co_await connect_and_authenticate(io_, tls_.value(), options_, host_, connect_state_);
  }

  asio::io_context& io_;
  SendHost& host_;
  const SendOptions options_;
  const Result<std::shared_ptr<const TlsContext>> tls_;
  ConnectState connect_state_;
  std::optional<SendShell> shell_;
};

SendSession::SendSession(asio::io_context& io, SendOptions options, const PairingKey& key,
                         SendHost& host)
    : impl_{std::make_shared<Impl>(io, std::move(options), key, host)} {}
SendSession::~SendSession() = default;
void SendSession::start(std::function<void(const SessionEnd&)> on_end) {
  impl_->start(std::move(on_end));
}
void SendSession::interrupt() { impl_->interrupt_any_thread(); }

}  // namespace onehop::session
