// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// PollPause: when a sender's session polls its engine's events next. Session thread; pure.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "control/session/session.hpp"

namespace onehop::session {

/// PollPause: each poll costs as much as 100 KB on the data path, and a late one at the end adds to
/// the transfer's time. So the pause is a quarter of the time left at the rate so far, within
/// limits.poll_short .. limits.poll. The rate counts from the first block: the time before it says
/// nothing about the rate, and would outweigh a small file.
class PollPause {
 public:
  explicit PollPause(const SessionLimits& limits) noexcept : limits_{limits} {}

  /// next returns how long to wait after a poll at `now` (any clock; only differences count) that
  /// found `done` of `total` bytes.
  [[nodiscard]] Nanos next(Nanos now, std::uint64_t done, std::uint64_t total) noexcept {
    if (done == 0 || done >= total) return limits_.poll_short;
    if (first_done_ == 0) {
      first_done_ = done;
      first_at_ = now;
    }
    // At first one block more or less changes the whole rate, so the pause is never longer than the
    // observed time. Without progress since then: assume that as much is left.
    constexpr double share = 4;
    const double left = done == first_done_ ? 1
                                            : static_cast<double>(total - done) /
                                                  static_cast<double>(done - first_done_);
    const auto pause =
        std::chrono::duration_cast<Nanos>((now - first_at_) * (std::min(left, share) / share));
    return std::clamp(pause, limits_.poll_short, limits_.poll);
  }

 private:
  const SessionLimits& limits_;
  std::uint64_t first_done_ = 0;
  Nanos first_at_{0};
};

}  // namespace onehop::session
