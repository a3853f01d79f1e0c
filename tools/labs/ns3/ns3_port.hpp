// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Ns3Port: a Port over an ns-3 socket, in virtual time.
//
//   lend ─▶ slot ─▶ commit ... flush ─▶ Air::send ─▶ UDP/IP ─▶ [qdisc | MAC queue] )))
//                                                               └─ Air::left_bytes_total
//   receive ◀─ ring ◀─ arrive() ◀─ socket
//
// Its telemetry sees the MAC queue itself: a frame counts as standing until the MAC has its
// acknowledgement or gave up. A blind one sees its own side alone, as a socket over a device that
// takes every frame at once: what it has sent is gone. wait() does not sleep; it notes what
// End::turn returns. Owns its frames; one thread.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/port/port.hpp"
#include "tools/labs/ns3/seam.hpp"

namespace onehop::sim {

class Ns3Port {
 public:
  static constexpr std::size_t pending_frames_max = 256;  ///< committed frames before a flush
  /// Of a receive ring: 16,384 frames of a packet each, 25 MB, as a large socket buffer.
  static constexpr std::size_t ring_bytes_max = std::size_t{1} << 25;
  static constexpr std::size_t single_bytes_max = 2048;  ///< a frame of a packet, and slack

  struct Config {
    Bytes capacity{};
    bool is_blind = false;
    std::size_t frame_bytes_max = single_bytes_max;
    std::size_t large_frame_bytes = 0;  ///< 0: it has none (run/frame_size.hpp)
  };
  Ns3Port(Air& air, const Config& config);

  [[nodiscard]] std::span<std::byte> lend(std::size_t n) noexcept;
  void commit(std::size_t n) noexcept;
  [[nodiscard]] std::size_t flush(Instant now) noexcept;
  [[nodiscard]] std::size_t receive(std::span<RxFrame> views) noexcept;
  void release() noexcept;
  [[nodiscard]] QueueTelemetry tx_queue(Instant now) noexcept;
  [[nodiscard]] QueueTelemetry rx_ring(Instant now) noexcept;
  std::uint32_t wait(Instant deadline, bool is_rx_wanted) noexcept;
  void update_path(const PathUpdate&) noexcept {}
  [[nodiscard]] std::uint64_t syscalls_total() const noexcept { return 0; }
  [[nodiscard]] PortInfo info() const noexcept;
  [[nodiscard]] int last_error() const noexcept { return last_error_; }
  [[nodiscard]] std::size_t large_frame_bytes() const noexcept { return config_.large_frame_bytes; }
  void end_large_frames() noexcept { config_.large_frame_bytes = 0; }

  /// standing is what of ours the lower queue really holds, whatever the telemetry sees.
  [[nodiscard]] Bytes standing() const noexcept;
  /// arrive puts a datagram into the ring.
  void arrive(const std::byte* frame, std::size_t length) noexcept;
  [[nodiscard]] bool is_rx_wanted() const noexcept { return is_rx_wanted_; }
  [[nodiscard]] bool has_arrived() const noexcept { return ring_head_ != ring_tail_; }
  /// has_drained: frames have left the lower queue since the last wait(), which ends then, as a
  /// socket's does when its send buffer has room. So the queue is refilled when the MAC has its
  /// Block Ack, and not a nap later.
  [[nodiscard]] bool has_drained() const noexcept {
    return !config_.is_blind && air_.left_bytes_total() != left_at_wait_;
  }

 private:
  static constexpr Bytes overhead{42};  // Ethernet, IPv4, UDP: the unit that every port counts in
  [[nodiscard]] std::byte* slot_of(std::size_t index) noexcept {
    return memory_.get() + index * config_.frame_bytes_max;
  }

  Air& air_;
  Config config_;
  const std::size_t ring_frames_;
  std::unique_ptr<std::byte[]> memory_;  // pending slots, then the ring's
  std::array<std::size_t, pending_frames_max> pending_length_{};
  std::size_t pending_ = 0;
  std::size_t lent_bytes_ = 0;
  std::vector<std::size_t> ring_length_;
  std::size_t ring_head_ = 0, ring_tail_ = 0, views_lent_ = 0;
  Bytes accepted_{};
  Bytes ring_bytes_{}, taken_{};
  std::uint64_t ring_refused_ = 0, send_refused_ = 0;
  Bytes send_refused_bytes_{};
  std::uint64_t left_at_wait_ = 0;
  int last_error_ = 0;
  bool is_rx_wanted_ = true;
};

static_assert(Port<Ns3Port>);

}  // namespace onehop::sim
