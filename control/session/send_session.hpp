// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// SendSession: one transfer from this end, from the name of the peer to the last file verified
// there: connect, TLS, then what SendMachine says.
//
// It owns the control connection on the given io_context (the session thread); the host owns
// engine, files and ports. No file is named before the peer has proven that it knows the code.
#pragma once

#include <functional>
#include <memory>

#include "control/session/code/code.hpp"
#include "control/session/session.hpp"

namespace boost::asio {
class io_context;
}

namespace onehop::session {

class SendSession {
 public:
  virtual ~SendSession() = default;
  /// start returns at once; `on_end` is called once, on the session thread, after stop_data().
  virtual void start(std::function<void(const SessionEnd&)> on_end) = 0;
  /// interrupt ends the session in order, exit code 7. Any thread; not from a signal handler.
  virtual void interrupt() = 0;
};
/// The host must outlive the session, and the io_context must run on the thread that all host calls
/// may come on.
[[nodiscard]] std::shared_ptr<SendSession> make_send_session(boost::asio::io_context& io,
                                                             SendOptions options,
                                                             const PairingCode& code,
                                                             SendHost& host);

}  // namespace onehop::session
