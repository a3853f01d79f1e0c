// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Ethernet, IP and UDP headers for ports that build their own (AF_XDP, DPDK).
//
//   | Ethernet 14 | IPv4 20 or IPv6 40 | UDP 8 | payload = one frame of frame.hpp |
//
// The session builds a template (lengths and checksums zero) and hands it to the port in
// PathUpdate. The port keeps it in a HeaderTemplate and writes it in front of each payload. Pure
// functions on spans. No VLAN tags, IP options, extension headers or fragments, out or in.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "engine/base/system/address.hpp"
#include "engine/wire/frame.hpp"

namespace onehop::wire {

/// UdpFlow: the constants of a path's headers. Ports in host order; dscp is the six-bit code point.
struct UdpFlow {
  MacAddress source_mac{};
  MacAddress target_mac{};
  bool is_ipv6 = false;
  IpBytes source_ip{};
  IpBytes target_ip{};
  std::uint16_t source_port = 0;
  std::uint16_t target_port = 0;
  std::uint8_t dscp = 0;
};

enum class Ecn : std::uint8_t { not_ect = 0, ect1 = 1, ect0 = 2, ce = 3 };

inline constexpr std::size_t l2_l4_bytes_max = ethernet_ipv6_udp_bytes;

/// build_headers writes the template (ECT(0), hop limit 64, IPv4 with DF, id 0), 42 or 62 bytes.
[[nodiscard]] std::size_t build_headers(const UdpFlow& flow,
                                        std::span<std::byte, l2_l4_bytes_max> out) noexcept;

/// HeaderTemplate: a template and the sum of its constant part, for a port. Engine core only.
class HeaderTemplate {
 public:
  HeaderTemplate() = default;
  /// A template has 42 or 62 bytes; any other length is our own bug.
  explicit HeaderTemplate(std::span<const std::byte> header_template) noexcept;
  /// size is 42 or 62; 0 before there was a template.
  [[nodiscard]] std::size_t size() const noexcept { return bytes_; }
  /// write puts the headers at `at`, which has size() bytes, with lengths and checksums; `payload`
  /// follows. IPv4: header checksum, no UDP checksum (zero means none, RFC 768; AEAD covers the
  /// payload). IPv6: the UDP checksum over `payload` (RFC 8200 8.1 demands it). The payload must
  /// fit an IP packet of 65535 bytes.
  void write(std::byte* at, std::span<const std::byte> payload) const noexcept;

 private:
  std::array<std::byte, l2_l4_bytes_max> header_{};
  std::size_t bytes_ = 0;
  std::uint64_t sum_ = 0;  // IPv4: its header; IPv6: pseudo and UDP header; without lengths
};

/// target_of and source_of read whole headers of 42 or 62 bytes, a template or a frame's;
/// set_target_port changes a template, whose checksums are zero.
[[nodiscard]] Endpoint target_of(std::span<const std::byte> headers) noexcept;
[[nodiscard]] Endpoint source_of(std::span<const std::byte> headers) noexcept;
void set_target_port(std::span<std::byte> header_template, std::uint16_t port) noexcept;

/// UdpFrame: a received frame, as views and values. `payload` points into it.
struct UdpFrame {
  std::span<const std::byte> payload;  ///< what of it lies in the bytes that were looked at
  std::size_t payload_bytes = 0;       ///< all of it
  MacAddress source_mac{};
  bool is_ipv6 = false;
  IpBytes source_ip{};
  IpBytes target_ip{};
  std::uint16_t source_port = 0;
  std::uint16_t target_port = 0;
  Ecn ecn = Ecn::not_ect;
};

/// parse_udp_frame takes an Ethernet frame (padding at its end allowed) and rejects what is not one
/// whole UDP datagram: other protocols, options or extension headers, fragments, lengths that
/// disagree. Checksums are not looked at: the AEAD authenticates the payload, and a wrong address
/// finds no key. The second form takes the first piece, with the headers, of `frame_bytes` bytes.
[[nodiscard]] std::optional<UdpFrame> parse_udp_frame(std::span<const std::byte> frame) noexcept;
[[nodiscard]] std::optional<UdpFrame> parse_udp_frame(std::span<const std::byte> first,
                                                      std::size_t frame_bytes) noexcept;

/// ones_complement_sum adds `data` as 16-bit words in memory order (RFC 1071 section 2: byte order
/// does not matter), an odd byte padded with zero. fold_sum brings sums to 16 bits.
[[nodiscard]] std::uint64_t ones_complement_sum(std::span<const std::byte> data) noexcept;
[[nodiscard]] std::uint16_t fold_sum(std::uint64_t sum) noexcept;

}  // namespace onehop::wire
