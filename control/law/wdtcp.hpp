// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Wdtcp: the rate from the physical rate and the MAC's queue: multiplicative on the first, additive on the second.
//
//   C physical rate    q lower queue    L aggregate    n contending pairs, at least 2    rtt one frame exchange
//
//   (1)  alpha  = C / C_last                                 clamped to 1/4 .. 4; 1 while C is unknown
//   (2)  a      = min(C rtt / (n - 1), L)                    (C rtt / (n - 1) is the paper's BDP (bf_1/bf_2 - 1))
//   (3)  b      = max(1.5 L, a)
//   (4)  beta   = (a - q)/rtt  if q < a;  -(q - b)/rtt  if q > b;  else 0
//
//        offset: a and b stand S/2 higher, S = what leaves at once: an aggregate, or during a nap of the core;
//        S/4 where an exchange takes more than 1 ms: the core then looks twice in each
//
//   offset (default)                                         paper
//   (5)  R_base <- alpha R_base                              R <- alpha R + beta
//   (6)  R_base <- R_base + (eta_hat C - R_base)/16
//   (7)  R      = R_base + beta,  |beta| <= R_base/2; where a port pushes back and it is no wire, (a - q)/110 us <= 10 R_base below a:
//        of several senders one may win the medium twice in a row, and the backlog limit holds the queue
//   (8)  backlog limit = b + L/2, and where a port pushes back on Wi-Fi a,
//        while q < a                  beside others: v_1 rtt < 0.75 L; only where C is known, for rtt rests on it
//        while aggregates leave full  else
//
// Source: [WDTCP], explicit capacity control. (5) to (7) type=deviation reason=R that keeps beta is a double integrator
// (the queue integrates the rate, the rate integrates the queue's error): it swings for ever, bounded by nothing but the
// dead band. As an offset beta is spent once, and R_base is pulled to what is delivered, eta_hat C with
// eta_hat = v_1 / C while backlogged. `paper` keeps the integrating form to compare with.
//
// Where a sensor is missing: no C: alpha = 1, v_1 in C's place. No q: no linear part. Neither: safe-range.
// Called by the rate loop on the control thread, by tests and by simulators.
#pragma once

#include <cstdint>

#include "control/law/ack_spacing.hpp"
#include "control/law/aggregate_meter.hpp"
#include "control/law/capacity.hpp"
#include "control/law/controller.hpp"
#include "control/law/drain_meter.hpp"
#include "control/law/frame_ratio.hpp"
#include "control/law/notice.hpp"
#include "control/law/queue_view.hpp"
#include "control/law/safe_range.hpp"

namespace onehop::law {

struct WdtcpParams {
  enum class Form : std::uint8_t { offset, paper };
  Form form = Form::offset;
  Gain eta_start{650};              ///< share of C that a transport gets, until it was measured
  Gain beta_max{500};               ///< of R_base
  std::int32_t pairs_min = 2;       ///< n = 1 would make a infinite
  AggregateParams aggregate;
  SafeRangeParams safe_range;       ///< what stands in without sensors; its rates bound this law as well
  [[nodiscard]] bool operator==(const WdtcpParams&) const = default;
};

class Wdtcp final : public Controller {
 public:
  explicit Wdtcp(const WdtcpParams& params) noexcept;
  RateGrant step(const LinkSample& sample) override;
  [[nodiscard]] const LawTrace& trace() const override { return trace_; }
  [[nodiscard]] std::string_view name() const override {
    return params_.form == WdtcpParams::Form::paper ? "wdtcp:paper" : "wdtcp";
  }

 private:
  void read_queue(const LinkSample& sample, const QueueView& view) noexcept;
  void follow_capacity(const BytesPerSecond* phy, Gain alpha) noexcept;
  void set_band(const LinkSample& sample, const BytesPerSecond* phy) noexcept;
  [[nodiscard]] bool is_refill(const QueueView& view) const noexcept;
  [[nodiscard]] Bytes backlog(const QueueView& view, BytesPerSecond rate) const noexcept;
  [[nodiscard]] BytesPerSecond linear_part(const QueueView& view) const noexcept;
  [[nodiscard]] BytesPerSecond clamp_rate(BytesPerSecond rate) const noexcept;
  [[nodiscard]] bool is_slow() const noexcept;
  RateGrant grant(const LinkSample& sample, const QueueView& view, BytesPerSecond rate);

  WdtcpParams params_;
  SafeRange fallback_;
  AckSpacing acks_;
  AggregateMeter aggregate_;
  CapacityStep capacity_{{}};
  DrainMeter drain_;
  VisitMeter visits_;
  FrameRatio ratio_;
  LawTrace trace_;
  Absence no_phy_rate_, no_queue_, no_sensor_;
  Gain eta_;
  BytesPerSecond base_{};     // R_base, or R of the paper's form
  bool has_base_ = false;
  bool is_wired_ = false;
  bool has_others_ = false;    // on the medium, as our own drain tells
  Bytes a_{}, b_{}, limit_{};
  Nanos rtt_{0};
  Instant stepped_at_{};
  Instant pulled_at_{};
  Nanos span_{0};             // between the last two steps
};

}  // namespace onehop::law
