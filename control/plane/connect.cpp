// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/plane/connect.hpp"

#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <algorithm>
#include <utility>

namespace onehop::plane {

namespace {

using asio::redirect_error;
using asio::use_awaitable;
using asio::ip::tcp;
using Clock = std::chrono::steady_clock;

// Between rounds over all addresses: a receiver that is just being started is found soon, and 5 s cost 25 SYNs.
constexpr Nanos retry_pause = 200ms;

Error connect_error(const SendOptions& options, std::string cause) {
  return {ExitCode::peer_unreachable, "connect to " + options.host + " port " + std::to_string(options.port),
          std::move(cause),
          "Start `onehop recv` there first, and let TCP port " + std::to_string(options.port) +
              " through its firewall"};
}
Error interrupted_error() { return {ExitCode::interrupted, "connect", "interrupted before anything was sent", ""}; }

// One TCP connection attempt with a deadline of its own.
Task<boost::system::error_code> connect_once(tcp::socket& socket, const tcp::endpoint& endpoint, Nanos limit,
                                             ConnectState& state) {
  asio::steady_timer timer{socket.get_executor()};
  bool is_late = false;
  timer.expires_after(limit);
  timer.async_wait([&socket, &is_late](const boost::system::error_code& error) {
    if (error) return;
    is_late = true;
    boost::system::error_code ignored;
    socket.close(ignored);
  });
  state.cancel = [&socket] {
    boost::system::error_code ignored;
    socket.close(ignored);
  };
  boost::system::error_code error;
  co_await socket.async_connect(endpoint, redirect_error(use_awaitable, error));
  state.cancel = nullptr;
  if (timer.cancel() == 0 && !is_late) {
    // The handler is queued but has not run: let it, while what it refers to still lives.
    boost::system::error_code ignored;
    timer.expires_after(0ns);
    co_await timer.async_wait(redirect_error(use_awaitable, ignored));
  }
  if (is_late) co_return boost::system::error_code{asio::error::timed_out};
  co_return error;
}

Result<std::shared_ptr<Channel>> verdict(HandshakeFailure failure, std::shared_ptr<Channel> channel,
                                         const SendOptions& options) {
  const std::string attempt = "authenticate with " + options.host;
  switch (failure) {
    case HandshakeFailure::none: return channel;
    case HandshakeFailure::wrong_code:
    case HandshakeFailure::wrong_role:
      return Error{ExitCode::authentication_failed, attempt, "the two ends do not have the same code",
                   "Give both ends the same code"};
    case HandshakeFailure::timed_out:
      return Error{ExitCode::timed_out, attempt, "no answer in time", "Is a onehop receiver listening there?"};
    case HandshakeFailure::not_onehop:
      return Error{ExitCode::peer_unreachable, attempt, "what listens there does not speak onehop",
                   "Check address and port"};
    case HandshakeFailure::vanished: break;
  }
  return connect_error(options, "the connection was closed during the handshake");
}

}  // namespace

Task<Result<std::shared_ptr<Channel>>> connect_and_authenticate(asio::io_context& io, const TlsContext& tls,
                                                                const SendOptions& options, SessionHost& host,
                                                                ConnectState& state) {
  const auto deadline = Clock::now() + options.limits.connect;
  host.on_phase(Phase::connecting);
  std::string cause;
  for (;;) {
    boost::system::error_code error;
    tcp::resolver resolver{io};
    state.cancel = [&resolver] { resolver.cancel(); };
    const auto found = co_await resolver.async_resolve(options.host, std::to_string(options.port),
                                                       redirect_error(use_awaitable, error));
    state.cancel = nullptr;
    if (error) cause = error.message();
    for (const auto& entry : found) {
      if (state.is_interrupted) co_return interrupted_error();
      const Nanos left = std::max<Nanos>(deadline - Clock::now(), 100ms);
      tcp::socket socket{io};
      error = co_await connect_once(socket, entry.endpoint(), std::min(left, options.limits.connect_attempt), state);
      if (state.is_interrupted) co_return interrupted_error();
      if (error) {
        const Endpoint tried = endpoint_of(entry.endpoint());
        // A name has several addresses, and an address none but itself.
        cause = (tried.address.text() == options.host ? "" : tried.text() + ": ") + error.message();
        continue;
      }
      host.on_phase(Phase::authenticating);
      auto channel = std::make_shared<Channel>(
          std::move(socket), tls,
          ChannelLimits{.silent = options.limits.silent, .keep_alive = options.limits.keep_alive});
      state.cancel = [channel] { channel->abort(); };
      const HandshakeFailure failure = co_await channel->handshake(Role::sender, options.limits.handshake);
      state.cancel = nullptr;
      if (state.is_interrupted) co_return interrupted_error();
      if (failure != HandshakeFailure::vanished) co_return verdict(failure, std::move(channel), options);
      cause = "the connection was closed during the handshake";
    }
    if (state.is_interrupted) co_return interrupted_error();
    if (Clock::now() + retry_pause >= deadline) co_return connect_error(options, cause);
    asio::steady_timer pause{io};
    pause.expires_after(retry_pause);
    state.cancel = [&pause] { pause.cancel(); };
    co_await pause.async_wait(redirect_error(use_awaitable, error));
    state.cancel = nullptr;
  }
}

}  // namespace onehop::plane
