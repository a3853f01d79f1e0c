// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Pacer: a token bucket. Its depth follows the grant's backlog limit, so a core that was
// descheduled refills the queue in one burst instead of losing the time; a bucket of 1 ms would
// lose it. The engine core calls it; it reads no clock.
#pragma once

#include <algorithm>

#include "engine/base/units.hpp"

namespace onehop::protocol {

class Pacer {
 public:
  /// set takes a new rate and depth; what has gathered until `now` is kept, up to the new depth.
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

  /// ready_at is when `bytes` will be allowed; max(): never, at rate zero or beyond the depth.
  [[nodiscard]] Instant ready_at(Bytes bytes) const noexcept {
    if (tokens_ >= bytes) return filled_at_;
    if (rate_.count <= 0 || bytes > depth_) return Instant::max();
    const Wide short_by = static_cast<Wide>((bytes - tokens_).count) * byte - remainder_;
    const Wide wait_ns = (short_by + rate_.count - 1) / rate_.count;  // rounded up
    return wait_ns < (Instant::max() - filled_at_).count()
               ? filled_at_ + Nanos{static_cast<Nanos::rep>(wait_ns)}
               : Instant::max();
  }

 private:
  static constexpr std::int64_t byte = 1'000'000'000;  // in units of rate x nanosecond

  void fill(Instant now) noexcept {
    if (now <= filled_at_) return;
    // What is less than a byte is kept: at a low rate, short turns would lose much of it.
    const Wide gained = static_cast<Wide>(rate_.count) * (now - filled_at_).count() + remainder_;
    filled_at_ = now;
    if (gained / byte >= (depth_ - tokens_).count) {
      tokens_ = std::max(tokens_, depth_);
      remainder_ = 0;
    } else {
      tokens_ += Bytes{static_cast<std::int64_t>(gained / byte)};
      remainder_ = static_cast<std::int64_t>(gained % byte);
    }
  }

  BytesPerSecond rate_{};
  Bytes depth_{};
  Bytes tokens_{};
  std::int64_t remainder_ = 0;
  Instant filled_at_{};
  bool has_started_ = false;
};

}  // namespace onehop::protocol
