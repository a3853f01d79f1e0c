// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// The types on the links between engine, control thread and session (ten links, no other sharing).
//
//   engine ── Latest<PathReport> ──▶ control ── Latest<RateGrant> ──▶ engine
//   control ── Latest<rate::RateState> ──▶ session ── Latest<Limits> ──▶ control
//   session ⇄ engine: SpscRing<Command> / SpscRing<Event> (engine/run)
//   file ⇄ engine: SpscRing<BlockRef> (block.hpp)
//   session ⇄ file: SpscRing<FileCommand> / SpscRing<FileEvent> (file_message.hpp)
#pragma once

#include <cstdint>

#include "engine/base/counters.hpp"
#include "engine/base/telemetry.hpp"
#include "engine/base/units.hpp"

namespace onehop {

/// PathReport: what the sender's engine core knows, published once a turn. Byte counts of queues
/// are payload bytes after conversion at the sensor, except tx_queue (wire bytes).
struct PathReport {
  Instant at{};
  QueueTelemetry tx_queue;    ///< our own lower queue, from the port
  Bytes tx_step{};            ///< wire bytes that left it since the report before this one
  Bytes tx_step_backlog{};    ///< ... of so many that stood there then
  Nanos tx_step_span{0};      ///< the time between the two; 0: there was none before
  QueueTelemetry rx_ring;     ///< the peer's receive ring or socket; `at` is the peer's clock
  QueueTelemetry app_buffer;  ///< the peer's blocks not yet on disk; `at` is the peer's clock
  Instant feedback_at{};      ///< our clock when the newest feedback arrived; epoch: none yet
  Nanos srtt{0};              ///< 0: no sample yet
  Nanos rtt{0};               ///< the newest sample
  std::uint64_t packets_sent_total = 0;
  std::uint64_t packets_reported_total = 0;    ///< of them, what packets_lost_total is a part of
  std::uint64_t packets_lost_total = 0;        ///< by feedback, less what our own queue refused
  std::uint64_t packets_ce_total = 0;          ///< CE marks that the peer counted
  std::uint64_t packets_link_acked_total = 0;  ///< of the frames that the link reports on: a sample
  std::uint64_t packets_link_failed_total = 0;  ///< likewise, after its last retry
  std::uint64_t link_changes_total = 0;  ///< times that the link was said to be down, or up again
  Bytes sent_total{};                           ///< wire bytes handed to the port
  Bytes offered{};              ///< file bytes that could be sent now (blocks read, not yet sent)
  Bytes payload_per_frame{};    ///< file bytes in a full frame
  Bytes wire_per_frame{};       ///< wire bytes (L2) of a full frame
  BytesPerSecond rate_offer{};  ///< what the peer takes at most, in wire bytes; 0: it set no bound
  bool is_credit_limited = false;  ///< the peer's credit, not the grant, held new data back
  DataPathCounters counters;
};

/// RateGrant: permission to send. Written by the control thread alone.
struct RateGrant {
  BytesPerSecond rate{};  ///< wire bytes (L2) per second
  Bytes backlog_max{};    ///< wire bytes that may stand in the lower queue
  Bytes backlog_low{};    ///< taken at one instant: while less stands, no frame waits for others
  std::uint32_t batch_frames = 44;  ///< frames per burst with one doorbell
  Nanos feedback_interval{0};       ///< 0: the default of srtt/4
  Nanos poll_interval{
      0};  ///< while data waits, at most between looks at the queue; 0: as it wishes
  bool is_rate_final = false;         ///< a user's limit: no higher one will come
  std::uint64_t nack_request_id = 0;  ///< a change asks the peer for its missing ranges at once
};

/// Bottleneck: the buffer whose term was the smallest in the last tick.
enum class Bottleneck : std::uint8_t { none, tx_queue, rx_ring, app_buffer, source, cap };

/// Limits: what the user and the peer allow. Written by the session alone.
struct Limits {
  BytesPerSecond rate_max{};   ///< 0: none
  BytesPerSecond link_rate{};  ///< what the interface claims, a hint for the start; 0: unknown, or
                               ///< a device of software, whose claim is worth nothing
};

}  // namespace onehop
