// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// VirtualPort: a Port in memory and in virtual time, for tests, the simulator and ns-3.
//
// wait() does not sleep: it notes the deadline, and the driver of the world moves time on (see
// ready_at()). Its telemetry is exact. It owns the frames lent to it; the link owns their memory.
// One thread.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "engine/port/port.hpp"
#include "tools/labs/world/virtual_link.hpp"

namespace onehop {

class VirtualPort {
 public:
  /// Implementation constant: committed frames before a flush; more and lend() is empty.
  static constexpr std::size_t pending_frames_max = 256;

  VirtualPort(VirtualLink& link, std::size_t end) noexcept : link_{&link}, end_{end} {}

  [[nodiscard]] std::span<std::byte> lend(std::size_t n) noexcept;
  void commit(std::size_t n) noexcept;
  [[nodiscard]] std::size_t flush(Instant now) noexcept;
  [[nodiscard]] std::size_t receive(std::span<RxFrame> views) noexcept;
  void release() noexcept;
  [[nodiscard]] QueueTelemetry tx_queue(Instant now) noexcept;
  [[nodiscard]] QueueTelemetry rx_ring(Instant now) noexcept;
  std::uint32_t wait(Instant deadline, bool is_rx_wanted) noexcept;
  void update_path(const PathUpdate& update) noexcept;
  [[nodiscard]] std::uint64_t syscalls_total() const noexcept { return 0; }
  [[nodiscard]] PortInfo info() const noexcept;
  [[nodiscard]] int last_error() const noexcept { return last_error_; }
  void wake() noexcept { is_woken_ = true; }

  /// ready_at is when the wait() called last returns, as far as is known now; the driver runs the
  /// link up to the earliest of this and VirtualLink::next_event(), and asks again.
  [[nodiscard]] Instant ready_at() const noexcept;

 private:
  VirtualLink* link_;
  std::size_t end_;
  std::array<VirtualLink::FrameIndex, pending_frames_max> pending_{};
  std::size_t pending_head_ = 0;
  std::size_t pending_tail_ = 0;
  VirtualLink::FrameIndex lent_ = VirtualLink::no_frame;
  std::size_t lent_bytes_ = 0;
  std::array<VirtualLink::FrameIndex, rx_batch_max> views_{};
  std::size_t views_lent_ = 0;
  Bytes accepted_{};
  Bytes refused_{};
  Bytes pending_wire_{};
  std::uint64_t refused_total_ = 0;
  int last_error_ = 0;
  Instant deadline_{};
  bool is_rx_wanted_ = false;
  bool is_woken_ = false;
};

static_assert(Port<VirtualPort>);

}  // namespace onehop
