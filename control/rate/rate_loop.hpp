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

#include <array>
#include <cstdint>
#include <optional>

#include "control/law/controller.hpp"
#include "control/link/fact_source.hpp"
#include "control/rate/trace.hpp"
#include "engine/base/histogram.hpp"
#include "engine/base/latest.hpp"

namespace onehop::rate {

class RateLoop {
 public:
  /// `trace` may be null. All must outlive the loop.
  RateLoop(law::Controller& law, Latest<PathReport>& path, Latest<Limits>& limits,
           Latest<RateGrant>& grant, Latest<RateState>& state, TraceWriter* trace);

  /// set_source sets the source of facts of the path's link; null: none. `source` must outlive the
  /// loop. Not while tick() may be called.
  void set_source(link::FactSource* source) {
    source_ = source;
    state_.facts = {};  // of a link that is not there any more
    foreign_count_ = 0;
    refused_exact_.has_reading = refused_lower_.has_reading = false;
  }

  /// set_cpu_total sets this process's CPU time in the next row; a caller that knows real time uses
  /// it.
  void set_cpu_total(Nanos total) noexcept { state_.cpu_total = total; }
  [[nodiscard]] bool has_trace() const noexcept { return trace_ != nullptr; }

  /// tick does one step. `now` never goes back. Syscalls: those of the source; write by the trace.
  void tick(Instant now);

  /// next_tick_in is when tick() should be called again: 0.5 ms while the first data is awaited
  /// (for a second at most) and in its first 50 ms, then 1 ms, 4 ms in the steady state (6 ms where
  /// the port holds the bottleneck's queue, 2 ms on Wi-Fi), 10 ms where a constant law gives less
  /// than 100 Mbit/s, 20 ms when nothing happens.
  [[nodiscard]] Nanos next_tick_in() const noexcept { return next_tick_in_; }

  /// publish_state writes Latest<RateState> at once (tick() does so every 20 ms).
  void publish_state(Instant now);

 private:
  static constexpr std::size_t foreign_readings = 16;

  /// RefusalsSeen: what a queue below refused between two of our readings. The kernel counts since
  /// the queue was made, so the first reading shows no refusal.
  struct RefusalsSeen {
    Instant at{};
    std::uint64_t counter = 0, total = 0;
    bool has_reading = false;
    void step(law::MaybeFact<law::QueueReading>& fact) noexcept;
  };
  void read_facts(Instant now, const QueueTelemetry& own);
  [[nodiscard]] RateGrant hold_when_silent(const law::LinkSample& sample, RateGrant grant) noexcept;
  [[nodiscard]] RateGrant apply_caps(const law::LinkSample& sample, RateGrant grant) noexcept;
  [[nodiscard]] Bytes standing(const law::LinkSample& sample) const noexcept;
  void count(const law::LinkSample& sample, Nanos since_last) noexcept;
  void choose_next_tick(const law::LinkSample& sample) noexcept;

  law::Controller& law_;
  link::FactSource* source_ = nullptr;
  Latest<PathReport>& path_;
  Latest<Limits>& limits_;
  Latest<RateGrant>& grant_cell_;
  Latest<RateState>& state_cell_;
  TraceWriter* trace_;

  RateState state_;
  Instant foreign_at_{};
  std::array<std::int64_t, foreign_readings> foreign_{};
  std::size_t foreign_count_ = 0;  // readings so far
  RefusalsSeen refused_exact_, refused_lower_;

  Instant ticked_at_{};
  std::optional<Instant> begun_at_;  // the first tick
  bool is_flowing_ = false;
  Instant flow_began_at_{};
  Instant flowed_at_{};
  Instant moved_at_{};  // the drain last moved by more than a fifth
  BytesPerSecond steady_drain_{};
  Bytes sent_seen_{};
  Nanos next_tick_in_{2ms};

  BottleneckShare bottleneck_share_;
  Instant published_at_{};
  struct Count {
    LogLinearHistogram held;
    Nanos underflow{0};
    [[nodiscard]] BufferUse use() const noexcept;
  };
  Count tx_, rx_, app_;
  DataPathCounters traced_;
};

}  // namespace onehop::rate
