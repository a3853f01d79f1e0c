// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// AutoLaw: the best law that the available sensors allow, chosen anew in each step (Mode).
//
//   q backlog now    v_1 drain rate over 2 ms, or over 4 E    C physical rate    S the core's saw
//   L aggregate limit (aggregate_meter.hpp); on a wire a burst of 100 us at v_1
//   E one frame exchange with L (capacity.hpp)    T time constant    a, b dead band of q
//   g, m: starvation_probe.hpp    r: aggregate_room.hpp    alpha, R_win: capacity.hpp
//
//   (1)  beta   = (a - q) / T   if q < a;   -(q - b) / T   if q > b;   else 0;   |beta| <= v_1 / 2
//   (2)  v_base = 1.02 g v_1 + beta
//   (3)  T      = max(2 E, 1 ms)
//   (4)  v_0    = clamp(min(v_base, receiver terms, peer's offer, loss cap), R_min, R_max)
//   (5)  v_1   <- alpha v_1     when C has changed by more than 20 %,  alpha in 1/2 .. 2
//
//   mode              a       b       backlog limit   and
//   fallback          -       -       safe-range's    v_base = safe-range's v_0, to the last bit
//   wired             4 m L   2 a     b + S/2
//   aggregates_held   m L     1.5 a   a + r L         below a: beta = (a - q) / 110 us <= 10 v_1
//   aggregates_read   m L     1.5 a   a + r L         a and b + L/2; q by late_queue.hpp;
//                                                     T >= the time between two steps
//
//   While no aggregates are seen, the backlog limit is b + S/2 in all modes. Where the port pushes
//   back, -beta <= v_1 / 8, and b in (1) is the backlog limit if that is higher. In aggregates_held
//   (2) has 2 g v_1 for 20 ms after (5), and R_win if that is more, beside others:
//   v_1 < 0.75 R_win in the mean of 100 ms. C_now / C_last gives alpha. p: aggregate_room.hpp.
//
//                  exact queue read, and the port's counters add up
//   ┌──────────┐ ───────────────────────────────────────────────────▶ ┌─────────────────────────┐
//   │ fallback │                                                      │ wired                   │
//   └──────────┘ ◀─────────────────────────────────────────────────── │ aggregates_held         │
//                  no exact queue for two of its periods, or the      │ aggregates_read         │
//                  port's counters differ by a quarter                └─────────────────────────┘
//                                                          by medium, and by the port's push back
//
// beta is added to the measured drain rate and never integrated. So the queue holds one aggregate
// and no more, where safe-range must hold 8 ms because it cannot see when the link takes a frame.
// The factor 1.02 moves the queue inside the dead band towards b, where aggregates are full.
//
// aggregates_held: among several senders one often wins the medium several times in a row, and v_1,
// its mean share, does not refill the queue between those turns. So the queue is filled as fast as
// it can be emptied, at R_win, and faster below a; the port's backlog limit holds it instead of a
// rate. A rate near v_1 would have to save up between the turns: beside two saturating senders each
// of our turns found 41.3 of 43 frames. The core is asked to poll twice in each exchange: if it
// sleeps through whole exchanges it sees no aggregate, and finds the queue empty. aggregates_read:
// the queue is read anywhere in its sawtooth and not after a refill, so a and b are L/2 higher;
// otherwise every second aggregate finds half of one.
//
// Source: our composition of [SMUFF] (receiver terms, safe range), [WDTCP] (alpha, beta,
// aggregates) and [FWP] (loss cap); CupidCap adds the share of the air. Called by the rate loop on
// the control thread, by tests and by simulators.
#pragma once

#include "control/law/controller.hpp"
#include "control/law/estimate/aggregate_room.hpp"
#include "control/law/estimate/late_queue.hpp"
#include "control/law/estimate/link_model.hpp"
#include "control/law/estimate/loss_discriminator.hpp"
#include "control/law/estimate/port_audit.hpp"
#include "control/law/estimate/starvation_probe.hpp"
#include "control/law/safe_range.hpp"
#include "control/law/term/refusal_limit.hpp"

namespace onehop::law {

struct AutoParams {
  Nanos drain_window = LinkModel::drain_window;
  Nanos time_constant_min{1ms};   ///< least T
  Gain beta_max{500};             ///< of v_1
  Gain b_over_a{1500};            ///< Wi-Fi; 2 on a wire
  std::int64_t wired_bursts = 4;  ///< a, on a wire
  /// At v_1. Shorter: the queue runs dry during the core's naps (200 us). Longer: delay.
  Nanos wired_burst{100us};
  AggregateParams aggregate;
  SafeRangeParams safe_range;  ///< the fallback, and the rates that bound all modes

  void read(ParamReader& reader);
  [[nodiscard]] bool operator==(const AutoParams&) const = default;
};

class AutoLaw final : public Controller {
 public:
  enum class Mode : std::uint8_t { fallback, wired, aggregates_held, aggregates_read };

  explicit AutoLaw(const AutoParams& params) noexcept;
  RateGrant step(const LinkSample& sample) override;
  [[nodiscard]] std::string_view name() const override { return "auto"; }
  [[nodiscard]] Mode mode() const noexcept { return mode_; }
  /// is_probing: the queue starves although everything granted was sent, so g is above 1.
  [[nodiscard]] bool is_probing() const noexcept { return probe_.growth() > 1; }

 private:
  void enter(Mode mode, const LinkSample& sample) noexcept;
  RateGrant step_fallback(const LinkSample& sample);
  RateGrant step_exact(const LinkSample& sample);
  void set_band(const LinkSample& sample) noexcept;
  [[nodiscard]] Bytes backlog_limit() const noexcept;
  [[nodiscard]] BytesPerSecond drain_rate(const LinkSample& sample) const noexcept;
  [[nodiscard]] bool has_others() const noexcept;
  void update_share(const LinkSample& sample) noexcept;
  [[nodiscard]] BytesPerSecond base_rate(const LinkSample& sample, Bytes q) noexcept;
  [[nodiscard]] BytesPerSecond bound(const LinkSample& sample, BytesPerSecond base) noexcept;

  AutoParams params_;
  Mode mode_ = Mode::fallback;
  SafeRangeModel safe_range_;
  LinkModel link_;
  AggregateRoom room_;     // r
  StarvationProbe probe_;  // g, m
  PortAudit audit_;
  LateQueue late_queue_;
  RefusalLimit refusals_;
  LossDiscriminator losses_;
  Bytes a_{}, b_{};
  Nanos time_constant_{0};  // T
  BytesPerSecond granted_{};
  double share_ = 1;  // v_1 / R_win, in the mean
  std::optional<Instant> capacity_changed_at_;
};

}  // namespace onehop::law
