// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/law/estimate/drain_meter.hpp"

#include <algorithm>

namespace onehop::law {

namespace {
// Ours: stall rules (algorithm's edge case a), in windows. Two windows without a byte are a
// blackout; eight are frozen. Low: an aggregate's air time looks like a blackout, and a fade
// forgets the rate. High: too much backlog is kept.
constexpr std::int64_t stall_windows = 2;
constexpr std::int64_t frozen_windows = 8;  // ours; low and high: as above
// Ours: a link that lets one frame go per 10 ms is slow, not stalled. Low: it is taken for stalled.
// High: a blackout is seen late.
constexpr std::int64_t stall_quanta = 4;
// Ours: what a sample shorter than a window needs. Low: one piece more or less is the sample. High:
// a start waits for a window.
constexpr std::int64_t quanta_min = 2;
// Derived: two probes of the largest frame in use (MTU 9000) within a window. Low: probes are the
// rate. High: a start waits for it.
constexpr Bytes probes_max{18'000};
}  // namespace

BytesPerSecond DrainMeter::clamp_rate(BytesPerSecond rate) const noexcept {
  return std::clamp(rate, BytesPerSecond{0}, params_.rate_max);
}

void DrainMeter::push(const DrainReading& reading, bool is_exact) noexcept {
  ring_[next_] = {reading, is_exact};
  next_ = (next_ + 1) % readings_max;
  size_ = std::min(size_ + 1, readings_max);
}

void DrainMeter::rescale(Gain alpha) noexcept {
  if (!has_drain_) return;
  drain_ = std::max(clamp_rate(drain_ * alpha), params_.rate_min);
  size_ = 0;
  is_settled_ = false;
}

void DrainMeter::begin(const DrainReading& reading) noexcept {
  size_ = 0;
  push(reading, false);
  standing_since_ = reading.at;
  newest_drained_ = {};
}

void DrainMeter::add(const DrainReading& reading, Bytes quantum) noexcept {
  if (size_ == 0) return begin(reading);
  const DrainReading& last = back(0).reading;
  if (reading.at == last.at) return;
  const Bytes drained = reading.drained_total - last.drained_total;
  // A counter that went back, or a step that no link can make (reset, replaced interface): drop and
  // restart.
  if (reading.at < last.at || drained < Bytes{0} ||
      drained > params_.rate_max * (reading.at - last.at) * 4 + mib(4))
    return begin(reading);
  newest_drained_ = drained;
  const bool is_exact = reading.is_backlogged || drained < last.occupancy;
  push(reading, is_exact);
  update_flow();
  if (params_.has_stall_rule && update_stall(reading, drained, quantum)) return;
  // A consumer that frees in pieces shows stretches without a byte; only the next piece tells the
  // rate.
  if (drained > Bytes{0} || !params_.has_stall_rule) update_drain(quantum);
}

// update_stall returns true where no sample may be taken from this reading.
bool DrainMeter::update_stall(const DrainReading& reading, Bytes drained, Bytes quantum) noexcept {
  const Nanos piece = has_drain_ ? time_for(quantum, std::max(drain_, params_.rate_min)) : Nanos{0};
  const Nanos stall = std::max(params_.window * stall_windows, piece * stall_quanta);
  const DrainReading& last = back(1).reading;
  if (drained > Bytes{0} || last.occupancy == Bytes{0}) {
    // It moved at some moment since the last reading, or had nothing to let go.
    const bool has_paused = last.at - standing_since_ > stall;
    standing_since_ = reading.at;
    if (drained == Bytes{0}) {
      is_stalled_ = false;
      return true;
    }
    if (!has_paused) return false;
    // Drains again: the pause must not be averaged in. The window starts at this reading.
    const DrainReading newest = back(0).reading;
    size_ = 0;
    push(newest, false);
    is_settled_ = false;
    return true;
  }
  if (!has_drain_ || reading.at - standing_since_ <= stall) return true;
  if (!is_stalled_) {
    is_stalled_ = true;
    decayed_at_ = reading.at;
  } else if (reading.at - decayed_at_ >= params_.window * frozen_windows) {
    drain_ = std::max(drain_ * Gain{500}, params_.rate_min);
    decayed_at_ = reading.at;
  }
  return true;
}

void DrainMeter::update_flow() noexcept {
  const DrainReading& newest = back(0).reading;
  for (std::size_t n = 1; n < size_; ++n) {
    const DrainReading& old = back(n).reading;
    const Nanos span = newest.at - old.at;
    const bool is_enough = span >= params_.window || (n + 1 == size_ && span >= params_.window / 2);
    if (!is_enough) continue;
    flow_ = clamp_rate((newest.drained_total - old.drained_total) / span);
    has_flow_ = true;
    return;
  }
}

void DrainMeter::update_drain(Bytes quantum) noexcept {
  const DrainReading& newest = back(0).reading;
  const bool is_exact = back(0).is_exact;
  // Before the first whole window the newest stretch that is long enough has to do, and the
  // estimate follows at once.
  const Nanos wanted = is_settled_ || is_exact ? params_.window : params_.span_min;
  std::size_t first = 0;
  for (; first + 1 < size_; ++first) {
    const DrainReading& old = back(first).reading;
    const Nanos span = newest.at - old.at;
    const bool is_enough =
        span >= wanted && newest.drained_total - old.drained_total >= quantum * quanta_min;
    if (is_enough || span >= params_.window || (is_exact && !back(first).is_exact)) break;
  }
  const DrainReading& old = back(first).reading;
  const Nanos span = newest.at - old.at;
  if (span < params_.span_min) return;
  const Bytes drained = newest.drained_total - old.drained_total;
  const bool is_whole = span >= params_.window;
  if (!is_whole && drained < quantum * quanta_min) return;
  const BytesPerSecond rate = clamp_rate(drained / span);

  if (!is_exact) {
    // A bound over a part of a window would let one late reading overstate; after a restart it is
    // all there is.
    if (is_settled_ && !is_whole) return;
    // The first estimate replaces a start rate, also by a lower one: a probe that went alone tells
    // only when it was sent.
    if (!has_drain_ && drained < std::min(quantum, probes_max)) return;
    if (!has_drain_ || rate > drain_) {
      drain_ = rate;
      // It drains faster than thought: to go on decaying would hold the rate down
      is_stalled_ = false;
    }
    has_drain_ = true;
    return;
  }
  if (!is_settled_ || !has_drain_) {
    drain_ = rate;
  } else if (newest.at - updated_at_ >= params_.update_interval) {
    drain_.count += (rate.count - drain_.count) * params_.gain_permille / 1000;
  } else {
    return;
  }
  drain_ = std::max(drain_, params_.rate_min);
  updated_at_ = newest.at;
  has_drain_ = has_exact_ = true;
  is_stalled_ = false;
  is_settled_ = is_settled_ || is_whole;
}

}  // namespace onehop::law
