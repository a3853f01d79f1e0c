// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// DrainMeter: how fast one buffer's consumer takes data, from readings (time, drained total,
// occupancy).
//
// Owns the last readings of one buffer and the estimate v of its drain rate. Called by a law, on
// the control thread or in virtual time. It reads no clock.
//
// A stretch between two readings measures the consumer *exactly* only if the buffer never ran empty
// in it. That is proven if less has left at its end than its backlog was at its beginning; equality
// proves nothing, because the buffer may have run empty. Every other stretch is a lower bound: it
// may raise v, never lower it. The first v of all needs more than single probes.
//
//   reading ─▶ [ ring ] ─▶ newest run of exact stretches, up to one window ─▶ v: EWMA
//                      └─▶ else: newest window as a bound                  ─▶ v: raised at most
//                      └─▶ a backlog of which nothing leaves for long      ─▶ v: frozen, later
//                                                                             halved, and restarted
//
// Only readings show a stall: one that found bytes, and the next one that found all of them still
// there. An empty queue had nothing to release, and time without readings (a core that was away, a
// slow source) says nothing of the link.
#pragma once

#include <array>
#include <cstddef>

#include "engine/base/units.hpp"

namespace onehop::law {

struct DrainReading {
  Instant at{};  ///< on the clock of the reader; only differences are used
  Bytes drained_total{};
  Bytes occupancy{};
  bool is_backlogged = false;  ///< the owner says that the consumer never found it empty
};

struct DrainMeterParams {
  Nanos window{4ms};           ///< d_i
  Nanos span_min{500us};       ///< a shorter stretch is too coarse for a first sample
  Nanos update_interval{1ms};  ///< EWMA steps are at least this far apart
  std::int64_t gain_permille = 250;
  BytesPerSecond rate_max{12'500'000'000};
  BytesPerSecond rate_min{125'000};
  bool has_stall_rule = false;  ///< freeze and restart (own queue only)
};

class DrainMeter {
 public:
  explicit DrainMeter(const DrainMeterParams& params) noexcept : params_{params} {}

  /// add takes one reading and updates the estimate. `quantum` is the largest piece in which the
  /// consumer may free bytes (a burst freed as a whole). Readings that go back in time or count
  /// drop the window.
  void add(const DrainReading& reading, Bytes quantum) noexcept;

  /// set_window follows d_i if d_i is the round trip.
  void set_window(Nanos window) noexcept { params_.window = window; }
  void restart() noexcept { size_ = 0; }
  /// rescale moves the estimate at once, if another sensor shows that the consumer's rate has
  /// changed by `alpha`. The window restarts, and its first exact sample replaces the guess.
  void rescale(Gain alpha) noexcept;

  [[nodiscard]] bool has_drain() const noexcept { return has_drain_; }
  [[nodiscard]] bool has_exact() const noexcept { return has_exact_; }
  [[nodiscard]] bool is_stalled() const noexcept { return is_stalled_; }
  /// drain is v_i: what the consumer can take.
  [[nodiscard]] BytesPerSecond drain() const noexcept { return drain_; }
  /// flow is what it did take in the last window, whether or not there was more.
  [[nodiscard]] BytesPerSecond flow() const noexcept { return flow_; }
  [[nodiscard]] bool has_flow() const noexcept { return has_flow_; }
  /// newest_drained is what left between the two newest readings.
  [[nodiscard]] Bytes newest_drained() const noexcept { return newest_drained_; }

 private:
  // Derived: 64 ms at the fastest tick of 0.5 ms. Low: shorter than a window. High: memory.
  static constexpr std::size_t readings_max = 128;

  struct Slot {
    DrainReading reading;
    bool is_exact = false;  // the stretch that ends here
  };
  [[nodiscard]] const Slot& back(std::size_t n) const noexcept {
    return ring_[(next_ + readings_max - 1 - n) % readings_max];
  }
  void begin(const DrainReading& reading) noexcept;
  void push(const DrainReading& reading, bool is_exact) noexcept;
  void update_flow() noexcept;
  void update_drain(Bytes quantum) noexcept;
  bool update_stall(const DrainReading& reading, Bytes drained, Bytes quantum) noexcept;
  [[nodiscard]] BytesPerSecond clamp_rate(BytesPerSecond rate) const noexcept;

  DrainMeterParams params_;
  std::array<Slot, readings_max> ring_{};
  std::size_t next_ = 0;
  std::size_t size_ = 0;
  BytesPerSecond drain_{};
  BytesPerSecond flow_{};
  Bytes newest_drained_{};
  Instant updated_at_{};
  Instant standing_since_{};  // of a queue that releases nothing: since when
  Instant decayed_at_{};
  bool has_drain_ = false;
  bool has_exact_ = false;
  bool has_flow_ = false;
  bool is_settled_ = false;  // an exact sample of a whole window was seen since the last restart
  bool is_stalled_ = false;
};

}  // namespace onehop::law
