// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// AutoLaw: the best law that the sensors at hand allow, chosen anew in each step.
//
//   queue known exactly                          own occupancy only, or nothing
//   (1)  beta   = (a - q)/T    if q < a          v_base = safe-range's v_0, to the last bit
//               = -(q - b)/T   if q > b
//               = 0            else;   |beta| <= v_1/2
//        Wi-Fi, and the port pushes back: (a - q)/110 us, at most 10 v_1;  -beta <= v_1/8
//   (2)  v_base = 1.02 g v_1 + beta;  there 2 g v_1 + beta for 20 ms after (5)
//        backlog_max = a + r L, r below;   wired: b + S/2, S = what leaves in a nap
//   (3)  T = max(2 exchanges, 1 ms);  a = L, b = 1.5 L;  wired: a = 4 bursts, b = 2 a
//
//   (4)  v_0 = clamp(min(v_base, receiver terms of safe-range, feedback cap, loss brake), R_min, R_max)
//   (5)  v_1 <- alpha v_1   when the physical rate has changed by more than 20 %,   alpha in 1/2 .. 2
//
//            exact queue read, and adds up  ┌────────────┐
//   ┌────────────────────────────────────▶  │ drain rate │   v_1 by the drain over 2 ms while backlogged
//   │ safe range │  ◀────────────────────── └────────────┘
//   └────────────┘   not read for two of its periods
//
// beta is added to the measured drain rate and never integrated. That drain rate plus beta holds one aggregate in the queue
// and no more, where safe-range must hold 8 ms because it cannot see when the link takes a frame.
// g is 1, and grows by a quarter per T up to 4 while the queue stands empty although everything granted was sent: then
// v_1 understates (a counter that lies, a start), and v_1 + v_1/2 would be a fixed point below the link. The port's backlog
// limit holds whatever g adds.
//
// r is the room above one aggregate: the queue is a saw whose tooth is an aggregate, and the next one must be whole when the
// medium is won. b as the mean of that saw gives r = 1, enough for a core that comes at any moment; a core that comes when
// the link has drained needs far less. So r falls by 0.02 per window of 32 readings while aggregates are at least 98.5 %
// full (0.2 from the second such window on), and rises by 0.1 when they are not although the queue reached its limit, within
// 0 .. 1.75: eight greedy pairs wait longer with more, and carry no more (wdtcp-delay-load in docs/papers.md). It rises by 0.02
// when a full one took all that stood there: with a core that sleeps the air may have been idle since, and r would stay at 0.
// Where the MAC repeats more than 2 % of its frames its window keeps aggregates short, and r ends at 0.75.
// Where no port pushes back, only the reading bounds the queue, and it is as old as the sensor makes it. What stands now is what was
// read, and what we have handed over since, less what v_1 takes meanwhile. It is read anywhere in its saw, not after a refill: on Wi-Fi
// a and b stand L/2 higher there, or each second aggregate finds half of one. And beta lasts until the next step: T is no shorter.
// Among several senders one wins the medium twice in a row as often as not, and v_1, its mean share, refills nothing in between: so the
// queue below a is filled as fast as it may be emptied. Where a port pushes back its backlog limit holds the queue, and no rate need.
// The core is asked to look twice in each exchange: asleep through whole ones it sees no aggregate, and meets the queue dry.
//
// A port whose counters do not add up to what we handed over (by a quarter) does not count as exact, and safe-range then
// reads our own account of what has left.
//
// Source: our composition of [SMUFF] (receiver terms, safe range), [WDTCP] (alpha, beta, aggregates) and [FWP] (brake);
// CupidCap adds the share of the air. Called by the rate loop on the control thread, by tests and by simulators.
#pragma once

#include <array>
#include <cstddef>
#include <optional>

#include "control/law/ack_spacing.hpp"
#include "control/law/aggregate_meter.hpp"
#include "control/law/capacity.hpp"
#include "control/law/controller.hpp"
#include "control/law/drain_meter.hpp"
#include "control/law/frame_ratio.hpp"
#include "control/law/loss_brake.hpp"
#include "control/law/outage.hpp"
#include "control/law/queue_view.hpp"
#include "control/law/refusal_limit.hpp"
#include "control/law/safe_range.hpp"

