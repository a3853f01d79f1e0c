// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// OwnQueueTerm: the rate and the backlog limit that our own lower queue allows.
//
//   (2)  X_under,1  = d_1 (v_1^up - v_0^lo)         v_0^lo = 0: our own input
//   (3)  X_over,1   = X_max,1 - d_1 (v_0^up - v_1^lo)
//   (4)  X_1^target = d_1 v_1^up
//   (6)  term_1     = v_1 + (X_1^target - X_1) / d_1
//
//   X_max,1 = max(2 v_1 srtt_min, 6.5 v_1 d_1), not above the queue's length. From 4.5 v_1 d_1 on
//   the range exists; 2 v_1 d_1 more give it a width
//
// The actuator is a rate AND a backlog limit. The engine core wakes every P = 0.5..3 ms and fills
// the queue up to backlog_max, so X_1 is a saw between backlog_max - S and backlog_max, S = P v_1.
// Its mean is the target if
//
//   backlog_max = X_1^target (1 + trim) + S / 2     trim: +- 50 %, from the measured mean
//
// (6) takes the saw's low end as X_1. This gives the core v_1 + S / (2 d_1), enough to refill S in
// each burst: in equilibrium the backlog limit binds and not the rate, and when the link slows the
// rate still falls as (6) says.
//
// Source: [SMUFF] (control/README.md has the symbols). All payload bytes. Pure.
#pragma once

#include "control/law/controller.hpp"
#include "control/law/estimate/frame_ratio.hpp"
#include "control/law/estimate/link_model.hpp"
#include "control/law/estimate/nap_allowance.hpp"
#include "control/law/term/refusal_limit.hpp"

namespace onehop::law {

/// SafeRangeInput: one tick's sample, and what was made of it.
struct SafeRangeInput {
  const LinkSample& sample;
  const LinkModel& link;  ///< its queue is the one to steer by
  const FrameRatio& ratio;
  bool is_standby = false;  ///< another law sets the rate: nothing is learnt from this queue
  Bottleneck last_bottleneck = Bottleneck::none;
};

class OwnQueueTerm {
 public:
  explicit OwnQueueTerm(const SafeRangeParams& params) noexcept;
  /// step writes row 0 of the trace where a queue could be read.
  void step(const SafeRangeInput& input, LawTrace& trace) noexcept;

  [[nodiscard]] Bytes backlog_max() const noexcept { return backlog_max_; }
  [[nodiscard]] std::uint32_t batch_frames() const noexcept { return batch_frames_; }

 private:
  /// Trim is the mean of X_1 while it is gathered, and the correction that came of it.
  struct Trim {
    std::int64_t permille = 0;
    std::int64_t sum_bytes = 0;
    std::int64_t readings = 0;
    Instant reading_at{};
    void restart() noexcept { sum_bytes = readings = 0; }
  };
  void read(const SafeRangeInput& input, BufferRow& row) noexcept;
  void set_limits(const SafeRangeInput& input, LawTrace& trace) noexcept;
  void set_backlog(const SafeRangeInput& input, BufferRow& row) noexcept;
  void update_trim(const SafeRangeInput& input, Bytes occupancy) noexcept;
  [[nodiscard]] Bytes mean_of(Bytes reading) const noexcept;
  [[nodiscard]] Bytes half_saw() const noexcept { return std::min(saw_, target_) / 2; }

  SafeRangeParams params_;
  NapAllowance naps_;  // of Target::zero
  RefusalLimit refusals_;
  Trim trim_;
  Nanos srtt_min_{0};
  Bytes saw_{};             // S
  Bytes known_capacity_{};  // wire; of the exact queue; 0: never known
  Bytes target_{};          // X_1^target
  Bytes x_max_{};           // X_max,1
  Bytes yielded_{};         // foreign bytes that we make room for
  Bytes backlog_max_{};     // as granted last
  std::uint32_t batch_frames_ = 0;
};

}  // namespace onehop::law
