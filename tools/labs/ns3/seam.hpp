// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// The seam between ns-3 (C++17 only: its headers do not compile as C++20) and the engine (C++20):
// plain structs and abstract classes, raw integers with their unit in the name.
//
//   ns-3, C++17                        |  engine, C++20
//   EngineApp (ns3::Application) ──────┼─▶ End: turn(now), deliver(frame)
//   UDP socket, MAC queue, PHY ◀───────┼── Air: send(frame), what left the MAC queue, link facts
//
// One thread; nothing here reads a clock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "tools/labs/ns3/run_spec.hpp"

namespace onehop::sim {

/// LinkReading: what the ns-3 MAC and PHY of one device say. Bytes are counted as an Ethernet frame
/// would be, with L2, IP and UDP headers: the unit of PathReport::tx_queue. Totals only grow.
struct LinkReading {
  std::uint64_t queue_bytes = 0;          ///< MAC queue and qdisc, all flows
  std::uint64_t drained_bytes_total = 0;  ///< left the MAC queue for good: acknowledged or given up
  std::uint64_t capacity_bytes = 0;
  std::uint64_t phy_rate_bps = 0;  ///< of the newest data PSDU; 0: none yet
  std::uint64_t aggregate_max_bytes = 0;
  std::int64_t active_ns_total = 0, busy_ns_total = 0;
  std::int64_t link_tx_ns_total = 0;  ///< air of our data frames to this peer
  std::uint64_t mac_frames_total = 0, mac_retries_total = 0, mac_failed_total = 0;
  /// Newest: from one PSDU's start to the next while the queue was not empty
  std::int64_t exchange_ns = 0;
  /// heard sending data in the last second, ourselves included; 0: unknown
  std::uint32_t stations = 0;
};

/// Air: one end's way to the other over ns-3. Implemented on ns-3's side.
class Air {
 public:
  virtual ~Air() = default;
  /// send hands one datagram down; 0 or an errno. It never blocks.
  virtual int send(const std::byte* frame, std::uint32_t length_bytes) = 0;
  /// What of our own frames has left the lower queue for good, and how many frames it threw away.
  [[nodiscard]] virtual std::uint64_t left_bytes_total() const = 0;
  [[nodiscard]] virtual std::uint64_t refused_frames_total() const = 0;
  [[nodiscard]] virtual LinkReading read_link() const = 0;
};

/// End: one end of a transfer: its loop, and on the sending side its control loop. Implemented on
/// the engine's side.
class End {
 public:
  virtual ~End() = default;
  /// turn does what is due and returns when it wants its next turn.
  virtual std::int64_t turn(std::int64_t now_ns) = 0;
  virtual void deliver(const std::byte* frame, std::uint32_t length_bytes) = 0;
  /// wants_frames: a frame that arrives brings the next turn forward.
  [[nodiscard]] virtual bool wants_frames() const = 0;
};

/// TransferState: what the harness may know of a transfer; totals over the whole run.
struct TransferState {
  std::uint64_t bytes_accepted = 0;  ///< file bytes at the receiver, first copies
  std::uint64_t bytes_started = 0;   ///< file bytes that left the pacer for the first time
  std::uint64_t bytes_checked = 0, bytes_wrong = 0;
  std::uint64_t bytes_retransmitted = 0, packets_sent = 0, packets_lost = 0, feedback_frames = 0;
  std::uint64_t grant_bytes_per_s = 0, backlog_bytes = 0, target_bytes = 0;
  bool is_complete = false;
  std::int64_t complete_ns = 0;
  std::string failure;
};

class Transfer {
 public:
  virtual ~Transfer() = default;
  [[nodiscard]] virtual End& sender() = 0;
  [[nodiscard]] virtual End& receiver() = 0;
  [[nodiscard]] virtual TransferState state() const = 0;
};

/// make_transfer composes both ends over their Airs, which must outlive it. The flow's law must be
/// a known one.
[[nodiscard]] std::unique_ptr<Transfer> make_transfer(const FlowSpec& flow,
                                                      std::uint32_t frame_bytes, std::uint64_t seed,
                                                      Air& sender, Air& receiver);

/// is_law says whether make_transfer knows the flow's law; if not, `why` tells what would be legal.
[[nodiscard]] bool is_law(const FlowSpec& flow, std::string& why);

}  // namespace onehop::sim
