// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Headers for raw ports. Sums are kept in memory byte order throughout (RFC 1071 section 2), so
// that checksums are stored without swapping and only the lengths, added as numbers, are.
#include "engine/wire/l2_l4.hpp"

#include <algorithm>
#include <boost/endian/conversion.hpp>
#include <cstring>

#include "engine/base/byte_codec.hpp"
#include "engine/base/check.hpp"

namespace onehop::wire {

namespace {

// Layout of the headers, offsets from the start of the Ethernet frame.
constexpr std::size_t ethernet_bytes = 14, ipv4_bytes = 20, ipv6_bytes = 40, udp_bytes = 8;
constexpr std::size_t ethertype_at = 12, ip_at = ethernet_bytes;
constexpr std::size_t v4_dscp_at = ip_at + 1, v4_length_at = ip_at + 2, v4_fragment_at = ip_at + 6,
                      v4_ttl_at = ip_at + 8, v4_protocol_at = ip_at + 9,
                      v4_checksum_at = ip_at + 10, v4_source_at = ip_at + 12,
                      v4_target_at = ip_at + 16, v4_udp_at = ip_at + ipv4_bytes;
constexpr std::size_t v6_length_at = ip_at + 4, v6_next_at = ip_at + 6, v6_hops_at = ip_at + 7,
                      v6_source_at = ip_at + 8, v6_target_at = ip_at + 24,
                      v6_udp_at = ip_at + ipv6_bytes;
constexpr std::size_t udp_length_at = 4, udp_checksum_at = 6;  // from the UDP header
static_assert(v4_udp_at + udp_bytes == ethernet_ipv4_udp_bytes);
static_assert(v6_udp_at + udp_bytes == ethernet_ipv6_udp_bytes);

constexpr std::uint16_t ethertype_ipv4 = 0x0800, ethertype_ipv6 = 0x86dd;
constexpr std::uint8_t protocol_udp = 17, hop_limit = 64;
constexpr std::uint16_t dont_fragment = 0x4000,
                        fragment_mask = 0x3fff;  // more-fragments bit and offset

void store_sum(std::byte* to, std::uint16_t sum) noexcept { std::memcpy(to, &sum, sizeof sum); }
std::uint8_t load_u8(const std::byte* from) noexcept {
  return std::to_integer<std::uint8_t>(*from);
}

}  // namespace

std::uint64_t ones_complement_sum(std::span<const std::byte> data) noexcept {
  // 64-bit loads, added as two halves of 32 bits: no carry is lost below 2^32 words.
  std::uint64_t low = 0, high = 0;
  std::size_t at = 0;
  for (; at + 8 <= data.size(); at += 8) {
    std::uint64_t word;
    std::memcpy(&word, data.data() + at, sizeof word);
    low += word & 0xffff'ffffU;
    high += word >> 32;
  }
  if (at < data.size()) {
    std::uint64_t word = 0;
    std::memcpy(&word, data.data() + at, data.size() - at);
    low += word & 0xffff'ffffU;
    high += word >> 32;
  }
  return low + high;
}

std::uint16_t fold_sum(std::uint64_t sum) noexcept {
  sum = (sum & 0xffff'ffffU) + (sum >> 32);
  sum = (sum & 0xffffU) + (sum >> 16);
  sum = (sum & 0xffffU) + (sum >> 16);
  sum = (sum & 0xffffU) + (sum >> 16);
  return static_cast<std::uint16_t>(sum);
}

std::size_t build_headers(const UdpFlow& flow, std::span<std::byte, l2_l4_bytes_max> out) noexcept {
  ONEHOP_CHECK(flow.dscp < 64);
  std::ranges::fill(out, std::byte{0});
  std::byte* const at = out.data();
  std::memcpy(at, flow.target_mac.data(), flow.target_mac.size());
  std::memcpy(at + flow.target_mac.size(), flow.source_mac.data(), flow.source_mac.size());
  store_be<std::uint16_t>(at + ethertype_at, flow.is_ipv6 ? ethertype_ipv6 : ethertype_ipv4);
  const auto traffic_class = static_cast<std::uint8_t>((static_cast<unsigned>(flow.dscp) << 2) |
                                                       static_cast<unsigned>(Ecn::ect0));
  if (flow.is_ipv6) {
    store_be<std::uint32_t>(at + ip_at,
                            (6U << 28) | (static_cast<std::uint32_t>(traffic_class) << 20));
    at[v6_next_at] = std::byte{protocol_udp};
    at[v6_hops_at] = std::byte{hop_limit};
    std::memcpy(at + v6_source_at, flow.source_ip.data(), 16);
    std::memcpy(at + v6_target_at, flow.target_ip.data(), 16);
  } else {
    at[ip_at] = std::byte{0x45};
    at[v4_dscp_at] = static_cast<std::byte>(traffic_class);
    store_be(at + v4_fragment_at, dont_fragment);
    at[v4_ttl_at] = std::byte{hop_limit};
    at[v4_protocol_at] = std::byte{protocol_udp};
    std::memcpy(at + v4_source_at, flow.source_ip.data(), 4);
    std::memcpy(at + v4_target_at, flow.target_ip.data(), 4);
  }
  std::byte* const udp = at + (flow.is_ipv6 ? v6_udp_at : v4_udp_at);
  store_be(udp, flow.source_port);
  store_be(udp + 2, flow.target_port);
  return flow.is_ipv6 ? ethernet_ipv6_udp_bytes : ethernet_ipv4_udp_bytes;
}

HeaderTemplate::HeaderTemplate(std::span<const std::byte> header_template) noexcept
    : bytes_{header_template.size()} {
  const bool is_ipv6 = bytes_ == ethernet_ipv6_udp_bytes;
  ONEHOP_CHECK(is_ipv6 || bytes_ == ethernet_ipv4_udp_bytes);
  std::memcpy(header_.data(), header_template.data(), bytes_);
  sum_ = is_ipv6 ? ones_complement_sum(header_template.subspan(v6_source_at, 32)) +
                       ones_complement_sum(header_template.subspan(v6_udp_at, 4)) +
                       boost::endian::native_to_big<std::uint16_t>(protocol_udp)
                 : ones_complement_sum(header_template.subspan(ip_at, ipv4_bytes));
}

void HeaderTemplate::write(std::byte* at, std::span<const std::byte> payload) const noexcept {
  ONEHOP_CHECK(bytes_ > 0);
  ONEHOP_CHECK(payload.size() <= 65'535 - ipv4_bytes - udp_bytes);
  std::memcpy(at, header_.data(), bytes_);
  const auto udp_length = static_cast<std::uint16_t>(payload.size() + udp_bytes);
  if (bytes_ == ethernet_ipv4_udp_bytes) {
    const auto ip_length = static_cast<std::uint16_t>(udp_length + ipv4_bytes);
    store_be(at + v4_length_at, ip_length);
    store_be(at + v4_udp_at + udp_length_at, udp_length);
    const std::uint16_t sum = fold_sum(sum_ + boost::endian::native_to_big(ip_length));
    store_sum(at + v4_checksum_at, static_cast<std::uint16_t>(~sum));
    return;
  }
  store_be(at + v6_length_at, udp_length);
  store_be(at + v6_udp_at + udp_length_at, udp_length);
  // The length counts twice: in the pseudo header and in the UDP header.
  const std::uint64_t length_sum =
      2U * static_cast<std::uint64_t>(boost::endian::native_to_big(udp_length));
  const auto checksum =
      static_cast<std::uint16_t>(~fold_sum(sum_ + length_sum + ones_complement_sum(payload)));
  store_sum(at + v6_udp_at + udp_checksum_at,
            checksum == 0 ? std::uint16_t{0xffff} : checksum);  // zero means none
}

namespace {

Endpoint endpoint_at(std::span<const std::byte> headers, std::size_t v4_at, std::size_t v6_at,
                     std::size_t port_at) noexcept {
  Endpoint end;
  end.address.is_v6 = headers.size() == ethernet_ipv6_udp_bytes;
  ONEHOP_CHECK(end.address.is_v6 || headers.size() == ethernet_ipv4_udp_bytes);
  std::memcpy(end.address.bytes.data(), headers.data() + (end.address.is_v6 ? v6_at : v4_at),
              end.address.size_bytes());
  end.port = load_be<std::uint16_t>(headers.data() + headers.size() - udp_bytes + port_at);
  return end;
}

}  // namespace

Endpoint target_of(std::span<const std::byte> headers) noexcept {
  return endpoint_at(headers, v4_target_at, v6_target_at, 2);
}

Endpoint source_of(std::span<const std::byte> headers) noexcept {
  return endpoint_at(headers, v4_source_at, v6_source_at, 0);
}

void set_target_port(std::span<std::byte> header_template, std::uint16_t port) noexcept {
  store_be(header_template.data() + header_template.size() - udp_bytes + 2, port);
}

std::optional<UdpFrame> parse_udp_frame(std::span<const std::byte> frame) noexcept {
  return parse_udp_frame(frame, frame.size());
}

std::optional<UdpFrame> parse_udp_frame(std::span<const std::byte> first,
                                        std::size_t frame_bytes) noexcept {
  if (first.size() < ethernet_ipv4_udp_bytes || first.size() > frame_bytes) return std::nullopt;
  const std::byte* const at = first.data();
  UdpFrame parsed;
  std::memcpy(parsed.source_mac.data(), at + 6, 6);
  std::size_t udp_at = 0, ip_payload_bytes = 0;
  const std::uint16_t ethertype = load_be<std::uint16_t>(at + ethertype_at);
  if (ethertype == ethertype_ipv4) {
    const std::size_t ip_length = load_be<std::uint16_t>(at + v4_length_at);
    if (load_u8(at + ip_at) != 0x45) return std::nullopt;
    if (load_u8(at + v4_protocol_at) != protocol_udp) return std::nullopt;
    if ((load_be<std::uint16_t>(at + v4_fragment_at) & fragment_mask) != 0) return std::nullopt;
    if (ip_length < ipv4_bytes + udp_bytes || ip_length > frame_bytes - ip_at) return std::nullopt;
    std::memcpy(parsed.source_ip.data(), at + v4_source_at, 4);
    std::memcpy(parsed.target_ip.data(), at + v4_target_at, 4);
    parsed.ecn = static_cast<Ecn>(load_u8(at + v4_dscp_at) & 3);
    udp_at = v4_udp_at;
    ip_payload_bytes = ip_length - ipv4_bytes;
  } else if (ethertype == ethertype_ipv6) {
    if (first.size() < ethernet_ipv6_udp_bytes) return std::nullopt;
    const std::uint32_t first_word = load_be<std::uint32_t>(at + ip_at);
    ip_payload_bytes = load_be<std::uint16_t>(at + v6_length_at);
    if (first_word >> 28 != 6 || load_u8(at + v6_next_at) != protocol_udp) return std::nullopt;
    if (ip_payload_bytes < udp_bytes || ip_payload_bytes > frame_bytes - v6_udp_at)
      return std::nullopt;
    std::memcpy(parsed.source_ip.data(), at + v6_source_at, 16);
    std::memcpy(parsed.target_ip.data(), at + v6_target_at, 16);
    parsed.is_ipv6 = true;
    parsed.ecn = static_cast<Ecn>((first_word >> 20) & 3);
    udp_at = v6_udp_at;
  } else {
    return std::nullopt;
  }
  if (load_be<std::uint16_t>(at + udp_at + udp_length_at) != ip_payload_bytes) return std::nullopt;
  parsed.source_port = load_be<std::uint16_t>(at + udp_at);
  parsed.target_port = load_be<std::uint16_t>(at + udp_at + 2);
  parsed.payload_bytes = ip_payload_bytes - udp_bytes;
  parsed.payload = first.subspan(udp_at + udp_bytes);
  parsed.payload = parsed.payload.first(std::min(parsed.payload.size(), parsed.payload_bytes));
  return parsed;
}

}  // namespace onehop::wire
