// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Addresses of sockets, IPv4 and IPv6 alike, and the kernel's memory account of a socket: what the
// UDP port and the reservation of the raw ports share. Set-up only, but for read_mem_info.
#pragma once

#include <arpa/inet.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <string>

namespace onehop {

[[nodiscard]] inline const sockaddr& as_sockaddr(const sockaddr_storage& address) noexcept {
  return reinterpret_cast<const sockaddr&>(address);
}
[[nodiscard]] inline const sockaddr_in& as_in4(const sockaddr& address) noexcept {
  return reinterpret_cast<const sockaddr_in&>(address);
}
[[nodiscard]] inline const sockaddr_in6& as_in6(const sockaddr& address) noexcept {
  return reinterpret_cast<const sockaddr_in6&>(address);
}

[[nodiscard]] inline socklen_t sockaddr_bytes(sa_family_t family) noexcept {
  return family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
}

[[nodiscard]] inline std::uint16_t port_of(const sockaddr& address) noexcept {
  return ntohs(address.sa_family == AF_INET6 ? as_in6(address).sin6_port
                                             : as_in4(address).sin_port);
}

/// address_text is "192.0.2.1:7000" or "[2001:db8::1]:7000".
[[nodiscard]] inline std::string address_text(const sockaddr& address) {
  const bool is_ipv6 = address.sa_family == AF_INET6;
  const void* raw = is_ipv6 ? static_cast<const void*>(&as_in6(address).sin6_addr)
                            : static_cast<const void*>(&as_in4(address).sin_addr);
  char text[INET6_ADDRSTRLEN] = "?";
  ::inet_ntop(is_ipv6 ? AF_INET6 : AF_INET, raw, text, sizeof text);
  const std::string host = is_ipv6 ? '[' + std::string{text} + ']' : text;
  return host + ':' + std::to_string(port_of(address));
}

/// MemInfo is a socket's own account, in truesize (bytes of buffer memory).
struct MemInfo {
  std::uint32_t rmem_bytes = 0;
  std::uint32_t rcvbuf_bytes = 0;
  std::uint32_t wmem_bytes = 0;
  std::uint32_t sndbuf_bytes = 0;
  std::uint32_t drops = 0;  ///< wraps
};
/// read_mem_info is all zero where the kernel refuses. Syscalls: getsockopt (0.2 us).
[[nodiscard]] inline MemInfo read_mem_info(int fd) noexcept {
  std::array<std::uint32_t, SK_MEMINFO_VARS> fields{};
  socklen_t bytes = sizeof fields;
  if (::getsockopt(fd, SOL_SOCKET, SO_MEMINFO, fields.data(), &bytes) != 0) return {};
  return {.rmem_bytes = fields[SK_MEMINFO_RMEM_ALLOC],
          .rcvbuf_bytes = fields[SK_MEMINFO_RCVBUF],
          .wmem_bytes = fields[SK_MEMINFO_WMEM_ALLOC],
          .sndbuf_bytes = fields[SK_MEMINFO_SNDBUF],
          .drops = fields[SK_MEMINFO_DROPS]};
}

}  // namespace onehop
