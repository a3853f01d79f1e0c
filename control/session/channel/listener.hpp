// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// RecvServer: listens, authenticates, and runs sessions, RecvOptions::sessions_max at a time.
//
//   accept ─▶ [ half open: admission.hpp ] ─▶ TLS ─▶ Hello ─▶ free? ── yes ──▶ RecvSession
//                                                              └ no: Busy ─▶ [ wait ] ──┘
//
// A stranger can cost at most half_open_max connections of about 70 KiB for ten seconds, and never
// the running session, nor a sender that has proven the code; when there are too many, the oldest
// is closed. After a wrong code an address may try again after guess_pause. A code that can be
// guessed is burnt by failed_proofs_max wrong proofs over all addresses: the host makes another
// one, after a pause that grows, or with is_once the server ends with exit code 4. A running
// session may finish first. A proof is checked against the code at that moment, on every connection
// (tls.hpp). A strong code is never burnt; otherwise any stranger could end the server.
//
// Senders that come while a session runs wait for it. A connection that proves to be that session's
// sender takes over if the old connection does not answer. A session that hardly moves ends when
// another sender waits (progress_floor.hpp). Session thread, but for interrupt().
#pragma once

#include <functional>
#include <memory>

#include "control/session/code/code.hpp"
#include "control/session/session.hpp"

namespace boost::asio {
class io_context;
}

namespace onehop::session {

class RecvServer {
 public:
  virtual ~RecvServer() = default;
  /// start binds and listens (on_listening follows at once), or fails. `on_end` is called once on
  /// the session thread: with the session's end when is_once, with exit code 4 after too many wrong
  /// codes, with 7 after an interrupt (0 when no session was running and one had succeeded). The
  /// host got each end before (on_session_end), but for the last.
  [[nodiscard]] virtual Result<void> start(std::function<void(const SessionEnd&)> on_end) = 0;
  /// interrupt stops listening and ends the session in order. Any thread; not from a signal
  /// handler.
  virtual void interrupt() = 0;
};
[[nodiscard]] std::shared_ptr<RecvServer> make_recv_server(boost::asio::io_context& io,
                                                           RecvOptions options,
                                                           const PairingCode& code, RecvHost& host);

}  // namespace onehop::session
