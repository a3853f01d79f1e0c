// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// QueueStatistics: what the queues of a path held while data flowed, weighted by time, and for what
// part of the last 2 s each was the bottleneck.
#pragma once

#include <algorithm>
#include <cstdint>

#include "control/law/estimate/queue_view.hpp"
#include "control/rate/trace.hpp"
#include "engine/base/histogram.hpp"

namespace onehop::rate {

class QueueStatistics {
 public:
  /// add counts `span`, which is at most span_max, as spent in `state`.
  void add(const RateState& state, bool is_flowing, Nanos span) noexcept {
    bottlenecks_.add(state.at, state.bottleneck, span);
    if (!is_flowing) return;
    const PathReport& path = state.path;
    const bool may_send =
        path.offered > Bytes{0} && !path.is_credit_limited && law::pushes_back(path.tx_queue.scope);
    tx_.add(path.tx_queue, backlog_now(state), span, may_send);
    rx_.add(path.rx_ring, path.rx_ring.occupancy, span, true);
    app_.add(path.app_buffer, path.app_buffer.occupancy, span, true);
  }
  void write_to(RateState& state) const {
    state.bottleneck_permille = bottlenecks_.permille();
    state.tx_queue = tx_.use();
    state.rx_ring = rx_.use();
    state.app_buffer = app_.use();
    state.tx_queue_mean = as_bytes(tx_.held.mean());
  }
  static constexpr Nanos span_max{20ms};  // a tick that came late says nothing about what it missed

 private:
  static Bytes as_bytes(std::uint64_t v) noexcept { return {static_cast<std::int64_t>(v)}; }
  struct Queue {
    LogLinearHistogram held;
    Nanos underflow{0};
    void add(const QueueTelemetry& queue, Bytes backlog, Nanos span, bool is_wanted) noexcept {
      const auto weight = static_cast<std::uint64_t>(span / 1us);
      if (queue.scope == QueueScope::none || weight == 0) return;
      held.add(static_cast<std::uint64_t>(std::max<std::int64_t>(backlog.count, 0)), weight);
      if (is_wanted && queue.occupancy <= Bytes{0}) underflow += span;
    }
    [[nodiscard]] BufferUse use() const noexcept {
      return {as_bytes(held.percentile(500)), as_bytes(held.percentile(990)), as_bytes(held.max()),
              underflow};
    }
  };
  /// The core reports right after it has refilled the queue, so the mean of its readings is too
  /// high, by at most half of what drains during one rest. Here the bytes that have drained since
  /// the reading are taken off, at the rate that the law has measured.
  [[nodiscard]] static Bytes backlog_now(const RateState& state) noexcept {
    const QueueTelemetry& queue = state.path.tx_queue;
    const std::int64_t payload = std::max<std::int64_t>(state.path.payload_per_frame.count, 1);
    const Bytes drained =
        state.law.buffers[0].drain * std::clamp(state.at - queue.at, Nanos{0}, span_max);
    const auto wire = static_cast<Wide>(drained.count) * state.path.wire_per_frame.count / payload;
    return std::max(queue.occupancy - Bytes{static_cast<std::int64_t>(wire)}, Bytes{0});
  }

  Queue tx_, rx_, app_;
  BottleneckShare bottlenecks_;
};

}  // namespace onehop::rate
