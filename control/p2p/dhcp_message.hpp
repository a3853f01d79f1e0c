// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// DHCP messages, as far as a server of one link without relays needs them. Pure; any thread.
//
//   op htype hlen hops xid secs flags ciaddr yiaddr siaddr giaddr chaddr[16] sname[64] file[128]
//   magic, then options (code, length, value); `file` and `sname` may hold more of them
//
//= RFC 2131 §2, RFC 2132 §2 and §9
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace onehop::p2p {

/// Ipv4 is an address in host order: 192.168.49.1 is 0xc0a83101. 0: none.
using Ipv4 = std::uint32_t;

inline constexpr std::uint16_t dhcp_server_port = 67, dhcp_client_port = 68;
/// An Ethernet frame's payload. Longer: no client sends such a message.
inline constexpr std::size_t dhcp_request_bytes_max = 1500;
//= RFC 2131 §2
// A client takes 312 bytes of options at least, so this much without asking (option 57).
inline constexpr std::size_t dhcp_reply_bytes_max = 236 + 312;

enum class DhcpType : std::uint8_t {
  discover = 1,
  offer,
  request,
  decline,
  ack,
  nak,
  release,
  inform
};

/// DhcpRequest: what a client asks.
struct DhcpRequest {
  DhcpType type = DhcpType::discover;
  std::uint32_t xid = 0;
  std::uint16_t flags = 0;
  Ipv4 ciaddr = 0;  ///< the address that it has
  std::array<std::byte, 6> chaddr{};
  Ipv4 requested = 0;                    ///< the address that it wants
  Ipv4 server = 0;                       ///< the server that it means
  std::optional<std::string> client_id;  ///< as it is to be sent back

  /// client tells clients apart: by their identifier, else by their hardware address.
  [[nodiscard]] std::string client() const;
};

/// parse_dhcp reads a client's message. Nothing: it is malformed, a server's, of a relay, not of
/// Ethernet's kind, or has no message type (BOOTP).
[[nodiscard]] std::optional<DhcpRequest> parse_dhcp(std::span<const std::byte> message);

/// DhcpReply: what a server answers, beside what it repeats of the request.
struct DhcpReply {
  DhcpType type = DhcpType::offer;
  Ipv4 server = 0;
  Ipv4 yiaddr = 0;                  ///< "your" address
  Ipv4 mask = 0;                    ///< 0: not told
  std::uint32_t lease_seconds = 0;  ///< 0: not told
};
using DhcpBytes = std::array<std::byte, dhcp_reply_bytes_max>;
/// write_dhcp returns the length. There is no router and no name server among the options: a phone
/// keeps its way into the internet.
[[nodiscard]] std::size_t write_dhcp(const DhcpRequest& request, const DhcpReply& reply,
                                     DhcpBytes& out);

}  // namespace onehop::p2p
