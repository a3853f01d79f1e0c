// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Fixed: a rate that the user gives, in wire bytes per second. It reads only what the trace shows.
#pragma once

#include <algorithm>
#include <array>

#include "control/law/controller.hpp"

namespace onehop::law {

struct FixedParams {
  BytesPerSecond rate{};
  Nanos d_1{4ms};
  std::uint32_t batch_frames_max = 44;
};

class Fixed final : public Controller {
 public:
  explicit Fixed(const FixedParams& params) noexcept : params_{params} {}
  RateGrant step(const LinkSample& sample) override {
    // Derived, 4.5 rate d_1: the safe range's X_max. Low: a core that naps sends less than the
    // rate. High: a burst after a nap is more than safe-range would allow.
    constexpr Gain backlog_gain{4500};
    const Bytes frame = std::max(sample.path.wire_per_frame, Bytes{1});
    const Bytes backlog = std::max(params_.rate * backlog_gain * params_.d_1, frame * 2);
    trace_.bottleneck = sample.path.offered > Bytes{0} ? Bottleneck::cap : Bottleneck::source;
    const std::array queues{&sample.path.tx_queue, &sample.path.rx_ring, &sample.path.app_buffer};
    for (std::size_t i = 0; i < queues.size(); ++i)
      trace_.buffers[i].occupancy = queues[i]->occupancy;
    return {.rate = params_.rate,
            .backlog_max = backlog,
            .batch_frames = batch_for(backlog / 4, frame, 1, params_.batch_frames_max),
            .is_rate_final = true};
  }
  [[nodiscard]] std::string_view name() const override { return "fixed"; }
  [[nodiscard]] bool is_constant() const override { return true; }

 private:
  FixedParams params_;
};

}  // namespace onehop::law
