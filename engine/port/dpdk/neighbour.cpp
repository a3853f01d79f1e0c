// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "engine/port/dpdk/neighbour.hpp"

#include <algorithm>
#include <boost/endian/conversion.hpp>
#include <cstring>

#include "engine/base/byte_codec.hpp"

namespace onehop::dpdk {

namespace {

constexpr std::uint16_t ethertype_arp = 0x0806, ethertype_ipv6 = 0x86dd, ethertype_ipv4 = 0x0800;
constexpr std::size_t ethernet_bytes = 14, arp_bytes = 28,
                      frame_bytes_min = 60;  // without the check sequence
// ARP, offsets from the frame's start. //= RFC 826
constexpr std::size_t arp_at = ethernet_bytes, arp_operation_at = arp_at + 6,
                      arp_sender_mac_at = arp_at + 8, arp_sender_ip_at = arp_at + 14,
                      arp_target_mac_at = arp_at + 18, arp_target_ip_at = arp_at + 24;
constexpr std::uint16_t arp_ethernet = 1, arp_request = 1, arp_reply = 2;
// IPv6 and ICMPv6. //= RFC 4861 §4.3
constexpr std::size_t ip_at = ethernet_bytes, ip_length_at = ip_at + 4, ip_next_at = ip_at + 6,
                      ip_hops_at = ip_at + 7, ip_source_at = ip_at + 8, ip_target_at = ip_at + 24,
                      icmp_at = ip_at + 40, icmp_code_at = icmp_at + 1, icmp_sum_at = icmp_at + 2,
                      icmp_flags_at = icmp_at + 4, icmp_target_at = icmp_at + 8,
                      icmp_option_at = icmp_at + 24;
constexpr std::size_t icmp_bytes_min = 24, icmp_bytes = 32;  // without and with the one option
constexpr std::uint8_t protocol_icmp6 = 58, solicitation = 135, advertisement = 136,
                       option_source = 1, option_target = 2;
constexpr std::uint8_t hop_limit = 255;  // a router would have lowered it //= RFC 4861 §7.1.1
constexpr std::uint32_t is_solicited_and_overrides = 0x6000'0000;
static_assert(icmp_at + icmp_bytes == neighbour_bytes_max);

constexpr MacAddress broadcast{std::byte{0xff}, std::byte{0xff}, std::byte{0xff},
                               std::byte{0xff}, std::byte{0xff}, std::byte{0xff}};

std::uint8_t u8_at(std::span<const std::byte> frame, std::size_t at) noexcept {
  return std::to_integer<std::uint8_t>(frame[at]);
}

template <std::size_t N>
void put(std::byte* to, const std::array<std::byte, N>& value, std::size_t bytes = N) noexcept {
  std::memcpy(to, value.data(), bytes);
}
template <std::size_t N>
void get(std::array<std::byte, N>& value, const std::byte* from, std::size_t bytes = N) noexcept {
  std::memcpy(value.data(), from, bytes);
}

void put_ethernet(std::byte* at, const MacAddress& target, const MacAddress& source,
                  std::uint16_t type) noexcept {
  put(at, target);
  put(at + 6, source);
  store_be(at + 12, type);
}

std::size_t build_arp(std::uint16_t operation, const NeighbourHost& self,
                      const NeighbourHost& other, std::byte* at) noexcept {
  const bool is_question = operation == arp_request;
  put_ethernet(at, is_question ? broadcast : other.mac, self.mac, ethertype_arp);
  store_be(at + arp_at, arp_ethernet);
  store_be(at + arp_at + 2, ethertype_ipv4);
  at[arp_at + 4] = std::byte{6};
  at[arp_at + 5] = std::byte{4};
  store_be(at + arp_operation_at, operation);
  put(at + arp_sender_mac_at, self.mac);
  put(at + arp_sender_ip_at, self.ip, 4);
  if (!is_question) put(at + arp_target_mac_at, other.mac);
  put(at + arp_target_ip_at, other.ip, 4);
  return frame_bytes_min;  // padded with zeros: not every device does it
}

/// The sum over pseudo header and message, folded: 0xffff where the checksum in it is right. //=
/// RFC 8200 §8.1
std::uint16_t icmp_sum(const std::byte* at, std::size_t message_bytes) noexcept {
  std::uint64_t sum = wire::ones_complement_sum({at + ip_source_at, 32}) +
                      wire::ones_complement_sum({at + icmp_at, message_bytes});
  sum += boost::endian::native_to_big(static_cast<std::uint16_t>(message_bytes));
  sum += boost::endian::native_to_big(std::uint16_t{protocol_icmp6});
  return wire::fold_sum(sum);
}

std::size_t build_icmp(std::uint8_t type, std::uint32_t flags, const IpBytes& source,
                       const IpBytes& target, const IpBytes& subject, const MacAddress& option,
                       std::byte* at) noexcept {
  store_be<std::uint32_t>(at + ip_at, 6U << 28);
  store_be<std::uint16_t>(at + ip_length_at, icmp_bytes);
  at[ip_next_at] = std::byte{protocol_icmp6};
  at[ip_hops_at] = std::byte{hop_limit};
  put(at + ip_source_at, source);
  put(at + ip_target_at, target);
  at[icmp_at] = std::byte{type};
  store_be(at + icmp_flags_at, flags);
  put(at + icmp_target_at, subject);
  at[icmp_option_at] = std::byte{type == solicitation ? option_source : option_target};
  at[icmp_option_at + 1] = std::byte{1};  // in units of eight bytes
  put(at + icmp_option_at + 2, option);
  const auto checksum = static_cast<std::uint16_t>(~icmp_sum(at, icmp_bytes));
  std::memcpy(at + icmp_sum_at, &checksum, sizeof checksum);
  return neighbour_bytes_max;
}

std::optional<NeighbourMessage> parse_arp(std::span<const std::byte> frame) noexcept {
  if (frame.size() < ethernet_bytes + arp_bytes) return std::nullopt;
  const std::byte* const at = frame.data();
  const std::uint16_t operation = load_be<std::uint16_t>(at + arp_operation_at);
  if (load_be<std::uint16_t>(at + arp_at) != arp_ethernet ||
      load_be<std::uint16_t>(at + arp_at + 2) != ethertype_ipv4 || u8_at(frame, arp_at + 4) != 6 ||
      u8_at(frame, arp_at + 5) != 4)
    return std::nullopt;
  if (operation != arp_request && operation != arp_reply) return std::nullopt;
  NeighbourMessage message;
  message.is_question = operation == arp_request;
  get(message.sender.mac, at + arp_sender_mac_at);
  get(message.sender.ip, at + arp_sender_ip_at, 4);
  get(message.target_ip, at + arp_target_ip_at, 4);
  return message;
}

/// link_address is the option of that type, or nothing. Options of length zero end the message. //=
/// RFC 4861 §4.6
std::optional<MacAddress> link_address(std::span<const std::byte> options,
                                       std::uint8_t type) noexcept {
  while (options.size() >= 8) {
    const std::size_t bytes = std::size_t{u8_at(options, 1)} * 8;
    if (bytes == 0 || bytes > options.size()) return std::nullopt;
    if (u8_at(options, 0) == type && bytes == 8) {
      MacAddress mac;
      get(mac, options.data() + 2);
      return mac;
    }
    options = options.subspan(bytes);
  }
  return std::nullopt;
}

std::optional<NeighbourMessage> parse_icmp(std::span<const std::byte> frame) noexcept {
  if (frame.size() < icmp_at + icmp_bytes_min) return std::nullopt;
  const std::byte* const at = frame.data();
  const std::size_t bytes = load_be<std::uint16_t>(at + ip_length_at);
  if (u8_at(frame, ip_next_at) != protocol_icmp6 || u8_at(frame, ip_hops_at) != hop_limit)
    return std::nullopt;
  if (bytes < icmp_bytes_min || bytes > frame.size() - icmp_at) return std::nullopt;
  const std::uint8_t type = u8_at(frame, icmp_at);
  if ((type != solicitation && type != advertisement) || u8_at(frame, icmp_code_at) != 0)
    return std::nullopt;
  if (icmp_sum(at, bytes) != 0xffff) return std::nullopt;
  NeighbourMessage message;
  message.is_ipv6 = true;
  message.is_question = type == solicitation;
  const auto options = frame.subspan(icmp_option_at, bytes - icmp_bytes_min);
  const auto mac = link_address(options, message.is_question ? option_source : option_target);
  get(message.sender.ip, at + (message.is_question ? ip_source_at : icmp_target_at));
  get(message.target_ip, at + icmp_target_at);
  // A question without the option can be answered to where it came from; an answer tells nothing.
  if (!mac && !message.is_question) return std::nullopt;
  if (mac)
    message.sender.mac = *mac;
  else
    get(message.sender.mac, at + 6);
  return message;
}

}  // namespace

std::size_t build_question(const NeighbourHost& self, const IpBytes& target, bool is_ipv6,
                           std::span<std::byte, neighbour_bytes_max> out) noexcept {
  std::ranges::fill(out, std::byte{0});
  if (!is_ipv6) return build_arp(arp_request, self, {{}, target}, out.data());
  // To the solicited-node group of the target. //= RFC 4291 §2.7.1
  IpBytes group{};
  group[0] = std::byte{0xff};
  group[1] = std::byte{0x02};
  group[11] = std::byte{0x01};
  group[12] = std::byte{0xff};
  std::copy(target.begin() + 13, target.end(), group.begin() + 13);
  const MacAddress group_mac{std::byte{0x33}, std::byte{0x33}, group[12],
                             group[13],       group[14],       group[15]};
  put_ethernet(out.data(), group_mac, self.mac, ethertype_ipv6);
  return build_icmp(solicitation, 0, self.ip, group, target, self.mac, out.data());
}

std::size_t build_answer(const NeighbourHost& self, const NeighbourMessage& question,
                         std::span<std::byte, neighbour_bytes_max> out) noexcept {
  std::ranges::fill(out, std::byte{0});
  if (!question.is_ipv6) return build_arp(arp_reply, self, question.sender, out.data());
  put_ethernet(out.data(), question.sender.mac, self.mac, ethertype_ipv6);
  return build_icmp(advertisement, is_solicited_and_overrides, self.ip, question.sender.ip, self.ip,
                    self.mac, out.data());
}

std::optional<NeighbourMessage> parse_neighbour(std::span<const std::byte> frame) noexcept {
  if (frame.size() < ethernet_bytes) return std::nullopt;
  switch (load_be<std::uint16_t>(frame.data() + 12)) {
    case ethertype_arp: return parse_arp(frame);
    case ethertype_ipv6: return parse_icmp(frame);
    default: return std::nullopt;
  }
}

}  // namespace onehop::dpdk
