// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "engine/port/udp_reservation.hpp"

#include <fcntl.h>
#include <linux/filter.h>
#include <sys/socket.h>

#include <cerrno>
#include <string>

#include "engine/port/socket_address.hpp"

namespace onehop {

namespace {

bool is_any(const sockaddr& address) {
  if (address.sa_family == AF_INET6) return IN6_IS_ADDR_UNSPECIFIED(&as_in6(address).sin6_addr);
  return as_in4(address).sin_addr.s_addr == htonl(INADDR_ANY);
}

}  // namespace

Result<UdpReservation> UdpReservation::bind(const sockaddr_storage& local) {
  if ((local.ss_family != AF_INET && local.ss_family != AF_INET6) || is_any(as_sockaddr(local))) {
    return Error{ExitCode::usage, "reserve the UDP port of a raw run", "no local address was given",
                 "Frames are matched by one address: bind to that of the interface"};
  }
  const std::string attempt = "reserve UDP " + address_text(as_sockaddr(local));
  UdpReservation self;
  self.fd_ = Fd{::socket(local.ss_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
  if (!self.fd_.is_open()) return errno_error(ExitCode::io_unavailable, attempt);

  sock_filter drop_all = BPF_STMT(BPF_RET | BPF_K, 0);
  const sock_fprog filter{1, &drop_all};
  if (::setsockopt(self.fd_.get(), SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof filter) != 0)
    return errno_error(ExitCode::io_unavailable, attempt + " (drop filter)");
  const int on = 1;
  if (local.ss_family == AF_INET6)
    (void)::setsockopt(self.fd_.get(), IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);

  if (::bind(self.fd_.get(), &as_sockaddr(local), sockaddr_bytes(local.ss_family)) != 0) {
    const bool is_taken = errno == EADDRINUSE;
    return errno_error(
        is_taken || errno == EADDRNOTAVAIL ? ExitCode::usage : ExitCode::io_unavailable, attempt,
        is_taken ? "Another program uses this port: choose another"
                 : "Is it an address of this host?");
  }
  socklen_t got = sizeof self.address_;
  if (::getsockname(self.fd_.get(), reinterpret_cast<sockaddr*>(&self.address_), &got) != 0)
    return errno_error(ExitCode::io_unavailable, attempt);
  return self;
}

UdpReservation UdpReservation::share() const noexcept {
  UdpReservation other;
  other.fd_ = Fd{::fcntl(fd_.get(), F_DUPFD_CLOEXEC, 0)};
  other.address_ = address_;
  return other;
}

std::uint16_t UdpReservation::port() const noexcept { return port_of(as_sockaddr(address_)); }

std::uint32_t UdpReservation::dropped_total() const noexcept {
  return read_mem_info(fd_.get()).drops;
}

}  // namespace onehop
