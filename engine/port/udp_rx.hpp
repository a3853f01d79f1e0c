// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// UdpRx: frames in, by recvmmsg into fixed buffers, with UDP_GRO only where it pays.
//
// UDP_GRO makes the kernel hand over super-packets where the device (or loopback) coalesces, and
// costs more than it gives where it does not. So it starts on; when the first bulk frames show no
// super-packet, it is switched off for good, and the memory is cut into more slots.
//
//   on   [ 64 KiB slot ][ 64 KiB slot ] ...   a super-packet is handed out frame by frame
//   off  [slot][slot][slot][slot] ...         one frame each
//
// Owned and called by the engine core. It allocates at start only, and never blocks.
#pragma once

#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "engine/base/units.hpp"
#include "engine/port/port.hpp"
#include "engine/port/udp_socket.hpp"

namespace onehop {

class UdpRx {
 public:
  /// Implementation constant: bulk frames looked at before UDP_GRO is given up. Too low: a start-up
  /// of small frames decides. Too high: the dearer mode runs longer for nothing.
  static constexpr std::uint32_t gro_trial_frames = 512;
  /// Specification constant: the largest UDP payload, and so the largest super-packet.
  static constexpr std::size_t super_packet_bytes_max = 65'536;

  UdpRx(std::size_t frame_bytes_max, Bytes wire_overhead, bool is_gro_on);

  /// receive fills views; they stay valid until release(). Syscalls: recvmmsg; recvmsg after ICMP
  /// errors; setsockopt once, when UDP_GRO is given up.
  [[nodiscard]] std::size_t receive(const UdpSocket& socket, std::span<RxFrame> views) noexcept;
  void release() noexcept { is_lent_ = false; }

  /// has_backlog: frames were taken from the kernel and not handed out yet. backlog is their bytes.
  [[nodiscard]] bool has_backlog() const noexcept { return next_ != filled_; }
  [[nodiscard]] bool is_gro_on() const noexcept { return is_gro_on_; }
  [[nodiscard]] Bytes handed_total() const noexcept { return handed_total_; }
  [[nodiscard]] Bytes backlog() const noexcept { return backlog_; }
  /// received_total is the wire bytes taken from the kernel.
  [[nodiscard]] Bytes received_total() const noexcept { return handed_total_ + backlog_; }
  /// malformed_total counts datagrams larger than a frame may be; they were dropped.
  [[nodiscard]] std::uint64_t malformed_total() const noexcept { return malformed_total_; }
  [[nodiscard]] std::uint64_t syscalls_total() const noexcept { return syscalls_total_; }
  /// is_drained says that the last receive() left nothing in the kernel.
  [[nodiscard]] bool is_drained() const noexcept { return is_drained_; }
  [[nodiscard]] Bytes memory() const noexcept { return {static_cast<std::int64_t>(arena_bytes_)}; }

 private:
  struct Slot {
    std::size_t bytes = 0;
    std::size_t segment_bytes = 0;
    bool is_ce = false;
  };
  static constexpr std::size_t control_bytes = CMSG_SPACE(sizeof(int)) * 2;

  void lay_out() noexcept;
  void refill(const UdpSocket& socket) noexcept;
  void take(std::size_t index) noexcept;
  void try_gro(const UdpSocket& socket, std::size_t messages) noexcept;

  std::size_t frame_bytes_max_;
  Bytes wire_overhead_;
  std::size_t arena_bytes_;
  std::unique_ptr<std::byte[]> arena_;
  std::size_t slot_bytes_ = 0;
  std::size_t slots_ = 0;
  std::array<mmsghdr, rx_batch_max> messages_{};
  std::array<iovec, rx_batch_max> pieces_{};
  alignas(cmsghdr) std::array<std::array<char, control_bytes>, rx_batch_max> controls_{};
  std::array<Slot, rx_batch_max> filled_slots_{};
  std::size_t filled_ = 0;  // slots that hold data
  std::size_t next_ = 0;    // slot handed out next, from offset_bytes_
  std::size_t offset_bytes_ = 0;

  bool is_gro_on_;
  bool is_gro_decided_ = false;
  bool is_lent_ = false;
  bool is_drained_ = true;
  std::uint32_t trial_frames_ = 0;
  Bytes handed_total_{};
  Bytes backlog_{};
  std::uint64_t malformed_total_ = 0;
  std::uint64_t syscalls_total_ = 0;
};

}  // namespace onehop
