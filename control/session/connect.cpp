// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/session/connect.hpp"

#include <sys/socket.h>

#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <algorithm>
#include <utility>

#include "control/session/tcp_socket.hpp"
#include "engine/base/thread.hpp"
#include "engine/base/time.hpp"

namespace onehop::session {

namespace {

using asio::redirect_error;
using asio::use_awaitable;
using asio::ip::tcp;

// Between rounds over all addresses: a receiver that is just being started is found soon, and 5 s
// cost 25 SYNs.
constexpr Nanos retry_pause = 200ms;

Error connect_error(const SendOptions& options, std::string cause) {
  return {ExitCode::peer_unreachable,
          "connect to " + options.host + " port " + std::to_string(options.port), std::move(cause),
          "Start `onehop recv` there first, and let TCP port " + std::to_string(options.port) +
              " through its firewall"};
}
Error name_error(const std::string& host, std::string cause) {
  return {ExitCode::peer_unreachable, "find " + host, std::move(cause), "Give a numeric address"};
}
Error turned_away_error(const SendOptions& options) {
  return {ExitCode::peer_unreachable,
          "connect to " + options.host + " port " + std::to_string(options.port),
          "it took the connection and closed it before the codes were compared",
          "Others may keep it busy with connections, or it ended, or it is no onehop receiver: try "
          "again, or for longer with --wait SECONDS"};
}
Error interrupted_error() {
  return {ExitCode::interrupted, "connect", "interrupted before anything was sent", ""};
}

// bind_to gives the connection an address of the interface that is asked for, for the data path
// takes that of the connection. By address: an interface that is made anew has the same.
Result<void> bind_to(const std::string& interface, tcp::socket& socket,
                     const tcp::endpoint& endpoint) {
  if (interface.empty()) return success();
  ONEHOP_TRY(route, find_route(endpoint_of(endpoint).address, interface));
  const SocketAddress source = Endpoint{route.source, 0}.to_sockaddr();
  boost::system::error_code error;
  open_tcp(socket, endpoint.protocol(), error);
  if (!error && ::bind(socket.native_handle(), source.get(), source.size_bytes) != 0)
    return errno_error(ExitCode::peer_unreachable, "connect from an address of " + interface);
  return success();
}

// One TCP connection attempt with a deadline of its own.
Task<boost::system::error_code> connect_once(tcp::socket& socket, const tcp::endpoint& endpoint,
                                             Nanos limit, ConnectState& state) {
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
  if (!socket.is_open()) open_tcp(socket, endpoint.protocol(), error);
  if (!error) co_await socket.async_connect(endpoint, redirect_error(use_awaitable, error));
  state.cancel = nullptr;
  if (timer.cancel() == 0 && !is_late) {
    // The handler is queued but has not run: let it, while what it refers to still lives.
    co_await wait_for(timer, 0ns);
  }
  if (is_late) co_return boost::system::error_code{asio::error::timed_out};
  co_return error;
}

// Asio resolves names on a thread of its own. Where the system refuses one, it throws from
// async_resolve: awaited directly, that would leave a coroutine that nobody resumes. `error` is why
// the name leads nowhere; it may do so later.
Task<Result<tcp::resolver::results_type>> resolve(asio::io_context& io, const SendOptions& options,
                                                  ConnectState& state,
                                                  boost::system::error_code& error) {
  tcp::resolver resolver{io};
  tcp::resolver::results_type found;
  asio::steady_timer answered{io};
  bool is_answered = false;
  try {
    resolver.async_resolve(
        options.host, std::to_string(options.port),
        [&](const boost::system::error_code& failed, tcp::resolver::results_type results) {
          error = failed;
          found = std::move(results);
          is_answered = true;
          answered.cancel();
        });
  } catch (const boost::system::system_error& refused) {
    co_return thread_error("start a thread to find " + options.host, refused.code().value());
  }
  state.cancel = [&resolver] { resolver.cancel(); };
  while (!is_answered) co_await wait_for(answered, 1h);
  state.cancel = nullptr;
  co_return found;
}

Result<std::shared_ptr<Channel>> verdict(HandshakeFailure failure, std::shared_ptr<Channel> channel,
                                         const SendOptions& options) {
  const std::string attempt = "authenticate with " + options.host;
  switch (failure) {
    case HandshakeFailure::none: return channel;
    case HandshakeFailure::wrong_code:
    case HandshakeFailure::wrong_role:
      return Error{ExitCode::authentication_failed, attempt,
                   "the two ends do not have the same code",
                   "Give both ends the same code; the receiver burns one that a person chose after "
                   "three wrong ones, and says so"};
    case HandshakeFailure::timed_out:
      return Error{ExitCode::timed_out, attempt, "no answer in time",
                   "Is a onehop receiver listening there?"};
    case HandshakeFailure::not_onehop:
      return Error{ExitCode::peer_unreachable, attempt, "what listens there does not speak onehop",
                   "Check address and port"};
    case HandshakeFailure::vanished: break;
  }
  return turned_away_error(options);
}

}  // namespace

Result<RouteInfo> find_route_to(const std::string& host, const std::string& interface) {
  asio::io_context io;
  tcp::resolver resolver{io};
  boost::system::error_code error;
  const auto found = resolver.resolve(host, "", error);
  if (error || found.empty()) return name_error(host, error.message());
  return find_route(endpoint_of(found.begin()->endpoint()).address, interface);
}

Task<Result<std::shared_ptr<Channel>>> connect_and_authenticate(
    asio::io_context& io, std::shared_ptr<const TlsContext> tls, const SendOptions& options,
    SessionHost& host, ConnectState& state) {
  const auto deadline = monotonic_now() + options.limits.connect;
  host.on_phase(Phase::connecting);
  std::string cause;
  bool is_turned_away = false;  // by the address that was tried last
  for (;;) {
    boost::system::error_code error;
    const auto resolved = co_await resolve(io, options, state, error);
    if (!resolved) co_return resolved.error();
    const bool is_found = !error;
    if (error) cause = error.message();
    for (const auto& entry : resolved.value()) {
      if (state.is_interrupted) co_return interrupted_error();
      const Nanos left = std::max<Nanos>(deadline - monotonic_now(), 100ms);
      tcp::socket socket{io};
      is_turned_away = false;
      if (const auto bound = bind_to(options.interface, socket, entry.endpoint()); !bound) {
        cause = bound.error().cause;
        continue;
      }
      error = co_await connect_once(socket, entry.endpoint(),
                                    std::min(left, options.limits.connect_attempt), state);
      if (state.is_interrupted) co_return interrupted_error();
      if (error) {
        const Endpoint tried = endpoint_of(entry.endpoint());
        // A name has several addresses, and an address none but itself.
        cause = (tried.address.text() == options.host ? "" : tried.text() + ": ") + error.message();
        continue;
      }
      host.on_phase(Phase::authenticating);
      auto channel = std::make_shared<Channel>(std::move(socket), tls, options.limits,
                                               endpoint_of(entry.endpoint()));
      state.cancel = [channel] { channel->abort(); };
      const HandshakeFailure failure =
          co_await channel->handshake(Role::sender, options.limits.handshake);
      state.cancel = nullptr;
      if (state.is_interrupted) co_return interrupted_error();
      if (failure != HandshakeFailure::vanished)
        co_return verdict(failure, std::move(channel), options);
      is_turned_away = true;
    }
    if (state.is_interrupted) co_return interrupted_error();
    if (monotonic_now() + retry_pause >= deadline)
      co_return is_turned_away ? turned_away_error(options)
      : is_found               ? connect_error(options, cause)
                               : name_error(options.host, cause);
    asio::steady_timer pause{io};
    state.cancel = [&pause] { pause.cancel(); };
    co_await wait_for(pause, retry_pause);
    state.cancel = nullptr;
  }
}

}  // namespace onehop::session
