// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/law/term/loss_mask.hpp"

namespace onehop::law {

RateGrant LossMask::step(const LinkSample& sample) {
  const PathReport& path = sample.path;
  LinkSample masked = sample;
  masked.path.packets_lost_total = losses_.overload_total();  // a window too young is not shown yet
  RateGrant grant = step_inner(masked);
  // No floor at the measured drain: the cap is there for an overload of the channel.
  const auto cap = losses_.step(
      {.at = sample.at,
       .packets_reported_total = path.packets_reported_total,
       .packets_lost_total = path.packets_lost_total,
       .receiver_drops_total = path.rx_ring.refused_total + path.tx_queue.refused_total,
       .is_outage = outage_.step(sample.at, path, grant.feedback_interval),
       .srtt = path.srtt,
       .feedback_interval = grant.feedback_interval,
       .wanted = grant.rate,
       .drain = {},
       .rate_min = rate_min_},
      fresh(sample.facts.mac, sample.at));
  trace_.details.loss_cap = cap;
  if (!cap || *cap >= grant.rate) return grant;
  grant.rate = *cap;
  grant.is_rate_final = false;
  trace_.bottleneck = Bottleneck::cap;
  return grant;
}

}  // namespace onehop::law
