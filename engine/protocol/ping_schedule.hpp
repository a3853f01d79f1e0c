// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// PingSchedule: when an end asks, what was answered, and the round-trip time that follows. PING is
// the only source of srtt: acknowledgements are delayed on purpose. Each end has its own, which
// also proves its way to the peer. Called by the engine core; it sends nothing itself.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "engine/base/units.hpp"
#include "engine/wire/feedback.hpp"
#include "engine/wire/frame.hpp"

namespace onehop::protocol {

class PingSchedule {
 public:
  // Specification.
  static constexpr Nanos proving_period = 50ms;
  static constexpr Nanos period_max_silent = 1s;
  // Implementation. A pong may come while later pings are under way: on a path longer than the
  // period it always does, so the newest send time alone would never give a sample.
  static constexpr std::size_t remembered_max = 64;
  static constexpr std::uint64_t unanswered_patience = 4;
  static constexpr Nanos sample_max = 10s;  // longer says nothing of the path now

  PingSchedule(Nanos period_min, Nanos period_max)
      : period_min_{period_min}, period_max_{period_max} {}

  void prove(std::size_t body_bytes) noexcept {
    is_proving_ = true;
    proving_body_bytes_ = body_bytes;
    due_at_ = Instant{};
  }
  /// start ends the proof; small PINGs go on.
  void start() noexcept {
    is_proving_ = false;
    is_running_ = true;
  }
  /// restart forgets what was learnt of another path, and asks at once.
  void restart() noexcept {
    srtt_ = rtt_ = 0ns;
    due_at_ = Instant{};
    id_answered_ = id_;
  }
  /// set_spacing: pings are this far apart at least, once the path is proven. A very different
  /// one goes out at once.
  void set_spacing(Nanos spacing, Instant now) noexcept {
    if ((spacing > spacing_ * 2 || spacing * 2 < spacing_) && is_running_)
      due_at_ = std::min(due_at_, now);
    spacing_ = spacing;
  }
  [[nodiscard]] Nanos spacing() const noexcept { return spacing_; }

  [[nodiscard]] bool is_due(Instant now) const noexcept { return is_active() && now >= due_at_; }
  [[nodiscard]] Instant due_at() const noexcept { return is_active() ? due_at_ : Instant::max(); }

  /// send notes a ping that leaves now, and returns the size of its body.
  std::size_t send(Instant now) noexcept {
    const bool is_full_size = is_proving_ && !is_proven_;
    due_at_ = now + (is_full_size ? proving_period : period());
    send_extra(now);
    return is_full_size ? proving_body_bytes_ : wire::ping_body_bytes_min;
  }
  /// send_extra notes a ping beside the schedule: of a search for the size that passes.
  void send_extra(Instant now) noexcept { sent_at_[++id_ % remembered_max] = now; }
  [[nodiscard]] std::uint64_t id() const noexcept { return id_; }

  /// on_pong takes each answer once, and none to a ping that was never sent.
  void on_pong(Instant now, const wire::Pong& pong) noexcept {
    if (pong.id > id_ || pong.id <= id_answered_) return;
    id_answered_ = pong.id;
    if (is_proving_ && !is_proven_) {
      is_proven_ = true;
      // The peer tells what arrived; more than was sent it cannot have been.
      proven_frame_bytes_ = static_cast<std::size_t>(
          std::min<std::uint64_t>(pong.received_bytes, proving_body_bytes_ + wire::overhead_bytes));
    }
    if (id_ - pong.id >= remembered_max) return;
    asked_at_ = sent_at_[pong.id % remembered_max];
    answered_at_ = now;
    const auto hold = static_cast<Nanos::rep>(std::min(pong.hold_ns, wire::hold_ns_max));
    add_sample(now - asked_at_ - Nanos{hold});
  }

  /// srtt: the smoothed round-trip time, 0 before the first sample; rtt: the newest sample.
  [[nodiscard]] Nanos srtt() const noexcept { return srtt_; }
  [[nodiscard]] Nanos rtt() const noexcept { return rtt_; }
  /// asked_at: when the newest PING that was answered was sent; answered_at: when its answer came.
  [[nodiscard]] Instant asked_at() const noexcept { return asked_at_; }
  [[nodiscard]] Instant answered_at() const noexcept { return answered_at_; }
  [[nodiscard]] bool is_proven() const noexcept { return is_proven_; }
  [[nodiscard]] std::size_t proven_frame_bytes() const noexcept { return proven_frame_bytes_; }

 private:
  //= RFC 6298 §2 (alpha = 1/8)
  void add_sample(Nanos sample) noexcept {
    if (sample <= 0ns || sample > sample_max) return;
    rtt_ = sample;
    srtt_ = srtt_ == 0ns ? sample : srtt_ + (sample - srtt_) / 8;
  }
  [[nodiscard]] bool is_active() const noexcept { return is_proving_ || is_running_; }
  [[nodiscard]] Nanos period() const noexcept {
    // Unanswered pings are asked more and more rarely, so that a dead path is not fed; but by
    // doubling: a path that loses 40 % often leaves five unanswered, and needs srtt.
    const std::uint64_t unanswered = id_ - id_answered_;
    if (unanswered > unanswered_patience)
      return std::min(period_max_ * (std::int64_t{1} << std::min<std::uint64_t>(
                                         unanswered - unanswered_patience - 1, 10)),
                      period_max_silent);
    return std::max(srtt() == 0ns ? period_min_ : std::clamp(srtt(), period_min_, period_max_),
                    spacing_);
  }

  const Nanos period_min_, period_max_;
  std::array<Instant, remembered_max> sent_at_{};
  std::uint64_t id_ = 0, id_answered_ = 0;
  Instant due_at_{}, asked_at_{}, answered_at_{};
  Nanos spacing_{0}, srtt_{0}, rtt_{0};
  std::size_t proving_body_bytes_ = 0, proven_frame_bytes_ = 0;
  bool is_proving_ = false, is_proven_ = false, is_running_ = false;
};

}  // namespace onehop::protocol
