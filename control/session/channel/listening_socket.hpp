// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// The socket that a receiver listens on. Set-up code, session thread.
#pragma once

#include <boost/asio/ip/tcp.hpp>

#include <cstdint>
#include <string>

#include "engine/base/result.hpp"

namespace onehop::session {

struct ListenAt {
  std::string address;  ///< numeric; empty: all addresses, IPv6 and IPv4
  std::uint16_t port = 0;
  std::string interface;  ///< empty: any; else connections use this one alone
  /// It listened there before: an interface that was created anew may not have its address yet.
  bool is_anew = false;
};

/// open_listening closes the acceptor, and listens. Errors: 2 no such address, 9 the address is in
/// use or not local, 10 a privileged port. Syscalls: socket, setsockopt, bind, listen.
[[nodiscard]] Result<void> open_listening(boost::asio::ip::tcp::acceptor& acceptor,
                                          const ListenAt& at);

}  // namespace onehop::session
