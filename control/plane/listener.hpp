// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// RecvServer: listens, authenticates, and runs one session at a time.
//
//   accept ─▶ [ half open: bounded in number, per address, in time, in memory ] ─▶ TLS ─▶ busy? Refuse : RecvSession
//
// A stranger can cost us at most half_open_max connections of about 70 KiB for ten seconds, and never the running
// session. Wrong codes are counted over all addresses: after one, attempts begin a second apart, and the last one allowed
// ends the server with exit code 4, because a code that somebody guesses at is burnt. A running session may finish first;
// meanwhile nobody is let in. It owns the acceptor and the sessions; plane thread, but for interrupt().
#pragma once

#include <functional>
#include <memory>

#include "control/plane/code.hpp"
#include "control/plane/session.hpp"

namespace boost::asio {
class io_context;
}

namespace onehop::plane {

class RecvServer {
 public:
  RecvServer(boost::asio::io_context& io, RecvOptions options, const PairingKey& key, RecvHost& host);
  RecvServer(const RecvServer&) = delete;
  RecvServer& operator=(const RecvServer&) = delete;
  ~RecvServer();

  /// start binds and listens (on_listening follows at once), or fails. `on_end` is called once on the plane thread:
  /// with the session's end when is_once, with exit code 4 after too many wrong codes, with 7 after an interrupt (0
  /// when no session was under way and one had succeeded).
  [[nodiscard]] Result<void> start(std::function<void(const SessionEnd&)> on_end);
  /// interrupt stops listening and ends the session in order. Any thread; not from a signal handler.
  void interrupt();

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace onehop::plane
