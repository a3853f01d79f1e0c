// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Flow: since when data flows. TickInterval: when the next tick is due, by the flow and by how
// steadily the queue drains.
#pragma once

#include <optional>

#include "control/law/estimate/queue_view.hpp"
#include "control/rate/trace.hpp"

namespace onehop::rate {

// Ticks. Of the law's delay budget of (pi/2) d_1 = 6.3 ms a tick takes half of itself on the
// average. Where the drain has not moved for long, 4 ms = d_1 do, for each tick wakes an idle core.
// Where our own queue is the bottleneck and its port keeps it below the backlog limit, the rate
// limits nothing, and a tick only moves that limit: 6 ms do, in which less leaves than stands there
// (8 ms), so that the drain is still measured exactly. On Wi-Fi the rate moves from frame to frame,
// and while nothing flows the next start is looked for.
inline constexpr Nanos tick_first{500us}, tick_moving{1ms}, tick_steady{4ms}, tick_held{6ms},
    tick_wifi{2ms}, tick_paused{2ms}, tick_idle{20ms};
// Under a law that is constant ticks serve statistics, trace and silence alone, and at its low
// rates 10 ms are a few frames.
inline constexpr Nanos tick_fixed{10ms};
inline constexpr BytesPerSecond tick_fixed_rate_max = mbit_per_s(100);
inline constexpr Nanos first_span{50ms}, moving_span{100ms}, idle_after{1s};

struct Flow {
  bool is_on = false;
  Instant began_at{}, last_at{};
  Bytes sent_seen{};
  void update(Instant now, const PathReport& path) noexcept {
    const bool is_flowing = path.offered > Bytes{0} || path.sent_total != sent_seen;
    sent_seen = path.sent_total;
    if (is_flowing && !is_on && (now - last_at > tick_idle || began_at == Instant{}))
      began_at = now;
    is_on = is_flowing;
    if (is_flowing) last_at = now;
  }
};

class TickInterval {
 public:
  [[nodiscard]] Nanos get() const noexcept { return interval_; }
  void choose(const RateState& state, const Flow& flow, bool is_law_constant) noexcept {
    const Instant now = state.at;
    if (!begun_at_) begun_at_ = now;
    const BytesPerSecond drain = state.law.buffers[0].drain;
    const bool has_moved =
        std::abs(drain.count - steady_drain_.count) * moved_part > steady_drain_.count;
    if (has_moved) steady_drain_ = drain;
    if (flow.is_on && (has_moved || flow.began_at == now)) moved_at_ = now;
    if (!flow.is_on && flow.began_at == Instant{} && now - *begun_at_ < idle_after) {
      // The first data is due. Found 20 ms late, it would have gone at the start rate until then:
      // 12 % of 10 MB at 600 Mbit/s.
      interval_ = tick_first;
    } else if (!flow.is_on) {
      interval_ = now - flow.last_at > idle_after ? tick_idle : tick_paused;
    } else if (now - flow.began_at < first_span) {
      interval_ = tick_first;
    } else {
      const bool is_moving = now - moved_at_ < moving_span;
      const bool is_slow = is_law_constant && state.grant.rate < tick_fixed_rate_max;
      const bool is_held =
          state.bottleneck == Bottleneck::tx_queue && law::pushes_back(state.path.tx_queue.scope);
      const Nanos steady = state.facts.medium == law::Medium::wifi ? tick_wifi
                           : is_held                               ? tick_held
                                                                   : tick_steady;
      interval_ = is_moving ? tick_moving : is_slow ? tick_fixed : steady;
    }
  }

 private:
  // The drain has moved when it differs by a fifth. Less: a shaper's batches move a steady link's
  // estimate by a tenth now and then (tx_queue_drain in a trace), and it would be ticked for as a
  // moving one. More: a step from 600 to 900 Mbit/s is found a tick later.
  static constexpr std::int64_t moved_part = 5;

  std::optional<Instant> begun_at_;  // the first tick
  Instant moved_at_{};
  BytesPerSecond steady_drain_{};
  Nanos interval_{2ms};
};

}  // namespace onehop::rate
