// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// OutstandingLedger: turns the kernel's account of unsent memory into wire bytes of our frames.
//
//   sendmsg ─▶ [batch][batch][batch] ─▶ freed by the driver or by the peer's stack
//               ^ newest: pushed         ^ oldest: partly freed, interpolated
//
// The kernel charges a socket in truesize (buffer memory), a law reads wire bytes. Each batch is
// remembered with both; the newest batches whose truesize adds up to what the socket is charged now
// are the ones still queued. Where a super-packet is segmented in software and freed as a whole,
// the oldest batch drains in one step and not smoothly.
//
// Called by the engine core through the UDP port. No system call; it allocates when it is made.
#pragma once

#include <boost/circular_buffer.hpp>
#include <cstddef>
#include <cstdint>

#include "engine/base/units.hpp"

namespace onehop {

class OutstandingLedger {
 public:
  /// Batches remembered. Implementation constant: 1024 batches of 44 frames are 67 MB, more than a
  /// socket may hold. Too low: batches are merged, coarser. Too high: memory only.
  static constexpr std::size_t batches_max = 1024;

  /// push takes an accepted batch. `growth_bytes` is how much the socket's charge grew; older
  /// batches that were freed meanwhile are made good from an undisturbed one.
  void push(Bytes wire, std::uint32_t frames, std::int64_t growth_bytes) noexcept;

  /// outstanding: wire bytes still charged at a charge of `charged_bytes`. What is gone stays gone.
  [[nodiscard]] Bytes outstanding(std::int64_t charged_bytes) noexcept;

  /// truesize_permille is the newest batches' charge per wire byte, in thousandths; 1000 at least.
  [[nodiscard]] std::int64_t truesize_permille() const noexcept { return truesize_permille_; }

 private:
  struct Batch {
    Bytes wire{};
    std::int64_t truesize_bytes = 0;
  };
  // A super-packet's payload is charged exactly and its headers are not, so the growth may be some
  // percent below the wire bytes; anything freed meanwhile takes off at least a frame's worth.
  static constexpr std::int64_t undisturbed_permille = 900;

  boost::circular_buffer<Batch> batches_{batches_max};
  std::int64_t extra_bytes_ = 0;  // charge less wire bytes of the last undisturbed batch
  bool is_charged_ = false;
  Bytes wire_{};
  std::int64_t truesize_bytes_ = 0;
  std::int64_t truesize_permille_ = 1522;  // 2304 / 1514: a full Ethernet frame, measured on veth
};

}  // namespace onehop