namespace onehop::law {

struct AutoParams {
  Nanos drain_window{2ms};
  Nanos spread_min{1ms};            ///< least T
  Gain beta_max{500};               ///< of v_1
  Gain b_over_a{1500};              ///< Wi-Fi; 2 on a wire
  std::int64_t wired_bursts = 4;    ///< a, on a wire
  Nanos wired_burst{100us};         ///< at v_1. Shorter: the core's naps (200 us) run the queue dry; longer: delay
  AggregateParams aggregate;
  SafeRangeParams safe_range;       ///< the other regime, and the rates that bound both
  [[nodiscard]] bool operator==(const AutoParams&) const = default;
};

class AutoLaw final : public Controller {
 public:
  explicit AutoLaw(const AutoParams& params) noexcept;
  RateGrant step(const LinkSample& sample) override;
  [[nodiscard]] const LawTrace& trace() const override { return trace_; }
  [[nodiscard]] std::string_view name() const override { return "auto"; }

 private:
  void read_queue(const LinkSample& sample, const QueueView& view) noexcept;
  void set_band(const LinkSample& sample) noexcept;
  void adapt_room(const LinkSample& sample, Bytes q) noexcept;
  [[nodiscard]] bool is_repeating(const LinkSample& sample) noexcept;
  [[nodiscard]] Bytes backlog() const noexcept;
  void grow(const LinkSample& sample, Bytes q) noexcept;
  [[nodiscard]] BytesPerSecond own_rate(const LinkSample& sample) const noexcept;
  [[nodiscard]] BytesPerSecond base_rate(const LinkSample& sample, const QueueView& view, Bytes q) noexcept;
  [[nodiscard]] BytesPerSecond bound(const LinkSample& sample, BytesPerSecond base) noexcept;
  [[nodiscard]] Bytes standing_now(const LinkSample& sample, const QueueView& view) noexcept;
  RateGrant exact_grant(const LinkSample& sample, const QueueView& view);
  void audit(const LinkSample& sample, const QueueView& view) noexcept;
  void forget_exact() noexcept;

  AutoParams params_;
  SafeRange safe_;
  AckSpacing acks_;
  AggregateMeter aggregate_;
  CapacityStep capacity_;
  DrainMeter drain_;
  VisitMeter visits_;
  LossBrake brake_;
  OutageWatch outage_;
  bool is_outage_ = false;
  FrameRatio ratio_;
  LawTrace trace_;
  bool is_exact_ = false;
  Nanos feedback_interval_{0};
  bool is_wired_ = false;
  Bytes a_{}, b_{}, limit_{};
  Nanos exchange_{0};
  Nanos spread_{0};            // T
  double room_ = 1;            // r
  std::uint64_t windows_seen_ = 0;
  Bytes highest_{};            // of the queue, in this window
  std::int32_t full_windows_ = 0;
  MacCounters mac_seen_{};
  double repeats_ = 0;         // of the MAC's frames
  double growth_ = 1;          // g
  double margin_ = 1;          // on a, b: grown by starvation at the full rate
  Instant grown_at_{};
  bool is_credible_ = true;    // the port's counters agree with ours
  bool has_audit_ = false;
  Bytes audited_handed_{}, audited_counted_{};
  Instant audited_at_{};
  Bytes sent_seen_{};
  Instant sent_seen_at_{};
  BytesPerSecond granted_{};
  struct Handed {
    Instant at{};
    Bytes total{};
  };
  // Derived: steps are 0.5 ms apart at least, 2 ms as a rule. Low: a fact is older than the list.
  // High: memory.
  static constexpr std::size_t handed_max = 64;
  std::array<Handed, handed_max> handed_{};
  std::size_t handed_count_ = 0;
  Nanos step_span_{0};
  Instant changed_at_{};       // of the physical rate
  bool has_changed_ = false;
  RefusalLimit refusals_;
  Instant stepped_at_{};
};

}  // namespace onehop::law
