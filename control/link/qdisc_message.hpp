// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Parser of RTM_NEWQDISC messages. Pure: bytes in, values out; no socket. A message that is too
// short, has attributes beyond its end or is of another type gives nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "engine/base/telemetry.hpp"

namespace onehop::link {

/// QdiscReading: one qdisc as the kernel reports it.
struct QdiscReading {
  int ifindex = 0;
  std::uint32_t handle = 0;
  std::uint32_t parent = 0;  ///< TC_H_ROOT for a root qdisc
  std::string kind;
  bool has_stats = false;
  std::uint64_t backlog_bytes = 0;
  std::uint64_t sent_bytes_total = 0;  ///< counted when dequeued
  std::uint64_t drops_total = 0;
  std::uint64_t limit_bytes = 0;    ///< tbf, bfifo; 0: unknown
  std::uint64_t limit_packets = 0;  ///< pfifo and kin; 0: unknown
};

[[nodiscard]] std::optional<QdiscReading> parse_qdisc(std::span<const std::byte> message);

/// pick_queue finds the backlog of `ifindex`'s root qdisc among a dump's readings. nullopt for
/// noqueue, for a device without a root and for a root without statistics. `packet_bytes` turns a
/// limit in packets into bytes.
[[nodiscard]] std::optional<QueueTelemetry> pick_queue(std::span<const QdiscReading> readings,
                                                       int ifindex, Instant at,
                                                       std::uint64_t packet_bytes,
                                                       std::uint64_t tx_queue_len);

}  // namespace onehop::link
