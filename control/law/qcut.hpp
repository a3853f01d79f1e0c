// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// QCut keeps the queue below us short, around any law. It limits B, what is handed down and not
// completed yet.
//
//   R_hat = EWMA_1/8 of the completion rate, sampled only while B > 0
//   gate:   B + batch <= G = max(R_hat tau, B_min)    ->  backlog_max = min(inner, G)
//   tau  <- min(1.25 tau, 20 ms)    B reached 0 with data waiting, at most once in 100 ms
//        <- max(0.98 tau, tau_0)    else, every second
//
//   tau_0 = 4 ms wired, 8 ms Wi-Fi (two of the largest aggregates)
//   B_min = 2 batches, a batch at most R_hat tau/2
//
//   ┌────┐ R_hat > 1.5 x link, or no such queue  ┌─────┐
//   │ on │──────────────────────────────────────▶│ off │   completion does not mean sent
//   └────┘                                       └─────┘
//
// Source: after [QCUT], of which only a summary was available: the idea is theirs; the equations
// are a reconstruction and claim no equivalence. type=deviation reason=the full text was not
// available.
#pragma once

#include "control/law/controller.hpp"
#include "control/law/estimate/drain_meter.hpp"
#include "control/law/notice.hpp"

namespace onehop::law {

class ParamReader;

struct QcutParams {
  Nanos tau_wired{4ms};
  Nanos tau_wifi{8ms};
  Nanos tau_max{20ms};  ///< mac80211's CoDel drops above it
  BytesPerSecond rate_max{12'500'000'000};

  void read(ParamReader& reader);
  [[nodiscard]] bool operator==(const QcutParams&) const = default;
};

class Qcut final : public WrapperLaw {
 public:
  Qcut(std::unique_ptr<Controller> inner, const QcutParams& params);
  RateGrant step(const LinkSample& sample) override;

 private:
  void adapt(const LinkSample& sample, bool is_binding) noexcept;
  [[nodiscard]] bool is_false_completion(const LinkSample& sample) noexcept;

  QcutParams params_;
  DrainMeter completion_;
  SensorTimeout no_queue_;
  Nanos tau_{0};
  Bytes gate_{};      // G
  double slack_ = 0;  // how far the flow stays behind R_hat
  Instant adapted_at_{}, widened_at_{};
  bool is_off_ = false;  // for good: completion does not mean sent
  std::int32_t false_readings_ = 0;
};

}  // namespace onehop::law
