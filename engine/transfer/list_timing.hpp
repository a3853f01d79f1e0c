// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// ListTiming: when a lazy receiver tells what is missing.
//
//   W bytes since the last list, or 1 s   W = min(64 MB, half of the receiver's blocks)
//   the sender asks                       once per round of the sender's: what was sent before it read the last list asks
//                                         again for what that list answered
//
// Blocks with holes stay open, so a window of 64 MB would need 64 MB of buffers at both ends; with 128 blocks of 256 KiB
// it is 16 MB, and the other half takes the next window's data while this one is repaired.
//
//= [FWP] lazy repair, window of 64 MB or 1 s  type=deviation reason=bounded by the buffers
// Called by the engine core through Receiver.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "engine/base/block.hpp"
#include "engine/base/units.hpp"

namespace onehop::transfer {

class ListTiming {
 public:
  // Specification.
  static constexpr std::uint64_t window_bytes_max = 64'000'000;
  static constexpr Nanos window_span = 1s;
  static constexpr Nanos answer_min = 10ms;  // before a request is taken to mean that the last list was lost

  explicit ListTiming(std::size_t block_slots) noexcept
      : window_bytes_{std::clamp<std::uint64_t>(block_slots / 2 * block_bytes, block_bytes, window_bytes_max)} {}

  [[nodiscard]] std::uint64_t window_bytes() const noexcept { return window_bytes_; }

  /// is_new_request: the sender asks, and the last list has not answered it. `round` is from the frame that asks.
  [[nodiscard]] bool is_new_request(Instant now, bool round, Nanos srtt) const noexcept {
    return !has_answered_ || round != round_answered_ || now - listed_at_ >= std::max(2 * srtt, answer_min);
  }
  /// on_request: the next list answers this round.
  void on_request(bool round) noexcept {
    has_answered_ = true;
    round_answered_ = round;
  }
  [[nodiscard]] bool is_window_over(Instant now, std::uint64_t bytes_total) const noexcept {
    return bytes_total - listed_bytes_ >= window_bytes_ || now - listed_at_ >= window_span;
  }
  /// restart: a window begins, with the first frame, with a list, or where nothing was missing.
  void restart(Instant now, std::uint64_t bytes_total) noexcept {
    listed_at_ = now;
    listed_bytes_ = bytes_total;
  }

 private:
  const std::uint64_t window_bytes_;
  Instant listed_at_{};
  std::uint64_t listed_bytes_ = 0;
  bool has_answered_ = false, round_answered_ = false;
};

}  // namespace onehop::transfer
