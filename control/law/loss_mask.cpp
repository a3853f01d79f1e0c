// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/law/loss_mask.hpp"

#include <algorithm>

namespace onehop::law {

LossMask::LossMask(std::unique_ptr<Controller> inner, BytesPerSecond rate_min)
    : inner_{std::move(inner)}, rate_min_{rate_min}, name_{std::string{inner_->name()} + "+mask"} {}

RateGrant LossMask::step(const LinkSample& told) {
  LinkSample sample = told;
  sample.path.packets_lost_total = brake_.overload_total();  // losses not yet judged are not shown
  RateGrant grant = inner_->step(sample);
  trace_ = inner_->trace();
  // No floor at the measured drain: an overload of the channel is what the brake is for here.
  const auto cap = brake_.step({.at = told.at, .packets_told_total = told.path.packets_told_total,
                                .packets_lost_total = told.path.packets_lost_total,
                                .receiver_drops_total = told.path.rx_ring.refused_total + told.path.tx_queue.refused_total,
                                .mac = fresh(told.facts.mac, told.at),
                                .is_outage = outage_.step(told.at, told.path, grant.feedback_interval), .srtt = told.path.srtt,
                                .feedback_interval = grant.feedback_interval, .wanted = grant.rate,
                                .drain = {}, .rate_min = rate_min_});
  trace_.details.loss_cap = cap;
  if (!cap || *cap >= grant.rate) return grant;
  grant.rate = trace_.rate = *cap;
  grant.is_rate_final = false;
  trace_.bottleneck = Bottleneck::cap;
  return grant;
}

}  // namespace onehop::law
