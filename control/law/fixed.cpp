// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/law/fixed.hpp"

#include <algorithm>

namespace onehop::law {

RateGrant Fixed::step(const LinkSample& sample) {
  // Derived, 4.5 rate d_1: the safe range's X_max. Low: a core that naps sends less than the rate.
  // High: a burst after a nap is more than safe-range would allow.
  constexpr Gain backlog_gain{4500};
  const std::int64_t wire = std::max<std::int64_t>(sample.path.wire_per_frame.count, 1);
  const Bytes backlog = std::max(params_.rate * backlog_gain * params_.d_1, Bytes{2 * wire});
  const auto batch = std::clamp<std::int64_t>(backlog.count / 4 / wire, 1, params_.batch_frames_max);
  trace_.at = sample.at;
  trace_.rate = params_.rate;
  trace_.backlog_max = backlog;
  trace_.bottleneck = sample.path.offered > Bytes{0} ? Bottleneck::cap : Bottleneck::source;
  const std::array queues{&sample.path.tx_queue, &sample.path.rx_ring, &sample.path.app_buffer};
  for (std::size_t i = 0; i < queues.size(); ++i) trace_.buffers[i].occupancy = queues[i]->occupancy;
  return {.rate = params_.rate, .backlog_max = backlog, .batch_frames = static_cast<std::uint32_t>(batch),
          .is_rate_final = true};
}

}  // namespace onehop::law
