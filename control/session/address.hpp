// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// IpAddress and Endpoint: where a peer is, without Asio, so that ports, routes and hosts of a
// session can share them.
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

namespace onehop::session {

struct IpAddress {
  std::array<std::byte, 16> bytes{};  ///< network order; IPv4 fills the first four
  bool is_v6 = false;
  std::uint32_t scope_id = 0;  ///< interface of an IPv6 link-local address; 0: none

  bool operator==(const IpAddress&) const = default;
  auto operator<=>(const IpAddress&) const = default;

  [[nodiscard]] std::size_t size_bytes() const noexcept { return is_v6 ? 16 : 4; }
  /// is_link_local: IPv6 fe80::/10, which says nothing without scope_id.
  [[nodiscard]] bool is_link_local() const noexcept;
  /// is_any: 0.0.0.0 or ::, which listens on all addresses and which nobody can be reached by.
  [[nodiscard]] bool is_any() const noexcept;
  [[nodiscard]] std::string text() const;
  /// parse takes a numeric address ("10.0.0.1", "fe80::1%wlan0").
  [[nodiscard]] static std::optional<IpAddress> parse(std::string_view text);
};

struct Endpoint {
  IpAddress address;
  std::uint16_t port = 0;

  bool operator==(const Endpoint&) const = default;
  [[nodiscard]] std::string text() const;  ///< "10.0.0.1:7411" or "[fe80::1%2]:7411"
  /// to_sockaddr fills `out` and returns its length, for bind() and connect().
  [[nodiscard]] socklen_t to_sockaddr(sockaddr_storage& out) const noexcept;
  [[nodiscard]] static std::optional<Endpoint> from_sockaddr(const sockaddr* from,
                                                             socklen_t length) noexcept;
};

}  // namespace onehop::session
