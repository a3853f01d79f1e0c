// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// ReplayWindow: which packet numbers were seen, so that each is accepted once (RFC 6479's bitmap).
//
//   ... too old │ window: one bit per number │ newer than newest: fresh ...
//               newest - window_packets + 1 .. newest
//
// Owned by one FrameOpener, called by the engine core: check() before a frame is authenticated,
// mark() only after, so a forged number moves nothing. Any number may be the first. A sender ends
// before they wrap.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "engine/base/check.hpp"

namespace onehop::crypto {

class ReplayWindow {
 public:
  /// 2^15 frames are 46 MB at 1400 bytes: 370 ms at 1 Gbit/s. Smaller: frames that a link held back
  /// are dropped as replays (WireGuard's 8192: 92 ms). Larger: more cache lines, 8 KiB here.
  static constexpr std::uint64_t window_packets = 1U << 15;

  /// check is true for a number that is inside or above the window and was not marked.
  [[nodiscard]] bool check(std::uint64_t number) const noexcept {
    if (is_empty_ || number > newest_) return true;
    if (newest_ - number >= window_packets) return false;
    return (words_[word_of(number)] & bit_of(number)) == 0;
  }

  /// mark records an authentic number that check() let pass.
  void mark(std::uint64_t number) noexcept {
    ONEHOP_CHECK(check(number));
    if (is_empty_) {
      is_empty_ = false;
      newest_ = number;
    } else if (number > newest_) {
      // Words that come into the window still hold bits of numbers long gone. The bitmap is twice
      // the window, so clearing whole words never takes one that the window still needs.
      const std::uint64_t advanced = number / word_bits - newest_ / word_bits;
      const std::uint64_t cleared = std::min<std::uint64_t>(advanced, word_count);
      for (std::uint64_t i = 0; i < cleared; ++i) words_[(number / word_bits - i) % word_count] = 0;
      newest_ = number;
    }
    words_[word_of(number)] |= bit_of(number);
  }

  [[nodiscard]] bool is_empty() const noexcept { return is_empty_; }
  [[nodiscard]] std::uint64_t newest() const noexcept { return newest_; }

 private:
  static constexpr std::uint64_t word_bits = 64;
  static constexpr std::size_t word_count = 2 * window_packets / word_bits;
  static_assert((word_count & (word_count - 1)) == 0, "the remainders below are masks");

  static constexpr std::size_t word_of(std::uint64_t number) noexcept {
    return static_cast<std::size_t>(number / word_bits) % word_count;
  }
  static constexpr std::uint64_t bit_of(std::uint64_t number) noexcept {
    return std::uint64_t{1} << (number % word_bits);
  }

  std::array<std::uint64_t, word_count> words_{};
  std::uint64_t newest_ = 0;
  bool is_empty_ = true;
};

}  // namespace onehop::crypto
