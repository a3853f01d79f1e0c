// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/law/safe_range.hpp"

#include <algorithm>

#include "control/law/queue_view.hpp"
#include "engine/base/check.hpp"

namespace onehop::law {

namespace {
// Derived, X_max,1 = 4.5 v d_1: from (2), (3) with v_0 up to 3 v_1. Low: the safe range is empty.
// High: a longer queue may stand.
constexpr Gain x_max_floor{4500};
// [SMUFF] two BDP. Low: as above, where the round trip is long. High: delay.
constexpr std::int64_t x_max_bdp = 2;
// Ours; the paper saw up to 25 ms. Low: a long path's bursts are cut. High: X_max would be a reason
// to hold more than 80 ms.
constexpr Nanos srtt_for_x_max{40ms};
// Ours: before anything was measured the first burst is bounded by bytes, not by rate:
// backlog_start leaves in this time at the most, so any link up to 260 Mbit/s shows an exact drain
// at once and faster ones a bound to triple from. backlog_start = 32 KiB is 13 ms at 20 Mbit/s
// (more would break 18 ms there) and 0.4 ms at 600 Mbit/s. Low: a burst that no queue holds. High:
// fast links show only what was sent, and start by tripling.
constexpr Nanos start_burst{1ms};
// Ours; above it our own bytes are X_1 (edge case b). Low: a single ping is a rival. High: a
// rival's queue starves us.
constexpr std::int64_t foreign_share_max_permille = 200;
// Ours. Low: the trim follows the saw. High: the queue stands off its target for longer.
constexpr std::int64_t trim_readings = 32;
// Ours. Low: a core with long naps stays off target. High: a wrong reading may double the delay.
constexpr std::int64_t trim_limit_permille = 500;
// Ours: more than any machine has. Low: a real ring is cut. High: a peer's lie overflows the
// arithmetic.
constexpr std::int64_t peer_bytes_max = std::int64_t{1} << 40;
// Ours: a core that was away for that long makes it good in one burst. Low: naps cost rate. High:
// bursts overflow what nobody sees.
constexpr Nanos paced_depth{5ms};
// Derived: two polls. Low: a late poll blinds the law. High: the queue has turned over since.
constexpr Nanos lower_queue_age_max{8ms};
// Ours, on what leaves in a nap. Low: the queue runs dry. High: delay that `zero` was chosen to
// avoid.
constexpr Gain zero_margin{1250};
// Ours: two batches of two. Low: a core that comes late runs the queue dry. High: delay on a slow
// link.
constexpr std::int64_t frames_min = 4;

Bytes scale(Bytes b, std::int64_t num, std::int64_t den) noexcept {
  return {static_cast<std::int64_t>(static_cast<Wide>(b.count) * num / den)};
}
}  // namespace

SafeRange::SafeRange(const SafeRangeParams& params) noexcept
    : params_{params},
      own_{{.window = params.d_1, .rate_max = params.rate_max, .rate_min = params.rate_min, .has_stall_rule = true}},
      receivers_{Receiver{.meter = DrainMeter{{.window = params.d_rx_min, .rate_max = params.rate_max}}},
                 Receiver{.meter = DrainMeter{{.window = params.d_rx_min, .rate_max = params.rate_max}}}},
      paced_{{.rate_start = params.rate_start, .rate_min = params.rate_min, .rate_max = params.rate_max,
              .interval = params.d_1}},
      batch_frames_{params.batch_frames_max} {}

Bytes SafeRange::to_payload(Bytes wire) const noexcept { return scale(wire, payload_per_frame_, wire_per_frame_); }
Bytes SafeRange::to_wire(Bytes payload) const noexcept { return scale(payload, wire_per_frame_, payload_per_frame_); }

RateGrant SafeRange::step(const LinkSample& sample) {
  ONEHOP_CHECK(sample.at >= stepped_at_);
  stepped_at_ = sample.at;
  if (sample.path.payload_per_frame > Bytes{0} && sample.path.wire_per_frame >= sample.path.payload_per_frame) {
    payload_per_frame_ = sample.path.payload_per_frame.count;
    wire_per_frame_ = sample.path.wire_per_frame.count;
  }
  if (sample.path.srtt > Nanos{0}) {
    // PING shares the queue, so srtt holds X_1 / v_1. X_max from the newest srtt would let a deeper queue justify itself.
    srtt_min_ = srtt_min_ == Nanos{0} ? sample.path.srtt : std::min(srtt_min_, sample.path.srtt);
  }
  trace_.at = sample.at;
  trace_.is_degraded = false;
  for (BufferRow& row : trace_.buffers) row.takes_part = false;

  read_own(sample);
  const Nanos d = receiver_latency(sample);
  read_receiver(receivers_[0], sample.path.rx_ring, d);
  const Nanos d_app = app_latency(d);
  read_receiver(receivers_[1], sample.path.app_buffer, d_app);
  if (has_queue_) {
    set_own_term(sample);
  } else {
    set_paced_term(sample);
  }
  set_receiver_term(1, sample, d);
  set_receiver_term(2, sample, d_app);
  update_trim(sample);
  return grant(sample);
}

//= [SMUFF] table 1.3: d_2, d_3 = srtt; type=deviation reason=below 2 ms the terms would act on single frames
Nanos SafeRange::receiver_latency(const LinkSample& sample) const noexcept {
  return std::max(sample.path.srtt, params_.d_rx_min);
}

// app_grain is the least that the application buffer holds in full flow: it fills and drains by whole blocks, and the
// file thread looks at it once per nap. A target below that would take each block for a backlog.
Bytes SafeRange::app_grain() const noexcept {
  return std::max(params_.app_grain, receivers_[1].meter.drain() * params_.app_nap);
}

// app_latency: a step of one grain must not be answered faster than a grain drains.
Nanos SafeRange::app_latency(Nanos d) const noexcept {
  const BytesPerSecond v = receivers_[1].meter.drain();
  return std::clamp(time_for(app_grain(), v), d, std::max(d, params_.d_app_max));
}

// pick_queue: our own queue where it pushes back; else the qdisc if it can be seen; else nothing.
QueueTelemetry SafeRange::pick_queue(const LinkSample& sample) const noexcept {
  const QueueTelemetry& own = sample.path.tx_queue;
  if (pushes_back(own.scope)) return without_refused(sample.path);
  const bool has_lower = sample.lower_queue.scope == QueueScope::lower_queue &&
                         sample.lower_queue_age <= lower_queue_age_max;
  return has_lower ? sample.lower_queue : QueueTelemetry{};
}

void SafeRange::read_own(const LinkSample& sample) {
  // A reading grows old, the length of a queue does not: 8 ms of data may be more than a link takes that fell silent or tells late.
  const MaybeFact<ExactQueue>& exact = sample.facts.exact_queue;
  if (exact && exact->value.queue.capacity > Bytes{0}) told_capacity_ = exact->value.queue.capacity;
  const QueueTelemetry queue = pick_queue(sample);
  is_backlog_paced_ = pushes_back(sample.path.tx_queue.scope);
  const bool had_queue = has_queue_;
  has_queue_ = queue.scope != QueueScope::none;
  trace_.details.sensor = !has_queue_ ? QueueSensor::none : is_backlog_paced_ ? QueueSensor::port : QueueSensor::qdisc;
  if (!has_queue_) return;
  if (!had_queue) own_.restart();
  BufferRow& row = trace_.buffers[0];
  const Bytes occupancy = to_payload(std::max(queue.occupancy, Bytes{0}));
  own_.add({.at = queue.at, .drained_total = to_payload(queue.drained_total), .occupancy = occupancy},
           Bytes{payload_per_frame_} * static_cast<std::int64_t>(batch_frames_));
  measure_saw(sample);
  row.occupancy = occupancy;
  // Never below 1 ms of data, or a foreign flow's drops starve us.
  refusals_.step(sample.at, std::max(sample.path.tx_queue.refused_total, sample.lower_queue.refused_total), occupancy, own_.drain() * 1ms);
}

// measure_saw: what leaves between two visits of the engine core. One report may cover several visits.
void SafeRange::measure_saw(const LinkSample& sample) noexcept {
  const DataPathCounters& counters = sample.path.counters;
  if (sample.path.at == saw_.at) return;
  const std::uint64_t wakeups = counters.wakeups_total - saw_.wakeups_total;
  const std::uint64_t turns = counters.turns_total - saw_.turns_total;
  const Nanos span = sample.path.at - saw_.at;
  const bool is_usable = saw_.has_reading && span > Nanos{0} && span < 20ms && own_.newest_drained() > Bytes{0};
  saw_.wakeups_total = counters.wakeups_total;
  saw_.turns_total = counters.turns_total;
  saw_.at = sample.path.at;
  saw_.has_reading = true;
  if (!is_usable) return;
  // A core that never waits has no wake-ups; then each turn is a visit.
  const auto visits = static_cast<std::int64_t>(std::clamp<std::uint64_t>(wakeups > 0 ? wakeups : turns, 1, 1'000'000));
  const Bytes drained = own_.newest_drained() / visits;
  saw_.amplitude += (drained - saw_.amplitude) / 8;
  saw_.period += (span / visits - saw_.period) / 8;
}

// mean_of: the saw's mean from one reading whose phase is unknown: the port may read before it fills, after, or at any
// time. If the core fills to backlog_max the mean is backlog_max - S/2 whatever the phase; outside that band the
// reading itself tells which end of the saw it is.
Bytes SafeRange::mean_of(Bytes reading) const noexcept {
  const Bytes half = std::min(saw_.amplitude, target_) / 2;
  if (!is_backlog_paced_ || backlog_max_ == Bytes{0}) return reading;
  if (reading > backlog_max_) return reading - half;
  if (reading < backlog_max_ - half - half) return reading + half;
  return backlog_max_ - half;
}

// set_limits finds X_max, the target and whether a safe range exists.
//= [SMUFF] eq. (2), (3), (4)
void SafeRange::set_limits(const LinkSample& sample, BytesPerSecond v) {
  const bool is_strict = params_.bounds == Bounds::strict;
  const bool has_claim = sample.limits.link_rate > BytesPerSecond{0} && !sample.limits.is_link_virtual;
  BytesPerSecond up = v * params_.v_1_up;
  BytesPerSecond lo = v * params_.v_1_lo;
  if (is_strict) {
    lo = {};
    if (has_claim) up = std::max(v, sample.limits.link_rate);
  }
  const Nanos d = params_.d_1;
  const BytesPerSecond v_0_up = v + up;  // (6) with an empty queue
  x_max_ = std::max(v * std::min(srtt_min_, srtt_for_x_max) * x_max_bdp, (up + v_0_up - lo) * d);
  //= [SMUFF] table 1.3: X_max = 2 BDP; type=deviation reason=below srtt 9 ms that leaves no safe range; 4.5 v d_1 is the floor
  if (!is_strict) x_max_ = std::max(x_max_, v * x_max_floor * d);
  if (sample.lower_queue.scope == QueueScope::lower_queue && sample.lower_queue.capacity > Bytes{0})
    x_max_ = std::min(x_max_, to_payload(sample.lower_queue.capacity));
  if (told_capacity_ > Bytes{0}) x_max_ = std::min(x_max_, to_payload(told_capacity_));
  x_max_ = refusals_.bound(x_max_);

  const Bytes under = up * d;
  const Bytes over = x_max_ - (v_0_up - lo) * d;
  trace_.is_degraded = under > over + Bytes{payload_per_frame_};
  trace_.buffers[0].under = under;
  trace_.buffers[0].over = std::max(over, Bytes{0});
  target_ = under;
  if (params_.target == Target::mid) target_ = (under + over) / 2;
  if (trace_.is_degraded) target_ = std::clamp((under + over) / 2, x_max_ / 4, x_max_ / 2);  // edge case e
}

void SafeRange::set_own_term(const LinkSample& sample) {
  BufferRow& row = trace_.buffers[0];
  const bool has_claim = sample.limits.link_rate > BytesPerSecond{0} && !sample.limits.is_link_virtual;
  const bool is_claim_used = has_claim && !params_.is_start_known;
  const BytesPerSecond start = is_claim_used ? sample.limits.link_rate * Gain{600} : params_.rate_start;
  const BytesPerSecond v = own_.has_drain() ? own_.drain() : std::min(start, params_.rate_max);
  row.drain = v;
  row.takes_part = true;
  set_limits(sample, v);
  if (!own_.has_drain() && !has_claim && !params_.is_start_known) {
    target_ = std::min(target_, params_.backlog_start);
    x_max_ = params_.backlog_start;
  }

  Bytes effective = target_;
  const Bytes half_saw = std::min(saw_.amplitude, target_) / 2;
  const Bytes least = Bytes{payload_per_frame_} * frames_min;
  const auto batch = std::clamp<std::int64_t>(target_.count / 4 / payload_per_frame_, 2, params_.batch_frames_max);
  batch_frames_ = static_cast<std::uint32_t>(batch);
  if (params_.target == Target::zero && own_.has_drain()) {
    // Low latency: what leaves while the core naps, and a quarter more, so that the queue just never runs dry.
    const Bytes two_batches = Bytes{payload_per_frame_ * 2} * batch;
    backlog_max_ = std::max(two_batches, v * saw_.period * zero_margin);
    backlog_max_ = std::min(backlog_max_, target_);
    effective = backlog_max_;
  } else {
    backlog_max_ = target_ + half_saw + scale(target_, trim_.permille, 1000);
  }

  // Foreign bytes in the same queue: up to a fifth we yield to, beyond that only our own bytes count (edge case b).
  const Bytes foreign = to_payload(std::max(sample.lower_queue_foreign, Bytes{0}));
  const Bytes both = row.occupancy + foreign;
  const bool yields = is_backlog_paced_ && foreign * 1000 <= both * foreign_share_max_permille;
  yielded_ = yields ? foreign : Bytes{0};
  backlog_max_ -= yielded_;
  backlog_max_ = std::max(std::min(backlog_max_, x_max_), least);

  //= [SMUFF] eq. (6), i = 1
  Bytes x = row.occupancy;
  if (is_backlog_paced_) x = std::max(mean_of(row.occupancy) - half_saw, Bytes{0}) + yielded_;
  row.target = effective;
  row.occupancy_max = x_max_;
  const Bytes lack = effective - x;
  row.rate = v + (lack / params_.d_1);
  if (!own_.has_drain() && is_backlog_paced_) row.rate = std::max(row.rate, params_.backlog_start / start_burst);
}

// set_paced_term stands in for i = 1 where no queue can be read.
void SafeRange::set_paced_term(const LinkSample& sample) {
  BufferRow& row = trace_.buffers[0];
  const PathReport& path = sample.path;
  const bool is_outage = outage_.step(sample.at, path, feedback_interval_);
  BytesPerSecond rate = paced_.step({.at = sample.at, .sent_total = to_payload(path.sent_total),
                                           .packets_told_total = path.packets_told_total,
                                           .packets_lost_total = path.packets_lost_total, .srtt = path.srtt,
                                           .feedback_at = path.feedback_at,
                                           .is_outage = is_outage});
  const bool is_used = paced_.injection() * Gain{1400} >= BytesPerSecond{to_payload({trace_.rate.count}).count};
  const DrainMeter& peer = receivers_[0].meter;
  const auto bound = delay_bound_.step({.rtt = path.rtt, .arrived_total = receivers_[0].is_known ? path.rx_ring.drained_total : Bytes{},
                                        .arrived_at = receivers_[0].is_known ? path.rx_ring.at : Instant{},
                                        .arrival_rate = peer.has_flow() ? peer.flow() : BytesPerSecond{},
                                        .rate_start = params_.rate_start, .is_used = is_used, .is_outage = is_outage});
  if (bound) rate = std::min(rate, std::max(*bound, params_.rate_min));
  row = {.occupancy = {}, .drain = paced_.injection(), .target = {}, .rate = rate, .takes_part = true};
  target_ = {};
  const auto batch = std::clamp<std::int64_t>((rate * 500us).count / payload_per_frame_, 2, params_.batch_frames_max);
  batch_frames_ = static_cast<std::uint32_t>(batch);
  const Bytes two_batches = Bytes{payload_per_frame_ * 2} * batch;
  backlog_max_ = std::max(two_batches, rate * paced_depth);
  // A burst larger than half of the peer's ring is lost there. The peer's claim can only lower the depth.
  if (receivers_[0].is_known && receivers_[0].capacity > Bytes{0})
    backlog_max_ = std::clamp(backlog_max_, Bytes{0}, std::max(receivers_[0].capacity / 2, two_batches));
}

void SafeRange::read_receiver(Receiver& receiver, const QueueTelemetry& queue, Nanos d) noexcept {
  if (queue.scope == QueueScope::none) {
    // An invalid sensor drops out; it never reads as 0.
    receiver.is_known = false;
    receiver.meter.restart();
    return;
  }
  // The peer's numbers are bounded before anything is computed from them.
  receiver.capacity = {std::clamp<std::int64_t>(queue.capacity.count, 0, peer_bytes_max)};
  const std::int64_t occupancy_max = receiver.capacity > Bytes{0} ? receiver.capacity.count : peer_bytes_max;
  receiver.occupancy = {std::clamp<std::int64_t>(queue.occupancy.count, 0, occupancy_max)};
  receiver.is_busy = queue.is_backlogged;
  receiver.is_known = true;
  receiver.meter.set_window(d);
  receiver.meter.add({.at = queue.at, .drained_total = {std::max<std::int64_t>(queue.drained_total.count, 0)},
                      .occupancy = receiver.occupancy, .is_backlogged = queue.is_backlogged},
                     Bytes{payload_per_frame_} * 2);
}

//= [SMUFF] eq. (5), (6), i >= 2
void SafeRange::set_receiver_term(std::size_t i, const LinkSample& sample, Nanos d) {
  BufferRow& row = trace_.buffers[i];
  Receiver& receiver = receivers_[i - 1];
  row = {.occupancy = receiver.occupancy, .drain = receiver.meter.drain(), .occupancy_max = receiver.capacity};
  if (!receiver.is_known || !receiver.meter.has_drain()) return;
  // v_{i-1} is what flows in, not what the link could carry: while this very term holds us back the two differ, and
  // with the link's rate the target would be 0 and the term would push its own cause down.
  const DrainMeter& before = i == 1 ? own_ : receivers_[0].meter;
  const BytesPerSecond flow = i == 1 && !has_queue_ ? paced_.injection() : before.flow();
  const Gain lo = i == 1 ? params_.v_1_lo : params_.v_rx_lo;
  const BytesPerSecond v = receiver.meter.drain();
  const BytesPerSecond lack = v * params_.v_rx_up - flow * lo;
  Bytes target = std::max(lack, BytesPerSecond{0}) * d;
  //= [SMUFF] eq. (2), (3)
  row.under = target;
  if (receiver.capacity > Bytes{0}) {
    const Gain up = i == 1 ? params_.v_1_up : params_.v_rx_up;
    row.over = std::clamp(receiver.capacity - (flow * up - v * params_.v_rx_lo) * d, Bytes{0}, receiver.capacity);
  }
  if (i == 2) target = std::max(target, app_grain());
  if (receiver.capacity > Bytes{0}) target = std::min(target, receiver.capacity / 2);  // edge case h
  // A target near 0 (v_i just below its inflow) is reached by one frame; a fifth of v d is what (5) gives at rest.
  const Bytes mark = std::max(target, v * d / 5);
  if (receiver.is_busy || receiver.occupancy > mark) {
    receiver.was_backlogged = true;
    receiver.backlogged_at = sample.at;
  }
  // The latch: an almost empty receiver buffer passes on what arrives, so its v is a copy of our own rate and its term
  // would allow x1.2 per feedback. It takes part only while it is, or lately was, backlogged.
  const Nanos latch = std::max(params_.latch_min, sample.path.srtt * 4);
  const bool is_latched = receiver.was_backlogged && sample.at - receiver.backlogged_at <= latch;
  row.target = target;
  row.rate = v + (target - receiver.occupancy) / d;
  row.takes_part = is_latched || !params_.has_latch;
}

// update_trim: X_1's mean over 32 readings against the target, only while our own queue decides.
void SafeRange::update_trim(const LinkSample& sample) noexcept {
  const bool is_ours = is_backlog_paced_ && own_.has_exact() && !own_.is_stalled() && params_.target != Target::zero &&
                       sample.path.offered > Bytes{0} && !sample.path.is_credit_limited &&
                       trace_.bottleneck == Bottleneck::tx_queue && target_ > Bytes{0};
  if (!is_ours) {
    trim_.sum_bytes = trim_.readings = 0;
    return;
  }
  // A qdisc dump falls at any phase of the saw, so its mean is the truth; our own readings need the phase rule.
  const bool has_lower = sample.lower_queue.scope == QueueScope::lower_queue &&
                         sample.lower_queue_age <= lower_queue_age_max && sample.path.tx_queue.scope != QueueScope::driver;
  if (trace_.buffers[0].occupancy > backlog_max_ + saw_.amplitude / 2) {
    // More stands there than we now allow: the link has slowed and the queue is on its way down. That says nothing of the
    // equilibrium, and counted in it would pull the backlog below the target afterwards.
    trim_.sum_bytes = trim_.readings = 0;
    return;
  }
  Bytes reading = mean_of(trace_.buffers[0].occupancy);
  if (has_lower) {
    if (sample.lower_queue.at == trim_.lower_at) return;
    trim_.lower_at = sample.lower_queue.at;
    const Bytes foreign = std::max(sample.lower_queue_foreign, Bytes{0});
    reading = to_payload(std::max(sample.lower_queue.occupancy - foreign, Bytes{0}));
  } else if (sample.path.at == report_at_) {
    return;
  }
  report_at_ = sample.path.at;
  trim_.sum_bytes += reading.count;
  if (++trim_.readings < trim_readings) return;
  // What we yield to others is not ours to make up.
  const std::int64_t error = target_.count - yielded_.count - trim_.sum_bytes / trim_.readings;
  trim_.permille = std::clamp(trim_.permille + error * 1000 / target_.count / 4, -trim_limit_permille, trim_limit_permille);
  trim_.sum_bytes = trim_.readings = 0;
}

RateGrant SafeRange::grant(const LinkSample& sample) {
  constexpr std::array names{Bottleneck::tx_queue, Bottleneck::rx_ring, Bottleneck::app_buffer};
  BytesPerSecond v_0 = params_.rate_max;
  trace_.bottleneck = Bottleneck::none;
  for (std::size_t i = 0; i < trace_.buffers.size(); ++i) {
    const BufferRow& row = trace_.buffers[i];
    if (!row.takes_part || row.rate > v_0) continue;
    if (row.rate == v_0 && trace_.bottleneck != Bottleneck::none) continue;
    v_0 = row.rate;
    trace_.bottleneck = names[i];
  }
  const bool is_waiting_for_source = sample.path.offered <= Bytes{0} && !sample.path.is_credit_limited;
  if (is_waiting_for_source) trace_.bottleneck = Bottleneck::source;
  //= [SMUFF] eq. (6)  type=deviation reason=v_0 = 0 would never learn that a link is back (edge case a); R_min while X < X_max
  v_0 = std::clamp(v_0, params_.rate_min, params_.rate_max);
  trace_.rate = {to_wire({v_0.count}).count};
  trace_.backlog_max = to_wire(backlog_max_);
  const AckSpacing::Wish acks = acks_.step(sample, trace_.bottleneck);
  feedback_interval_ = acks.interval;
  return {.rate = trace_.rate, .backlog_max = trace_.backlog_max, .batch_frames = batch_frames_,
          .feedback_interval = acks.interval, .nack_request_id = acks.nack_request_id};
}

}  // namespace onehop::law
