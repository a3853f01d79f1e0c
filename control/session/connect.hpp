// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// connect_and_authenticate: from a host name to an authenticated channel. Internal to
// control/session; session thread.
#pragma once

#include <functional>
#include <memory>

#include "control/session/channel.hpp"
#include "control/session/session.hpp"

namespace onehop::session {

/// ConnectState lets an interrupt reach whatever is under way.
struct ConnectState {
  bool is_interrupted = false;
  std::function<void()> cancel;  ///< set while something waits
  void interrupt() {
    is_interrupted = true;
    if (cancel) cancel();
  }
};

/// connect_and_authenticate resolves the name, tries each address in turn, and again until
/// options.limits.connect has gone, as long as nobody is there (refused, unreachable, closed during
/// the handshake). A wrong code is final.
[[nodiscard]] Task<Result<std::shared_ptr<Channel>>> connect_and_authenticate(
    asio::io_context& io, std::shared_ptr<const TlsContext> tls, const SendOptions& options,
    SessionHost& host, ConnectState& state);

}  // namespace onehop::session
