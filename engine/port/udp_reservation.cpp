// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "engine/port/udp_reservation.hpp"

#include <linux/filter.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <string>


namespace onehop {

Result<UdpReservation> UdpReservation::bind(const Endpoint& local) {
  if (local.address.is_any()) {
    return Error{ExitCode::usage, "reserve the UDP port of a raw run", "no local address was given",
                 "Frames are matched by one address: bind to that of the interface"};
  }
  const std::string attempt = "reserve UDP " + local.text();
  UdpReservation self;
  self.fd_ = Fd{::socket(local.address.family(), SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
  if (!self.fd_.is_open()) return errno_error(ExitCode::io_unavailable, attempt);

  sock_filter drop_all = BPF_STMT(BPF_RET | BPF_K, 0);
  const sock_fprog filter{1, &drop_all};
  if (::setsockopt(self.fd_.get(), SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof filter) != 0)
    return errno_error(ExitCode::io_unavailable, attempt + " (drop filter)");
  const int on = 1;
  if (local.address.is_v6)
    (void)::setsockopt(self.fd_.get(), IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);

  const SocketAddress at = local.to_sockaddr();
  if (::bind(self.fd_.get(), at.get(), at.size_bytes) != 0) {
    const bool is_taken = errno == EADDRINUSE;
    return errno_error(
        is_taken || errno == EADDRNOTAVAIL ? ExitCode::usage : ExitCode::io_unavailable, attempt,
        is_taken ? "Another program uses this port: choose another"
                 : "Is it an address of this host?");
  }
  ONEHOP_TRY(bound, Endpoint::of_socket(self.fd_.get()));
  self.address_ = bound;
  return self;
}

void UdpReservation::share_port() const noexcept {
  const int on = 1;
  (void)::setsockopt(fd_.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
}

}  // namespace onehop
