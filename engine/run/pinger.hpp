// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Pinger: the receiving end's own PINGs. It proves the reverse path before data flows, and keeps a round-trip time from
// which the ACK interval follows. (The sending end's PINGs live in transfer::Sender, since they share its numbers.)
#pragma once

#include <algorithm>
#include <optional>

#include "engine/base/units.hpp"
#include "engine/wire/feedback.hpp"

namespace onehop::run {

class Pinger {
 public:
  static constexpr Nanos proving_period = 50ms;
  static constexpr Nanos period_min = 10ms, period_max = 100ms;  // algorithms: 1 x srtt, clamped
  static constexpr Nanos rtt_max = 10s;

  /// prove asks for full-size PINGs until the first answer.
  void prove(std::size_t body_bytes) noexcept {
    body_bytes_ = body_bytes;
    is_running_ = true;
  }

  /// next returns the body size of a PING that is due, and remembers when it left.
  [[nodiscard]] std::optional<std::size_t> next(Instant now, wire::Ping& ping) noexcept {
    if (!is_running_ || now < due_at_) return std::nullopt;
    const Nanos period = is_proven() ? std::clamp(srtt_, period_min, period_max) : proving_period;
    due_at_ = now + period;
    sent_at_ = now;
    ping.id = ++id_;
    return is_proven() ? wire::ping_body_bytes_min : body_bytes_;
  }

  /// on_pong takes the answer to the newest PING; older ones are ignored.
  void on_pong(Instant now, const wire::Pong& pong) noexcept {
    if (pong.id != id_ || id_ == 0) return;
    const Nanos rtt = now - sent_at_ - Nanos{static_cast<Nanos::rep>(pong.hold_ns)};
    if (rtt <= 0ns || rtt > rtt_max) return;
    srtt_ = srtt_ == 0ns ? rtt : srtt_ + (rtt - srtt_) / 8;  // RFC 6298 section 2, alpha = 1/8
    proven_bytes_ = static_cast<std::size_t>(pong.received_bytes);
  }

  [[nodiscard]] bool is_proven() const noexcept { return srtt_ > 0ns; }
  [[nodiscard]] std::size_t proven_frame_bytes() const noexcept { return proven_bytes_; }
  [[nodiscard]] Nanos srtt() const noexcept { return srtt_; }
  [[nodiscard]] Instant next_deadline() const noexcept { return is_running_ ? due_at_ : Instant::max(); }

 private:
  bool is_running_ = false;
  std::size_t body_bytes_ = 0;
  std::size_t proven_bytes_ = 0;
  std::uint64_t id_ = 0;
  Instant due_at_{};
  Instant sent_at_{};
  Nanos srtt_{0};
};

}  // namespace onehop::run
