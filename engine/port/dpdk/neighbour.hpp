// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Address resolution on a link that a port owns whole, where no kernel answers for us: ARP (RFC
// 826) for IPv4, neighbour solicitation and advertisement (RFC 4861 section 4.3, 4.4) for IPv6.
//
//   we:   who has PEER? tell ME ──▶ link ──▶ peer: PEER is at its MAC
//   peer: who has ME? ──▶ link ──▶ we: ME is at our MAC
//
// These messages are not authenticated, here as in every kernel: an attacker on the link can send
// our frames astray, and no more, because frames are sealed. Pure functions on spans.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "engine/wire/l2_l4.hpp"

namespace onehop::dpdk {

/// The longest message: Ethernet 14, IPv6 40, ICMPv6 24, one option 8.
inline constexpr std::size_t neighbour_bytes_max = 86;

/// NeighbourHost: one end of the link.
struct NeighbourHost {
  MacAddress mac{};
  IpBytes ip{};
};

/// NeighbourMessage: a question for target_ip, or its answer; `sender` is who says so.
struct NeighbourMessage {
  bool is_question = false;
  bool is_ipv6 = false;
  NeighbourHost sender;  ///< of an answer: the address asked for; IPv6 may have none
  IpBytes target_ip{};   ///< of a question
};

/// build_question asks the link who has `target`; returns the frame's length.
[[nodiscard]] std::size_t build_question(const NeighbourHost& self, const IpBytes& target,
                                         bool is_ipv6,
                                         std::span<std::byte, neighbour_bytes_max> out) noexcept;
/// build_answer tells the sender of `question` where we are; returns the frame's length.
[[nodiscard]] std::size_t build_answer(const NeighbourHost& self, const NeighbourMessage& question,
                                       std::span<std::byte, neighbour_bytes_max> out) noexcept;
/// parse_neighbour reads one of either kind; nothing for any other frame, or a wrong one.
[[nodiscard]] std::optional<NeighbourMessage> parse_neighbour(
    std::span<const std::byte> frame) noexcept;

}  // namespace onehop::dpdk
