// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// The stations that FWP is compared with: A-MPDU under block acks, always full, or fed by a
// Cubic-like flow.
//
//   block-ack window:  [first not acknowledged .. +31]
//   a lost frame holds the window, and the aggregates get shorter
//
// A frame is tried 8 times at most; then the window moves on without it.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <deque>
#include <random>

#include "tools/labs/ns3/fwp/air.hpp"

namespace onehop::fwp {

/// AmpduQueue: the transmitter's half of a block-ack agreement.
class AmpduQueue {
 public:
  AmpduQueue(double frame_error_rate, std::uint64_t seed)
      : random_{seed}, error_{frame_error_rate} {}

  /// next_aggregate: frames that may be sent now when `waiting` new ones are there.
  [[nodiscard]] std::size_t next_aggregate(std::size_t waiting) const noexcept {
    const std::size_t room = window_frames - window_.size();
    return std::min(aggregate_frames_max, open_ + std::min(room, waiting));
  }
  /// send puts the aggregate on the air, `fresh` frames of it being new; it returns how many
  /// arrived.
  std::size_t send(std::size_t frames) {
    std::size_t arrived = 0;
    while (open_ < frames) window_.push_back(0), ++open_;
    for (std::size_t i = 0, left = frames; i < window_.size() && left > 0; ++i) {
      if (window_[i] == done) continue;
      --left;
      if (error_(random_)) {
        if (++window_[i] < tries_max) continue;
      } else {
        ++arrived;
      }
      window_[i] = done;
      --open_;
    }
    while (!window_.empty() && window_.front() == done) window_.pop_front();
    return arrived;
  }
  [[nodiscard]] std::size_t open() const noexcept { return open_; }

 private:
  static constexpr std::size_t window_frames = aggregate_frames_max;
  static constexpr int tries_max = 8, done = -1;
  std::mt19937_64 random_;
  std::bernoulli_distribution error_;
  std::deque<int> window_;  // by sequence number: failed tries, or done
  std::size_t open_ = 0;
};

class AmpduStation final : public Station {
 public:
  AmpduStation(double frame_error_rate, std::uint64_t seed) : queue_{frame_error_rate, seed} {}
  std::size_t ready_frames() override { return queue_.next_aggregate(aggregate_frames_max); }
  void serve(Instant) override { arrived_ += queue_.send(ready_frames()); }
  bool has_block_ack() const override { return true; }
  void play(Instant) override {}
  [[nodiscard]] std::uint64_t arrived() const noexcept { return arrived_; }

 private:
  AmpduQueue queue_;
  std::uint64_t arrived_ = 0;
};

/// CubicStation: an A-MPDU station whose queue a window-based sender far away fills: RFC 9438's
/// window, C = 0.4, beta = 0.7, one reduction per round trip, loss by a full queue alone. No slow
/// start beyond the first loss, no time-outs.
class CubicStation final : public Station {
 public:
  CubicStation(double frame_error_rate, std::uint64_t seed, Nanos rtt)
      : queue_{frame_error_rate, seed},
        rtt_{rtt},
        limit_{static_cast<std::size_t>((mbit_per_s(300) * rtt).count / 1500)} {
  }  // one BDP of half of the channel

  std::size_t ready_frames() override { return queue_.next_aggregate(waiting_); }
  void serve(Instant at) override {
    const std::size_t frames = ready_frames(),
                      fresh = frames > queue_.open() ? frames - queue_.open() : 0;
    waiting_ -= fresh;
    const std::size_t arrived = queue_.send(frames);
    arrived_ += arrived;
    if (arrived > 0) acks_.push_back({at + rtt_, arrived});
  }
  bool has_block_ack() const override { return true; }
  void play(Instant until) override {
    while (!acks_.empty() && acks_.front().at <= until) {
      const Ack ack = acks_.front();
      acks_.pop_front();
      flight_ -= std::min<double>(flight_, static_cast<double>(ack.packets));
      grow(ack);
      fill(ack.at);
    }
    if (!has_started_) has_started_ = true, fill(until);
  }
  [[nodiscard]] std::uint64_t arrived() const noexcept { return arrived_; }

 private:
  struct Ack {
    Instant at{};
    std::size_t packets = 0;
  };
  static constexpr double c = 0.4, beta = 0.7;

  void grow(const Ack& ack) {
    if (is_in_slow_start_) {
      window_ += static_cast<double>(ack.packets);
      return;
    }
    const double t = std::chrono::duration<double>(ack.at - reduced_at_ + rtt_).count();
    const double k = std::cbrt(window_max_ * (1 - beta) / c);
    const double target = c * std::pow(t - k, 3) + window_max_;
    if (target > window_)
      window_ += std::min(0.5, (target - window_) / window_) * static_cast<double>(ack.packets);
  }
  void fill(Instant at) {
    while (flight_ + 1 <= window_) {
      if (waiting_ >= limit_) {
        if (at - reduced_at_ < rtt_) return;
        window_max_ = window_;
        window_ *= beta;
        reduced_at_ = at;
        is_in_slow_start_ = false;
        return;
      }
      ++waiting_;
      flight_ += 1;
    }
  }

  AmpduQueue queue_;
  const Nanos rtt_;
  const std::size_t limit_;
  std::deque<Ack> acks_;
  std::size_t waiting_ = 0;
  std::uint64_t arrived_ = 0;
  double window_ = 10, window_max_ = 0, flight_ = 0;
  Instant reduced_at_{};
  bool is_in_slow_start_ = true, has_started_ = false;
};

}  // namespace onehop::fwp
