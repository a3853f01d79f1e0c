// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Parsers of RTM_NEWQDISC and RTM_NEWLINK messages. Pure: bytes in, values out; no socket. A message that is too short,
// has attributes beyond its end or is of another type gives nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "control/link/link_source.hpp"

namespace onehop::link {

/// QdiscReading: one qdisc as the kernel tells it.
struct QdiscReading {
  int ifindex = 0;
  std::uint32_t handle = 0;
  std::uint32_t parent = 0;      ///< TC_H_ROOT for a root qdisc
  std::string kind;
  bool has_stats = false;
  std::uint64_t backlog_bytes = 0;
  std::uint64_t qlen_packets = 0;
  std::uint64_t sent_bytes_total = 0;  ///< counted when dequeued
  std::uint64_t drops_total = 0;
  std::uint64_t limit_bytes = 0;       ///< tbf, bfifo; 0: unknown
  std::uint64_t limit_packets = 0;     ///< pfifo and kin; 0: unknown
};

[[nodiscard]] std::optional<QdiscReading> parse_qdisc(std::span<const std::byte> message);

/// LinkMessage: what RTM_NEWLINK says of one interface.
struct LinkMessage {
  int ifindex = 0;
  std::string name;
  std::string kind;              ///< IFLA_INFO_KIND; empty for hardware
  std::uint32_t mtu_bytes = 0;
  std::uint32_t tx_queue_len = 0;
  int lower_ifindex = 0;         ///< IFLA_LINK; 0: none
  bool is_lower_elsewhere = false;  ///< IFLA_LINK_NETNSID is there: the lower device is in another namespace
  bool is_loopback = false;
  bool is_running = false;       ///< IFF_UP and IFF_RUNNING
  std::optional<std::uint64_t> tx_dropped_total;  ///< IFLA_STATS64
};

[[nodiscard]] std::optional<LinkMessage> parse_link(std::span<const std::byte> message);

/// pick_queue finds what stands in `ifindex`'s root qdisc among a dump's readings. Nothing for noqueue, for a device
/// without a root and for a root without statistics. `packet_bytes` turns a limit in packets into bytes.
[[nodiscard]] std::optional<LowerQueue> pick_queue(std::span<const QdiscReading> readings, int ifindex, Instant at,
                                                   std::uint64_t packet_bytes, std::uint64_t tx_queue_len);

}  // namespace onehop::link
