// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Addresses: MacAddress and IpBytes as they stand in frames and in netlink messages, IpAddress and
// Endpoint, where a peer or a port of ours is.
//
// Plain values; any thread. They never resolve names. An IPv4 address that came in mapped into IPv6
// (from a dual-stack listener) is always held as IPv4, so that equal addresses compare equal.
#pragma once

#include <sys/socket.h>

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "engine/base/result.hpp"

namespace onehop {

using MacAddress = std::array<std::byte, 6>;
/// Network order; an IPv4 address is in the first four bytes, and the others are zero.
using IpBytes = std::array<std::byte, 16>;

struct IpAddress {
  IpBytes bytes{};
  bool is_v6 = false;
  std::uint32_t scope_id = 0;  ///< interface of an IPv6 link-local address; 0: none

  bool operator==(const IpAddress&) const = default;
  auto operator<=>(const IpAddress&) const = default;

  [[nodiscard]] std::uint8_t family() const noexcept { return is_v6 ? AF_INET6 : AF_INET; }
  [[nodiscard]] std::size_t size_bytes() const noexcept { return is_v6 ? 16 : 4; }
  /// is_link_local: IPv6 fe80::/10, which says nothing without scope_id.
  [[nodiscard]] bool is_link_local() const noexcept;
  /// is_any: 0.0.0.0 or ::, which listens on all addresses and is no destination.
  [[nodiscard]] bool is_any() const noexcept;
  [[nodiscard]] bool is_loopback() const noexcept;  ///< 127.0.0.0/8 or ::1
  [[nodiscard]] std::string text() const;
  /// parse takes a numeric address ("10.0.0.1", "fe80::1%wlan0").
  [[nodiscard]] static std::optional<IpAddress> parse(std::string_view text);
};

/// SocketAddress is an endpoint as the kernel's calls take it.
struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t size_bytes = 0;
  [[nodiscard]] const sockaddr* get() const noexcept {
    return reinterpret_cast<const sockaddr*>(&storage);
  }
};

struct Endpoint {
  IpAddress address;
  std::uint16_t port = 0;

  bool operator==(const Endpoint&) const = default;
  [[nodiscard]] std::string text() const;  ///< "10.0.0.1:7411" or "[fe80::1%2]:7411"
  [[nodiscard]] SocketAddress to_sockaddr() const noexcept;
  [[nodiscard]] static std::optional<Endpoint> from_sockaddr(const sockaddr* from,
                                                             socklen_t length) noexcept;
  /// of_socket is what a socket is bound to. Syscalls: getsockname.
  [[nodiscard]] static Result<Endpoint> of_socket(int fd);
};

}  // namespace onehop
