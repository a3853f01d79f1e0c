// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Wdtcp: the rate from the physical rate and the MAC's queue: multiplicative on the first, additive
// on the second.
//
//   C physical rate    q lower queue    L aggregate    n contending pairs, at least 2
//   rtt one frame exchange    S the core's saw: an aggregate, or what leaves during a nap
//
//   (1)  alpha = C / C_last                               clamped to 1/4 .. 4; 1 while C is unknown
//   (2)  a     = min(C rtt / (n - 1), L)                  the paper: BDP (bf_1/bf_2 - 1)
//   (3)  b     = max(1.5 L, a)
//   (4)  beta  = (a - q)/rtt  if q < a;   -(q - b)/rtt  if q > b;   else 0
//
//   offset (default)                                      paper
//   (5)  R_base <- alpha R_base                           R <- alpha R + beta
//   (6)  R_base <- R_base + (eta_hat C - R_base)/16
//   (7)  R      = R_base + beta,  |beta| <= R_base/2
//   (8)  backlog limit = b + L/2                          max(R 18 ms, 2 b)
//
//   offset: a and b stand S/2 higher; S/4 where an exchange takes more than 1 ms, for the core then
//   polls twice in each. Where a port pushes back on Wi-Fi:
//     below a, (7) has beta = (a - q)/110 us <= 10 R_base: one of several senders may win the
//     medium twice in a row, and the backlog limit holds the queue
//     (8) is a   beside others (v_1 rtt < 0.75 L; only where C is known): while q < a
//                alone: while aggregates leave full
//
// Source: [WDTCP], explicit capacity control. (5) to (7) type=deviation reason=R that keeps beta is
// a double integrator (the queue integrates the rate, the rate integrates the queue's error): it
// swings for ever, bounded by nothing but the dead band. As an offset beta is spent once, and
// R_base is pulled to what is delivered, eta_hat C with eta_hat = v_1 / C while backlogged. `paper`
// keeps the integrating form to compare with.
//
// Where a sensor is missing: no C: alpha = 1, v_1 in C's place. No q: no linear part. Neither:
// safe-range. Called by the rate loop on the control thread, by tests and by simulators.
#pragma once

#include <cstdint>

#include "control/law/controller.hpp"
#include "control/law/estimate/link_model.hpp"
#include "control/law/notice.hpp"
#include "control/law/safe_range.hpp"

namespace onehop::law {

struct WdtcpParams {
  enum class Form : std::uint8_t { offset, paper };
  Form form = Form::offset;
  Gain eta_start{650};         ///< share of C that a transport gets, until it was measured
  Gain beta_max{500};          ///< of R_base
  std::int32_t pairs_min = 2;  ///< n = 1 would make a infinite
  AggregateParams aggregate;
  SafeRangeParams safe_range;  ///< the fallback; its rates bound this law as well

  void read(ParamReader& reader);
  [[nodiscard]] bool operator==(const WdtcpParams&) const = default;
};

class Wdtcp final : public Controller {
 public:
  explicit Wdtcp(const WdtcpParams& params) noexcept;
  RateGrant step(const LinkSample& sample) override;
  [[nodiscard]] std::string_view name() const override {
    return is_paper() ? "wdtcp:paper" : "wdtcp";
  }

 private:
  /// raise_notices reports sensors that stay away while data flows.
  void raise_notices(const LinkSample& sample, bool has_queue, bool has_phy) noexcept;
  void update_base(Gain alpha) noexcept;
  void set_band(const LinkSample& sample) noexcept;
  [[nodiscard]] bool is_refill() const noexcept;
  [[nodiscard]] Bytes backlog_limit(BytesPerSecond rate) const noexcept;
  [[nodiscard]] BytesPerSecond linear_part() const noexcept;
  [[nodiscard]] bool is_paper() const noexcept { return params_.form == WdtcpParams::Form::paper; }
  RateGrant grant(const LinkSample& sample, BytesPerSecond rate);

  WdtcpParams params_;
  SafeRangeModel safe_range_;
  LinkModel link_;
  SensorTimeout no_phy_rate_, no_queue_, no_sensor_;
  Gain eta_;
  BytesPerSecond base_{};  // R_base, or R of the paper's form
  bool has_base_ = false;
  bool is_wired_ = false;
  bool has_others_ = false;  // on the medium, as our own drain shows
  Bytes a_{}, b_{};
  Instant pulled_at_{};
};

}  // namespace onehop::law
