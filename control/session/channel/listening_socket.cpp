// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/session/channel/listening_socket.hpp"

#include <boost/asio/ip/v6_only.hpp>
#include <netinet/in.h>

#include <cerrno>
#include <cstring>

#include "control/session/channel/route.hpp"
#include "control/session/channel/tcp_socket.hpp"
#include "engine/base/system/address.hpp"

namespace onehop::session {

namespace {

using boost::asio::ip::tcp;
namespace asio = boost::asio;

constexpr int backlog_connections = 16;  // wait in the kernel, and cost us nothing

Error listen_error(const Endpoint& endpoint, const boost::system::error_code& error) {
  const bool is_denied = error == asio::error::access_denied;
  const char* hint = "Choose another address or port with --listen ADDR:PORT";
  if (is_denied) hint = "Choose a port from 1024 on with --listen ADDR:PORT";
  if (error == asio::error::address_in_use)
    hint =
        "Is another receiver running? Choose another port with --listen ADDR:PORT. To pair beside "
        "a service, run 'onehop pair' at the other machine first";
  if (error.value() == EADDRNOTAVAIL)
    hint =
        "Name an address of this machine: `ip address` lists them. One that it marks 'tentative' "
        "serves a second or two later";
  return errno_error(is_denied ? ExitCode::privilege_missing : ExitCode::io_unavailable,
                     "listen on " + endpoint.text(), hint, error.value());
}

Result<void> listen_on(tcp::acceptor& acceptor, const Endpoint& endpoint, bool is_dual,
                       const ListenAt& at) {
  const SocketAddress bound = endpoint.to_sockaddr();
  tcp::endpoint target;  // its size() is that of IPv4 until it holds the family
  std::memcpy(target.data(), bound.get(), bound.size_bytes);
  boost::system::error_code error;
  acceptor.close(error);
  open_tcp(acceptor, target.protocol(), error);
  if (!error) acceptor.set_option(tcp::acceptor::reuse_address{true}, error);
  if (!error && endpoint.address.is_v6) acceptor.set_option(asio::ip::v6_only{!is_dual}, error);
  if (!error && !at.interface.empty()) {
    // Connections inherit it, and answer over that interface whatever the routes say. One that
    // was made anew may not have its address yet.
    const int is_anew = at.is_anew ? 1 : 0;
    (void)::setsockopt(acceptor.native_handle(), IPPROTO_IP, IP_FREEBIND, &is_anew, sizeof is_anew);
    ONEHOP_TRYV(bind_to_device(acceptor.native_handle(), at.interface));
  }
  if (!error) acceptor.bind(target, error);
  if (!error) acceptor.listen(backlog_connections, error);
  // One that waited may be gone when it is accepted.
  if (!error) acceptor.non_blocking(true, error);
  if (!error) return success();
  return listen_error(endpoint, error);
}

}  // namespace

Result<void> open_listening(tcp::acceptor& acceptor, const ListenAt& at) {
  const auto parsed = IpAddress::parse(at.address);
  if (!at.address.empty() && !parsed)
    return Error{ExitCode::usage, "listen on " + at.address, "it is not a numeric address",
                 "Name an address of this machine: `ip address` lists them"};
  if (parsed) return listen_on(acceptor, {*parsed, at.port}, false, at);
  Endpoint any{{.is_v6 = true}, at.port};
  if (listen_on(acceptor, any, true, at)) return success();
  any.address.is_v6 = false;  // a machine without IPv6
  return listen_on(acceptor, any, false, at);
}

}  // namespace onehop::session
