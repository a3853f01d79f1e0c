// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// RingPort: AF_XDP's rings in virtual time. The rings are libxdp's, the chunk accounts and the
// header codec are those of the real port; the kernel's side is played, over a VirtualLink.
//
//   lend ─ commit ─▶ tx ring ─ flush ─▶ kernel ─▶ VirtualLink )))
//        ◀─ completion ring ◀── has left the lower queue
//
//   ))) VirtualLink ─▶ kernel ─▶ rx ring ─▶ receive
//                        ▲────── fill ring ◀─ release
//
// The kernel knows who owns each chunk, and says what was wrong when it is handed one that is not
// the program's to give. One thread; it reads no clock.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "engine/port/port.hpp"
#include "engine/wire/l2_l4.hpp"
#include "tools/labs/world/plain_ring.hpp"
#include "tools/labs/world/virtual_link.hpp"
#include "xdp/rx_chunks.hpp"
#include "xdp/tx_chunks.hpp"

namespace onehop::scenario {

/// RingShape: sizes and places, all powers of two.
struct RingShape {
  std::uint32_t tx_frames = 256, rx_frames = 1024;  ///< chunks for sending, for receiving
  /// The kernel's are 2048 and 4096; in smaller ones a frame takes several.
  std::uint32_t chunk_bytes = 2048;
  std::uint32_t index_start = 0;  ///< of all ring indices; near 2^32 they wrap
  bool is_at_edge = false;        ///< received frames end with the last byte of their chunk
};

/// KernelFaults: what the kernel's side can be made to do wrong.
struct KernelFaults {
  bool are_completions_withheld = false;  ///< what has left is not reported
  bool is_fill_starved = false;           ///< the fill ring looks empty to the driver
};

class RingPort {
 public:
  RingPort(VirtualLink& link, std::size_t end, const RingShape& shape);

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
  [[nodiscard]] Instant ready_at() const noexcept;

  /// play runs the kernel's side up to the link's now.
  void play() noexcept;
  [[nodiscard]] KernelFaults& faults() noexcept { return faults_; }
  /// rebind takes the queue away and gives it back: what is in the lower queue and in the rx ring
  /// is lost, and our ends of the rings are attached again, at the indices that they have. Between
  /// two turns.
  void rebind() noexcept;
  /// complaint is what the kernel found wrong first; empty while all is well.
  [[nodiscard]] std::string_view complaint() const noexcept { return complaint_; }
  /// audit counts the chunks, between two turns: each one for receiving is in one ring, and the
  /// program's count of those under way is right.
  void audit() noexcept;

 private:
  /// Gone: a chunk of a frame that the kernel has taken, complete once the lower queue has drained
  /// so far.
  struct Gone {
    std::uint64_t offset_bytes = 0;
    Bytes drained_at{};
    bool is_refused = false;
  };

  void attach() noexcept;
  void take_sent() noexcept;
  [[nodiscard]] std::uint32_t sent_descriptors() noexcept;
  void complete() noexcept;
  void deliver() noexcept;
  [[nodiscard]] std::uint32_t chunks_to_fill() const noexcept {
    return fill_.producer - fill_taken_;
  }
  void put_frame(VirtualLink::FrameIndex frame) noexcept;
  void put_piece(std::span<const std::byte> piece, bool goes_on) noexcept;
  [[nodiscard]] std::uint32_t pieces_of(std::size_t length) const noexcept;
  void complain(std::string_view what) noexcept {
    if (complaint_.empty()) complaint_ = what;
  }
  [[nodiscard]] bool is_unread(std::uint64_t chunk_offset) const noexcept;
  [[nodiscard]] bool own(std::uint64_t offset_bytes, bool to_kernel,
                         std::string_view complaint) noexcept;
  [[nodiscard]] std::size_t umem_bytes() const noexcept {
    return std::size_t{shape_.rx_frames + shape_.tx_frames} * shape_.chunk_bytes;
  }

  VirtualLink* link_;
  std::size_t end_;
  RingShape shape_;
  std::unique_ptr<std::byte[]> umem_;
  PlainRing<xdp_desc> tx_, rx_;
  PlainRing<std::uint64_t> completion_, fill_;
  std::vector<bool> is_kernels_;  // by chunk, those for sending
  std::uint32_t fill_taken_;  // ahead of the fill ring's consumer index by what the last flush took
  // By chunk for receiving: where in the rx ring its last frame was put.
  std::vector<std::uint32_t> unread_;
  std::size_t sent_bytes_ = 0;    // of the frame that sent_descriptors() has read
  std::vector<std::byte> frame_;  // one frame with its headers, on its way in or out
  std::vector<Gone> gone_;        // a ring of tx_frames
  std::size_t gone_head_ = 0, gone_tail_ = 0;
  Bytes handed_{};  // to the lower queue, wire
  KernelFaults faults_;
  std::string_view complaint_;
  std::uint64_t tx_refused_total_ = 0, rx_refused_total_ = 0;

  // The program's side.
  xsk_ring_prod to_send_{}, empty_{};
  xsk_ring_cons done_{}, arrived_{};
  xdp::TxChunks tx_chunks_;
  xdp::RxChunks rx_chunks_;
  wire::HeaderTemplate template_;
  std::uint64_t lent_slot_ = 0;
  std::size_t lent_bytes_ = 0;
  Bytes received_total_{};
  bool is_holding_ = false;
  int last_error_ = 0;
  Instant deadline_{};
  bool is_rx_wanted_ = false;
  bool is_woken_ = false;
};

static_assert(Port<RingPort>);

}  // namespace onehop::scenario
