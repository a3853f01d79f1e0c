// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// From a host name to a route, and to an authenticated channel.
#pragma once

#include <functional>
#include <memory>

#include "control/session/channel/channel.hpp"
#include "control/session/channel/path_follower.hpp"
#include "control/session/session.hpp"

namespace onehop::session {

/// ConnectState lets an interrupt cancel the wait that is running.
struct ConnectState {
  bool is_interrupted = false;
  /// Connections on which this end showed its proof of the code and saw none: each gave the peer a
  /// guess. It starts with those of the sessions before (SendOptions::unproven).
  unsigned unproven = 0;
  std::function<void()> cancel;  ///< set while something waits
  void interrupt() {
    is_interrupted = true;
    if (cancel) cancel();
  }
};

/// find_route_to is find_route() for the first address of a name, for what must be opened before
/// privileges are dropped. Blocks. Errors: 3 if the name has no address yet; find_route()'s.
[[nodiscard]] Result<RouteInfo> find_route_to(const std::string& host,
                                              const std::string& interface);

/// connect_and_authenticate resolves the name and tries each address in turn, again and again until
/// options.limits.connect has passed, as long as no receiver answers (refused, unreachable, closed
/// during the handshake). A wrong code is final. So is a peer that disconnects three times after it
/// received our proof: each time may be a guess.
[[nodiscard]] Task<Result<std::shared_ptr<Channel>>> connect_and_authenticate(
    asio::io_context& io, std::shared_ptr<const TlsContext> tls, const SendOptions& options,
    SessionHost& host, ConnectState& state);

}  // namespace onehop::session
