// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/session/channel/connect.hpp"

#include <sys/socket.h>

#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <algorithm>
#include <utility>

#include "control/session/channel/tcp_socket.hpp"
#include "engine/base/system/thread.hpp"
#include "engine/base/time.hpp"

namespace onehop::session {

namespace {

using asio::redirect_error;
using asio::use_awaitable;
using asio::ip::tcp;

// Between rounds over all addresses: a receiver that is just being started is found soon, and 5 s
// cost 25 SYNs.
constexpr Nanos retry_pause = 200ms;

// Failed: what came of the newest attempt.
struct Failed {
  std::string cause;
  std::string remedy;  // empty: the usual one
};

Error connect_error(const SendOptions& options, Failed failed) {
  if (failed.remedy.empty())
    failed.remedy = "Start `onehop recv` there first, and let TCP port " +
                    std::to_string(options.port) + " through its firewall";
  return {ExitCode::peer_unreachable,
          "connect to " + options.host + " port " + std::to_string(options.port),
          std::move(failed.cause), std::move(failed.remedy)};
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
// Each such connection was one guess at our code for an attacker that listens there.
Error guessed_error(const SendOptions& options) {
  return {ExitCode::authentication_failed, "authenticate with " + options.host,
          "it left " + std::to_string(failed_proofs_max) +
              " times while the codes were compared, so somebody may be guessing there",
          "Look at who has that address, and let the receiver show a new code"};
}
Error interrupted_error() {
  return {ExitCode::interrupted, "connect", "interrupted before anything was sent", ""};
}

// bind_to keeps the connection to the interface that is asked for, and gives it an address of it,
// for the data path takes that of the connection.
Result<void> bind_to(const std::string& interface, tcp::socket& socket,
                     const tcp::endpoint& endpoint) {
  if (interface.empty()) return success();
  ONEHOP_TRY(route, find_route(endpoint_of(endpoint).address, interface));
  const SocketAddress source = Endpoint{route.source, 0}.to_sockaddr();
  boost::system::error_code error;
  open_tcp(socket, endpoint.protocol(), error);
  if (error) return success();  // connect() meets it again
  ONEHOP_TRYV(bind_to_device(socket.native_handle(), interface));
  if (::bind(socket.native_handle(), source.get(), source.size_bytes) != 0)
    return errno_error(ExitCode::peer_unreachable, "connect from an address of " + interface);
  return success();
}

// A firewall is blamed in vain where a VPN took the packets: the way that they took is named.
Failed failed_on(const Endpoint& tried, const SendOptions& options,
                 const boost::system::error_code& error) {
  // A name has several addresses, and an address none but itself.
  Failed failed{(tried.address.text() == options.host ? "" : tried.text() + ": ") + error.message(),
                ""};
  const auto route = find_route(tried.address, options.interface);
  if (!route) return failed;
  failed.cause += "; the route leads " + route_text(route.value());
  if (!options.interface.empty()) return failed;
  if (const auto near = find_nearer(tried.address, route.value())) {
    failed.cause += ", though " + near->interface + " has the subnet " + near->subnet;
    failed.remedy = "Add --iface " + near->interface +
                    " to take the near way, or have what set that route (a VPN) leave it alone";
  }
  return failed;
}

// warn_of_detour comes before the first attempt, which may wait in vain.
void warn_of_detour(const IpAddress& address, const SendOptions& options, SessionHost& host) {
  if (!options.interface.empty()) return;
  const auto route = find_route(address);
  if (!route) return;
  if (const auto warning = detour_warning(address, route.value()))
    host.on_fact(Notice{*warning, true});
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

// Asio resolves names on a thread of its own, which an address does not need. If the system refuses
// one, it throws from async_resolve: awaited directly, that would leave a coroutine that is never
// resumed. `error` is why the name has no address; it may have one later.
Task<Result<tcp::resolver::results_type>> resolve(asio::io_context& io, const SendOptions& options,
                                                  ConnectState& state,
                                                  boost::system::error_code& error) {
  const std::string port = std::to_string(options.port);
  boost::system::error_code no_address;
  if (const auto address = asio::ip::make_address(options.host, no_address); !no_address)
    co_return tcp::resolver::results_type::create(tcp::endpoint{address, options.port},
                                                  options.host, port);
  tcp::resolver resolver{io};
  tcp::resolver::results_type found;
  asio::steady_timer answered{io};
  bool is_answered = false;
  try {
    resolver.async_resolve(
        options.host, port,
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

std::string times_text(std::size_t times) {
  return times == 1 ? "once" : std::to_string(times) + " times";
}

Result<std::shared_ptr<Channel>> verdict(HandshakeFailure failure, std::shared_ptr<Channel> channel,
                                         const SendOptions& options, bool can_guess) {
  const std::string attempt = "authenticate with " + options.host;
  const bool is_silent =
      failure == HandshakeFailure::timed_out || failure == HandshakeFailure::not_onehop;
  if (is_silent && can_guess && owes_proof(channel->ssl()))
    return Error{ExitCode::authentication_failed, attempt,
                 "it compared codes and showed no proof of its own, so somebody may be guessing "
                 "there",
                 "Look at who has that address, and let the receiver show a new code"};
  switch (failure) {
    case HandshakeFailure::none: return channel;
    case HandshakeFailure::wrong_code:
    case HandshakeFailure::wrong_role:
      if (channel->peer_burnt() > 0)
        return Error{ExitCode::authentication_failed, attempt,
                     "the two ends do not have the same code. The receiver says that somebody has "
                     "tried so many wrong ones that it burnt its code " +
                         times_text(channel->peer_burnt()),
                     "Give the code that the receiver shows now"};
      return Error{ExitCode::authentication_failed, attempt,
                   "the two ends do not have the same code",
                   "Give both ends the same code; the receiver burns words, and a code that a "
                   "person chose, after three wrong ones, and says so"};
    case HandshakeFailure::timed_out:
      return Error{ExitCode::timed_out, attempt, "no answer in time",
                   "Is a onehop receiver listening there?"};
    case HandshakeFailure::not_onehop:
      return Error{ExitCode::peer_unreachable, attempt, "what listens there does not speak onehop",
                   "Check address and port"};
    case HandshakeFailure::unknown_device:
      return Error{ExitCode::authentication_failed, attempt,
                   "it is not " + options.peer + ", or has forgotten this device",
                   "Look at who has that address; to pair again: onehop pair at both"};
    case HandshakeFailure::changed_key:
      return Error{ExitCode::authentication_failed, attempt,
                   "the key of " + options.peer + " is not the one that it was paired with",
                   "If that device was set up anew: onehop peers forget " + options.peer +
                       ", and pair again. Else somebody pretends to be it"};
    case HandshakeFailure::own_key_refused:
      return Error{ExitCode::authentication_failed, attempt,
                   options.peer + " knows this device by another key than the one it has now",
                   "There: onehop peers forget this device. Then pair again: onehop pair at both"};
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
  host.on_fact(Phase::connecting);
  Failed failed;
  bool is_turned_away = false;  // by the address that was tried last
  unsigned& unproven = state.unproven;
  const unsigned unproven_before = unproven;
  for (bool is_first = true;; is_first = false) {
    boost::system::error_code error;
    const auto resolved = co_await resolve(io, options, state, error);
    if (!resolved) co_return resolved.error();
    const bool is_found = !error;
    if (error) failed = {error.message(), ""};
    for (const auto& entry : resolved.value()) {
      if (state.is_interrupted) co_return interrupted_error();
      const Nanos left = std::max<Nanos>(deadline - monotonic_now(), 100ms);
      tcp::socket socket{io};
      is_turned_away = false;
      const Endpoint tried = endpoint_of(entry.endpoint());
      if (is_first) warn_of_detour(tried.address, options, host);
      if (const auto bound = bind_to(options.interface, socket, entry.endpoint()); !bound) {
        failed = {bound.error().cause, bound.error().hint};
        continue;
      }
      error = co_await connect_once(socket, entry.endpoint(),
                                    std::min(left, options.limits.connect_attempt), state);
      if (state.is_interrupted) co_return interrupted_error();
      if (error) {
        failed = failed_on(tried, options, error);
        continue;
      }
      host.on_fact(Phase::authenticating);
      auto channel = std::make_shared<Channel>(std::move(socket), tls, options.limits, tried);
      state.cancel = [channel] { channel->abort(); };
      const HandshakeFailure failure =
          co_await channel->handshake(Role::sender, options.limits.handshake);
      state.cancel = nullptr;
      if (state.is_interrupted) co_return interrupted_error();
      const bool can_guess = !tls->code().is_made();
      if (failure != HandshakeFailure::vanished) {
        if (unproven > unproven_before)
          host.on_fact(
              Notice{options.host + " went away " + times_text(unproven) +
                         " while the codes were compared: somebody on the way may have tried one",
                     true});
        co_return verdict(failure, std::move(channel), options, can_guess);
      }
      if (owes_proof(channel->ssl()) && can_guess && ++unproven >= failed_proofs_max)
        co_return guessed_error(options);
      is_turned_away = true;
    }
    if (state.is_interrupted) co_return interrupted_error();
    if (monotonic_now() + retry_pause >= deadline)
      co_return is_turned_away ? turned_away_error(options)
      : is_found               ? connect_error(options, failed)
                               : name_error(options.host, failed.cause);
    asio::steady_timer pause{io};
    state.cancel = [&pause] { pause.cancel(); };
    co_await wait_for(pause, retry_pause);
    state.cancel = nullptr;
  }
}

}  // namespace onehop::session
