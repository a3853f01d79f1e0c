// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// LossMask: hides loss on the air from any law, and caps the rate for loss by overload itself. For
// lazy repair.
//
//   L = lost / reported,  F = what the air is expected to lose       (loss_discriminator.hpp)
//
//   L <= 1.5 F + 3 sigma    the air: the law inside never sees these packets as lost
//   above                   v <- 0.85 v, once per window, and the law inside sees them
//   the receiver's kernel, or our own queue, refused packets in the window: likewise; what our own
//   sensors announce is never the air
//
// Source: [FWP], loss discrimination. Assumption: losses are counted in each report, as lazy
// repair's counters do.
#pragma once

#include "control/law/controller.hpp"
#include "control/law/estimate/loss_discriminator.hpp"
#include "control/law/estimate/outage.hpp"

namespace onehop::law {

class LossMask final : public WrapperLaw {
 public:
  LossMask(std::unique_ptr<Controller> inner, BytesPerSecond rate_min)
      : WrapperLaw{std::move(inner), "+mask"}, rate_min_{rate_min} {}
  RateGrant step(const LinkSample& sample) override;

 private:
  const BytesPerSecond rate_min_;
  LossDiscriminator losses_;
  OutageWatch outage_;
};

}  // namespace onehop::law
