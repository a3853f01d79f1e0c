// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// SafeRange: the rate from the occupancies of the buffers on the way, so that the bottleneck neither runs dry nor
// overflows.
//
//   us ──v_0──▶ [1: lower queue X_1] ──v_1──▶ [2: rx ring X_2] ──v_2──▶ [3: app buffer X_3] ──v_3──▶ disk
//
//   (1)  dX_i/dt     = v_{i-1} - v_i
//   (2)  X_under,i   = d_i (v_i^up - v_{i-1}^lo)
//   (3)  X_over,i    = X_max,i - d_i (v_{i-1}^up - v_i^lo)
//   (4)  X_1^target  = d_1 v_1^up                          (our own input counts as 0)
//   (5)  X_i^target  = d_i (v_i^up - v_{i-1}^lo)           i >= 2
//   (6)  v_0         = max(min_i {v_i + (X_i^target - X_i) / d_i}, 0)
//
// Source: [SMUFF], NSDI 2024 (control/README.md has the symbol table). Assumes one hop. All X and v are payload bytes;
// the tx queue's wire bytes are converted when read, and the grant is converted back to wire bytes when given.
//
// The actuator is a rate AND a backlog limit. The engine core wakes every P = 0.5..3 ms and fills its lower queue up to
// backlog_max, so X_1 is a saw between backlog_max - S and backlog_max, S = P v_1. Its mean is the target if
// backlog_max = X_1^target + S/2; S is measured, and a slow trim (+-50 %) takes up what is left. The rate of (6) takes
// the saw's low end as X_1, which gives the core v_1 + S/(2 d_1): enough to refill S in each burst, so in equilibrium
// the backlog limit binds and not the rate, and when the link slows the rate still falls as (6) says.
//
// Called by the rate loop on the control thread, by tests and by simulators. Not by the engine core.
#pragma once

#include <array>
#include <cstdint>

#include "control/law/ack_spacing.hpp"
#include "control/law/controller.hpp"
#include "control/law/delay_bound.hpp"
#include "control/law/drain_meter.hpp"
#include "control/law/outage.hpp"
#include "control/law/paced_growth.hpp"
#include "control/law/refusal_limit.hpp"
#include "engine/base/block.hpp"

namespace onehop::law {

enum class Target : std::uint8_t { under, mid, zero };      ///< where in the safe range; zero = lowest latency
enum class Bounds : std::uint8_t { measured, strict };      ///< 0.5..2 v_1, or 0..the link's maximum

struct SafeRangeParams {
  // From the paper.
  Nanos d_1{4ms};
  Gain v_1_lo{500}, v_1_up{2000};
  Gain v_rx_lo{900}, v_rx_up{1100};
  // Ours; reasons beside their use in safe_range.cpp.
  Nanos d_rx_min{2ms};
  Bytes app_grain{4 * block_bytes};          ///< see app_grain() in safe_range.cpp
  Nanos app_nap{8ms};                        ///< two of the file thread's longest naps
  Nanos d_app_max{100ms};                    ///< a disk of 80 Mbit/s drains a grain in this time; slower ones ring a little
  Nanos latch_min{50ms};
  BytesPerSecond rate_start{12'500'000};
  bool is_start_known = false;               ///< rate_start was reached on this path, or asked for: it goes before a claim
  BytesPerSecond rate_min{150'000};          ///< one full packet per 10 ms
  BytesPerSecond rate_max{12'500'000'000};
  Bytes backlog_start{32 * 1024};
  std::uint32_t batch_frames_max = 44;
  Target target = Target::under;
  Bounds bounds = Bounds::measured;
  bool has_latch = true;                     ///< off: every receiver term always takes part (the paper, literally)
  [[nodiscard]] bool operator==(const SafeRangeParams&) const = default;
};

class SafeRange final : public Controller {
 public:
  explicit SafeRange(const SafeRangeParams& params) noexcept;
  RateGrant step(const LinkSample& sample) override;
  [[nodiscard]] const LawTrace& trace() const override { return trace_; }
  [[nodiscard]] std::string_view name() const override { return "safe-range"; }
  /// scale_drain moves v_1 by `alpha`: the physical rate has changed, and the drain will follow.
  void scale_drain(Gain alpha) noexcept { own_.rescale(alpha); }

 private:
  /// Receiver is the state of buffer 2 or 3.
  struct Receiver {
    DrainMeter meter;
    Instant backlogged_at{};
    bool was_backlogged = false;
    bool is_known = false;
    Bytes occupancy{};
    Bytes capacity{};
    bool is_busy = false;  // the peer's bit
  };
  /// Saw is how the engine core's naps move the lower queue, in payload bytes.
  struct Saw {
    Bytes amplitude{};
    Nanos period{1ms};
    std::uint64_t turns_total = 0, wakeups_total = 0;
    Instant at{};
    bool has_reading = false;
  };
  struct Trim {
    std::int64_t permille = 0;
    std::int64_t sum_bytes = 0;
    std::int64_t readings = 0;
    Instant lower_at{};
  };

  [[nodiscard]] Bytes to_payload(Bytes wire) const noexcept;
  [[nodiscard]] Bytes to_wire(Bytes payload) const noexcept;
  [[nodiscard]] QueueTelemetry pick_queue(const LinkSample& sample) const noexcept;
  void read_own(const LinkSample& sample);
  void measure_saw(const LinkSample& sample) noexcept;
  void read_receiver(Receiver& receiver, const QueueTelemetry& queue, Nanos d) noexcept;
  void set_own_term(const LinkSample& sample);
  void set_paced_term(const LinkSample& sample);
  void set_receiver_term(std::size_t i, const LinkSample& sample, Nanos d);
  void set_limits(const LinkSample& sample, BytesPerSecond v);
  void update_trim(const LinkSample& sample) noexcept;
  [[nodiscard]] Bytes mean_of(Bytes reading) const noexcept;
  [[nodiscard]] Nanos receiver_latency(const LinkSample& sample) const noexcept;
  [[nodiscard]] Bytes app_grain() const noexcept;
  [[nodiscard]] Nanos app_latency(Nanos d) const noexcept;
  RateGrant grant(const LinkSample& sample);

  SafeRangeParams params_;
  DrainMeter own_;
  std::array<Receiver, 2> receivers_;
  PacedGrowth paced_;
  DelayBound delay_bound_;
  AckSpacing acks_;
  OutageWatch outage_;
  Nanos feedback_interval_{0};
  Saw saw_;
  Trim trim_;
  LawTrace trace_;
  Instant stepped_at_{};
  Instant report_at_{};
  std::int64_t payload_per_frame_ = 1;
  std::int64_t wire_per_frame_ = 1;
  Nanos srtt_min_{0};
  bool is_backlog_paced_ = false;    // a lower queue pushes back
  bool has_queue_ = false;           // X_1 can be read
  std::uint32_t batch_frames_ = 0;
  Bytes backlog_max_{};              // payload, as granted last
  Bytes target_{};                   // X_1^target, payload
  Bytes yielded_{};                  // foreign bytes that we make room for, payload
  Bytes x_max_{};                    // X_max,1, payload
  Bytes told_capacity_{};            // wire; of the exact queue, as told last; 0: never
  RefusalLimit refusals_;            // payload
};

}  // namespace onehop::law
