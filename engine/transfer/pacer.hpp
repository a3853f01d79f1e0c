// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Pacer: a token bucket. Its depth follows the grant's backlog limit, so a core that was descheduled refills the queue in
// one burst instead of losing the time; a bucket of 1 ms would lose it.
#pragma once

#include <algorithm>

#include "engine/base/units.hpp"

namespace onehop::transfer {

class Pacer {
 public:
  /// set takes a new rate and depth; what has gathered at the old rate until `now` is kept, up to the new depth.
  void set(BytesPerSecond rate, Bytes depth, Instant now) noexcept {
    if (!has_started_) {
      has_started_ = true;
      filled_at_ = now;
      tokens_ = depth;
    }
    fill(now);
    rate_ = rate;
    depth_ = depth;
    tokens_ = std::min(tokens_, depth_);
  }

  [[nodiscard]] Bytes allowance(Instant now) noexcept {
    fill(now);
    return tokens_;
  }
  /// spend may overdraw by the last frame of a burst; the debt is paid by the next tokens.
  void spend(Bytes bytes) noexcept { tokens_ -= bytes; }

  /// ready_at is when `bytes` will be allowed; Instant::max() at rate zero.
  [[nodiscard]] Instant ready_at(Bytes bytes) const noexcept {
    if (tokens_ >= bytes) return filled_at_;
    const Nanos wait = time_for(bytes - tokens_, rate_);
    return wait == Nanos::max() ? Instant::max() : filled_at_ + wait;
  }

 private:
  static constexpr std::int64_t ns_per_s = 1'000'000'000;
  void fill(Instant now) noexcept {
    if (now <= filled_at_) return;
    // What is below one byte is carried over, or short turns would lose up to a byte each: at 2 MB/s half the rate.
    const Wide earned = static_cast<Wide>(rate_.count) * (now - filled_at_).count() + carry_;
    const Bytes gained{static_cast<std::int64_t>(earned / ns_per_s)};
    carry_ = static_cast<std::int64_t>(earned % ns_per_s);
    filled_at_ = now;
    tokens_ = std::min(tokens_ + gained, depth_);
  }

  BytesPerSecond rate_{};
  Bytes depth_{};
  Bytes tokens_{};
  std::int64_t carry_ = 0;  ///< earned, less than a byte, in thousand-millionths of one
  Instant filled_at_{};
  bool has_started_ = false;
};

}  // namespace onehop::transfer
