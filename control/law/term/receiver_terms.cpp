// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/law/term/receiver_terms.hpp"

#include <algorithm>

namespace onehop::law {

namespace {
// Ours: more than any machine has. Low: a real ring is cut. High: a peer's lie overflows the
// arithmetic.
constexpr std::int64_t peer_bytes_max = std::int64_t{1} << 40;
// Ours: a disk of 80 Mbit/s drains a grain in this time. Low: slower disks make the rate swing.
// High: a full buffer is answered late.
constexpr Nanos d_app_max{100ms};
}  // namespace

ReceiverTerms::ReceiverTerms(const SafeRangeParams& params) noexcept
    : params_{params},
      ring_{.meter = DrainMeter{{.window = params.d_rx_min, .rate_max = params.rate_max}}},
      app_{ring_} {}

// grain is the least that the application buffer holds in full flow.
Bytes ReceiverTerms::grain() const noexcept {
  return std::max(params_.app_grain, app_.meter.drain() * params_.app_nap);
}

//= [SMUFF] table 1.3: d_2, d_3 = srtt; type=deviation
//=   reason=below 2 ms the terms would act on single frames, and a step of one grain must not be
//=   answered faster than a grain drains
void ReceiverTerms::read(const PathReport& path, Bytes frame) noexcept {
  ring_.latency = std::max(path.srtt, params_.d_rx_min);
  app_.latency = std::clamp(time_for(grain(), app_.meter.drain()), ring_.latency,
                            std::max(ring_.latency, d_app_max));
  read_buffer(ring_, path.rx_ring, frame);
  read_buffer(app_, path.app_buffer, frame);
}

void ReceiverTerms::read_buffer(Buffer& buffer, const QueueTelemetry& queue, Bytes frame) noexcept {
  if (queue.scope == QueueScope::none) {
    // An invalid sensor drops out; it never reads as 0.
    buffer.is_known = false;
    buffer.meter.restart();
    return;
  }
  // The peer's numbers are bounded before anything is computed from them.
  buffer.capacity = {std::clamp<std::int64_t>(queue.capacity.count, 0, peer_bytes_max)};
  const std::int64_t occupancy_max =
      buffer.capacity > Bytes{0} ? buffer.capacity.count : peer_bytes_max;
  buffer.occupancy = {std::clamp<std::int64_t>(queue.occupancy.count, 0, occupancy_max)};
  buffer.is_backlogged = queue.is_backlogged;
  buffer.is_known = true;
  buffer.meter.set_window(buffer.latency);
  buffer.meter.add({.at = queue.at,
                    .drained_total = {std::max<std::int64_t>(queue.drained_total.count, 0)},
                    .occupancy = buffer.occupancy,
                    .is_backlogged = queue.is_backlogged},
                   frame * 2);
}

void ReceiverTerms::set_rows(Instant now, Nanos srtt, BytesPerSecond inflow,
                             std::span<BufferRow, 3> rows) noexcept {
  rows[1] = row_of(ring_, {inflow, params_.v_1_lo, params_.v_1_up}, {}, now, srtt);
  rows[2] =
      row_of(app_, {ring_.meter.flow(), params_.v_rx_lo, params_.v_rx_up}, grain(), now, srtt);
}

//= [SMUFF] eq. (5), (6), i >= 2
BufferRow ReceiverTerms::row_of(Buffer& buffer, const Inflow& inflow, Bytes target_min, Instant now,
                                Nanos srtt) const noexcept {
  const BytesPerSecond v = buffer.meter.drain();
  BufferRow row{.occupancy = buffer.occupancy, .drain = v, .occupancy_max = buffer.capacity};
  if (!buffer.is_known || !buffer.meter.has_drain()) return row;
  const Nanos d = buffer.latency;
  const BytesPerSecond difference = v * params_.v_rx_up - inflow.rate * inflow.lo;
  Bytes target = std::max(difference, BytesPerSecond{0}) * d;
  //= [SMUFF] eq. (2), (3)
  row.under = target;
  if (buffer.capacity > Bytes{0})
    row.over = std::clamp(buffer.capacity - (inflow.rate * inflow.up - v * params_.v_rx_lo) * d,
                          Bytes{0}, buffer.capacity);
  target = std::max(target, target_min);
  if (buffer.capacity > Bytes{0}) target = std::min(target, buffer.capacity / 2);  // edge case h
  // A target near 0 (v_i just below its inflow) is reached by one frame; a fifth of v d is what (5)
  // gives at rest.
  const Bytes mark = std::max(target, v * d / 5);
  if (buffer.is_backlogged || buffer.occupancy > mark) {
    buffer.was_backlogged = true;
    buffer.backlogged_at = now;
  }
  const Nanos latch = std::max(params_.latch_min, srtt * 4);
  const bool is_latched = buffer.was_backlogged && now - buffer.backlogged_at <= latch;
  row.target = target;
  row.rate = v + (target - buffer.occupancy) / d;
  row.takes_part = is_latched || !params_.has_latch;
  return row;
}

}  // namespace onehop::law
