// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Fixed: a rate that the user gives, in wire bytes per second. It reads only what the trace shows.
#pragma once

#include <algorithm>
#include <array>

#include "control/law/controller.hpp"
#include "control/law/safe_range_params.hpp"

namespace onehop::law {

class Fixed final : public Controller {
 public:
  explicit Fixed(BytesPerSecond rate) noexcept : rate_{rate} {}
  RateGrant step(const LinkSample& sample) override {
    // Derived, 4.5 rate d_1: the shortest queue that has a safe range. Low: a core that naps sends
    // less than the rate. High: a burst after a nap is more than such a queue takes.
    constexpr Gain backlog_gain{4500};
    constexpr SafeRangeParams safe_range;
    const Bytes frame = std::max(sample.path.wire_per_frame, Bytes{1});
    const Bytes backlog = std::max(rate_ * backlog_gain * safe_range.d_1, frame * 2);
    trace_.bottleneck = sample.path.offered > Bytes{0} ? Bottleneck::cap : Bottleneck::source;
    const std::array queues{&sample.path.tx_queue, &sample.path.rx_ring, &sample.path.app_buffer};
    for (std::size_t i = 0; i < queues.size(); ++i)
      trace_.buffers[i].occupancy = queues[i]->occupancy;
    return {.rate = rate_,
            .backlog_max = backlog,
            .batch_frames = batch_for(backlog / 4, frame, 1, safe_range.batch_frames_max),
            .is_rate_final = true};
  }
  [[nodiscard]] std::string_view name() const override { return "fixed"; }
  [[nodiscard]] bool is_constant() const override { return true; }

 private:
  BytesPerSecond rate_;
};

}  // namespace onehop::law
