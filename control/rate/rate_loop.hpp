// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// RateLoop: one tick of control. No threads or clocks: a thread, a test and a simulator call
// tick(now) in the same way.
//
//   Latest<PathReport> ─┐                                         ┌─▶ Latest<RateGrant> (core)
//   Latest<Limits>     ─┼─▶ LinkSample ─▶ law ─▶ silence ─▶ caps ─┼─▶ Latest<RateState> (session,
//   FactSource.read()  ─┘                                         │       observers)
//                                                                 └─▶ trace row
//
// Owns the statistics of the session. It writes the grant and the state, and nothing else.
#pragma once

#include <optional>

#include "control/law/controller.hpp"
#include "control/rate/link_readings.hpp"
#include "control/rate/queue_statistics.hpp"
#include "control/rate/tick_interval.hpp"
#include "engine/base/latest.hpp"

namespace onehop::rate {

/// RateCells: what the loop reads, and what it writes.
struct RateCells {
  Latest<PathReport>& path;
  Latest<Limits>& limits;
  Latest<RateGrant>& grant;
  Latest<RateState>& state;
};

class RateLoop {
 public:
  /// `trace` may be null. All must outlive the loop.
  RateLoop(law::Controller& law, const RateCells& cells, TraceWriter* trace)
      : law_{law}, cells_{cells}, trace_{trace} {}

  /// set_source sets the source of facts of the path's link; null: none. `source` must outlive the
  /// loop. Not while tick() may be called.
  void set_source(link::FactSource* source) {
    readings_.set_source(source);
    state_.facts = {};  // of a link that is not there any more
  }

  /// tick does one step. `now` never goes back. `cpu_time` of this process, which a caller that
  /// knows real time has, is for the trace. Syscalls: those of the source; write by the trace.
  void tick(Instant now, Nanos (*cpu_time)() noexcept = nullptr);

  /// next_tick_in is when tick() should be called again: 0.5 ms while the first data is awaited
  /// (for a second at most) and in its first 50 ms, then 1 ms, 4 ms in the steady state (6 ms where
  /// the port holds the bottleneck's queue, 2 ms on Wi-Fi), 10 ms where a constant law gives less
  /// than 100 Mbit/s, 20 ms when nothing happens.
  [[nodiscard]] Nanos next_tick_in() const noexcept { return interval_.get(); }

  /// publish_state writes Latest<RateState> at once (tick() does so every 20 ms).
  void publish_state(Instant now);

 private:
  [[nodiscard]] RateGrant hold_when_silent(RateGrant grant) const noexcept;
  [[nodiscard]] RateGrant apply_caps(BytesPerSecond own, RateGrant grant) noexcept;

  law::Controller& law_;
  const RateCells cells_;
  TraceWriter* const trace_;
  DataPathCounters traced_;

  RateState state_;
  LinkReadings readings_;
  Flow flow_;
  QueueStatistics statistics_;
  TickInterval interval_;
  std::optional<Instant> ticked_at_;
  Instant published_at_{};
};

}  // namespace onehop::rate
