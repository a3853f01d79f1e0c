// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// TCP sockets that no child inherits. Asio opens and accepts without SOCK_CLOEXEC, and setting it
// afterwards is too late for a child that another thread starts in between.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <boost/asio/ip/tcp.hpp>

#include <cerrno>

#include "engine/base/fd.hpp"

namespace onehop::session {

/// open_tcp opens a socket or an acceptor of Asio's. Syscalls: socket.
template <class Socket>
void open_tcp(Socket& socket, const boost::asio::ip::tcp& protocol,
              boost::system::error_code& error) {
  Fd fd{::socket(protocol.family(), SOCK_STREAM | SOCK_CLOEXEC, IPPROTO_TCP)};
  if (!fd.is_open())
    error.assign(errno, boost::system::system_category());
  else if (!socket.assign(protocol, fd.get(), error))
    (void)fd.release();
}

/// accept_tcp accepts a waiting connection; would_block: there is none. `protocol` is the
/// acceptor's. Syscalls: accept4.
inline void accept_tcp(boost::asio::ip::tcp::acceptor& acceptor,
                       const boost::asio::ip::tcp& protocol, boost::asio::ip::tcp::socket& socket,
                       boost::asio::ip::tcp::endpoint& from, boost::system::error_code& error) {
  auto size = static_cast<socklen_t>(from.capacity());
  Fd fd{::accept4(acceptor.native_handle(), from.data(), &size, SOCK_CLOEXEC)};
  if (!fd.is_open()) {
    error.assign(errno, boost::system::system_category());
    return;
  }
  from.resize(size);
  if (!socket.assign(protocol, fd.get(), error)) (void)fd.release();
}

}  // namespace onehop::session
