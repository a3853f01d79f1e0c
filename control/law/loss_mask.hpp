// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// LossMask: hides loss on the air from any law, and brakes for loss by overload itself. For lazy repair.
//
//   L = lost / told over a window of one srtt and 200 packets;  F = what the air is expected to lose (loss_brake.hpp)
//   L <= 1.5 F + 3 sigma            ->  the air: the law inside never sees these packets as lost
//   above                           ->  v <- 0.85 v, once per srtt, and the law inside sees them
//   the receiver's kernel or our own queue refused packets in the window  ->  likewise: what our own sensors announce is
//                                                                             never the air
//
// Source: [FWP], loss discrimination. Assumption: losses are counted in each report, as lazy repair's counters do.
#pragma once

#include <memory>
#include <string>

#include "control/law/controller.hpp"
#include "control/law/loss_brake.hpp"
#include "control/law/outage.hpp"

namespace onehop::law {

class LossMask final : public Controller {
 public:
  LossMask(std::unique_ptr<Controller> inner, BytesPerSecond rate_min);
  RateGrant step(const LinkSample& sample) override;
  [[nodiscard]] const LawTrace& trace() const override { return trace_; }
  [[nodiscard]] std::string_view name() const override { return name_; }

 private:
  std::unique_ptr<Controller> inner_;
  const BytesPerSecond rate_min_;
  const std::string name_;
  LossBrake brake_;
  OutageWatch outage_;
  LawTrace trace_;
};

}  // namespace onehop::law
