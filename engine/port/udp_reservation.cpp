// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "engine/port/udp_reservation.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/filter.h>
#include <linux/sock_diag.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <string>

namespace onehop {

namespace {

bool is_any(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET)
    return reinterpret_cast<const sockaddr_in&>(address).sin_addr.s_addr == htonl(INADDR_ANY);
  return IN6_IS_ADDR_UNSPECIFIED(&reinterpret_cast<const sockaddr_in6&>(address).sin6_addr);
}

std::string text_of(const sockaddr_storage& address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const void* raw = address.ss_family == AF_INET
                        ? static_cast<const void*>(&reinterpret_cast<const sockaddr_in&>(address).sin_addr)
                        : static_cast<const void*>(&reinterpret_cast<const sockaddr_in6&>(address).sin6_addr);
  ::inet_ntop(address.ss_family, raw, text.data(), text.size());
  const in_port_t port = address.ss_family == AF_INET ? reinterpret_cast<const sockaddr_in&>(address).sin_port
                                                      : reinterpret_cast<const sockaddr_in6&>(address).sin6_port;
  return fmt::format("[{}]:{}", text.data(), ntohs(port));
}

}  // namespace

Result<UdpReservation> UdpReservation::bind(const sockaddr_storage& local) {
  if ((local.ss_family != AF_INET && local.ss_family != AF_INET6) || is_any(local)) {
    return Error{ExitCode::usage, "reserve the UDP port of a raw run", "no local address was given",
                 "Frames are matched by one address: bind to that of the interface"};
  }
  const std::string attempt = "reserve UDP " + text_of(local);
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

  const socklen_t length = local.ss_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  if (::bind(self.fd_.get(), reinterpret_cast<const sockaddr*>(&local), length) != 0) {
    const bool is_taken = errno == EADDRINUSE;
    return errno_error(is_taken || errno == EADDRNOTAVAIL ? ExitCode::usage : ExitCode::io_unavailable, attempt,
                       is_taken ? "Another program uses this port: choose another" : "Is it an address of this host?");
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

std::uint16_t UdpReservation::port() const noexcept {
  return ntohs(is_ipv6() ? reinterpret_cast<const sockaddr_in6&>(address_).sin6_port
                         : reinterpret_cast<const sockaddr_in&>(address_).sin_port);
}

std::uint32_t UdpReservation::dropped_total() const noexcept {
  std::array<std::uint32_t, SK_MEMINFO_VARS> info{};
  socklen_t length = sizeof info;
  if (::getsockopt(fd_.get(), SOL_SOCKET, SO_MEMINFO, info.data(), &length) != 0) return 0;
  return info[SK_MEMINFO_DROPS];
}

}  // namespace onehop
