// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// OutstandingLedger: turns the kernel's account of our unsent memory into wire bytes of our own
// frames.
//
//   sendmsg ─▶ [batch][batch][batch] ─▶ freed by the driver or by the peer's stack
//               ^ newest: pushed         ^ oldest: partly freed, interpolated
//
// The kernel charges a socket in truesize (buffer memory), a law reads wire bytes. Each batch is
// remembered with both; the newest batches whose truesize adds up to what the socket is charged now
// are the ones still queued. Where a super-packet is segmented in software and freed as a whole,
// the oldest batch drains in one step and not smoothly.
//
// Owned and called by the engine core through the UDP port. It makes no system call and does not
// allocate.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "engine/base/units.hpp"

namespace onehop {

class OutstandingLedger {
 public:
  /// Batches remembered. Implementation constant: 1024 batches of 44 frames are 67 MB, more than a
  /// socket may hold. Too low: batches are merged and interpolation gets coarser. Too high: memory
  /// only.
  static constexpr std::size_t batches_max = 1024;

  /// push takes a batch that the kernel accepted. `growth_bytes` is how much the socket's charge
  /// grew across the call; the kernel may have freed older batches meanwhile, which is seen and
  /// made good from an undisturbed one.
  void push(Bytes wire, std::uint32_t frames, std::int64_t growth_bytes) noexcept;

  /// outstanding is the wire bytes still charged when the socket's charge is `charged_bytes`. What
  /// it once found gone stays gone.
  [[nodiscard]] Bytes outstanding(std::int64_t charged_bytes) noexcept;

  /// truesize_permille is the charge per wire byte of the batches pushed last, in thousandths; at
  /// least 1000.
  [[nodiscard]] std::int64_t truesize_permille() const noexcept { return truesize_permille_; }

 private:
  struct Batch {
    Bytes wire{};
    std::int64_t truesize_bytes = 0;
  };
  // A super-packet's payload is charged exactly and its headers are not, so the growth may be some
  // percent below the wire bytes; anything freed meanwhile takes off at least a frame's worth.
  static constexpr std::int64_t undisturbed_permille = 900;

  [[nodiscard]] Batch& at(std::size_t index) noexcept { return batches_[index % batches_max]; }

  std::array<Batch, batches_max> batches_{};
  std::int64_t extra_bytes_ = 0;  // charge less wire bytes of the last undisturbed batch
  bool is_charged_ = false;
  std::size_t head_ = 0;  // oldest
  std::size_t tail_ = 0;  // one past the newest
  Bytes wire_{};
  std::int64_t truesize_bytes_ = 0;
  std::int64_t truesize_permille_ = 1522;  // 2304 / 1514: a full Ethernet frame, measured on veth
};

}  // namespace onehop
