// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/law/term/own_queue_term.hpp"

#include <algorithm>

namespace onehop::law {

namespace {
// Ours, on v d_1: how wide the safe range is where two BDP leave it none. X_under + this is X_over,
// so that "over" begins 8 ms of data above where "under" ends. Low: the target in its middle is
// its lower edge. High: a longer queue may stand. Not before a round trip is known: the first one
// would hold the deeper queue that the width allows.
constexpr Gain range_width{2000};
// [SMUFF] two BDP. Low: as above, where the round trip is long. High: delay.
constexpr std::int64_t x_max_bdp = 2;
// Ours; the paper saw up to 25 ms. Low: a long path's bursts are cut. High: X_max would be a reason
// to hold more than 80 ms.
constexpr Nanos srtt_for_x_max{40ms};
// Ours: before anything was measured the first burst is bounded by bytes and not by rate.
// backlog_start leaves within this time, so a link up to 260 Mbit/s shows an exact drain at once,
// and a faster one a bound to triple from. backlog_start = 32 KiB is 13 ms at 20 Mbit/s and 0.4 ms
// at 600 Mbit/s. Low: a burst that no queue holds. High: fast links start by tripling.
constexpr Nanos start_burst{1ms};
// Ours, of a claimed link rate, for the start. Low: the first milliseconds are slow. High: the
// start overshoots the queue.
constexpr Gain claim_used{600};
// Ours; above it our own bytes are X_1 (edge case b). Low: a single ping is a rival. High: a
// rival's queue starves us.
constexpr std::int64_t foreign_share_max_permille = 200;
// Ours. Low: the trim follows the saw. High: X_1 stays off its target for longer.
constexpr std::int64_t trim_readings = 32;
// Ours. Low: a core with long naps stays off target. High: a wrong reading may double the delay.
constexpr std::int64_t trim_limit_permille = 500;
// Ours, on what leaves in a nap. Low: the queue runs dry. High: delay that `zero` was chosen to
// avoid.
constexpr std::int64_t zero_margin_permille = 1250;
// Ours, of frames that leave in d_1. Low: v_1 of a slow link is off by a part of a frame, which
// passes for an idle link (so it does still at 16 Mbit/s now and then: 6.8 ms for 4.8 in closed
// loop). High: links that two batches do not fill stay idle.
constexpr std::int64_t zero_frames_min = 4;
}  // namespace

OwnQueueTerm::OwnQueueTerm(const SafeRangeParams& params) noexcept : params_{params} {}

void OwnQueueTerm::step(const SafeRangeInput& input, LawTrace& trace) noexcept {
  const LinkSample& sample = input.sample;
  // PING shares the queue, so srtt holds X_1 / v_1. X_max from the newest srtt would let a deeper
  // queue justify itself.
  if (const Nanos srtt = sample.path.srtt; srtt > Nanos{0})
    srtt_min_ = srtt_min_ == Nanos{0} ? srtt : std::min(srtt_min_, srtt);
  // A reading grows old, the length of a queue does not: 8 ms of data may be more than a link takes
  // that fell silent.
  const MaybeFact<QueueReading>& exact = sample.facts.exact_queue;
  if (exact && exact->value.queue.capacity > Bytes{0})
    known_capacity_ = exact->value.queue.capacity;
  if (!input.link.has_queue) return;
  BufferRow& row = trace.buffers[0];
  read(input, row);
  set_limits(input, trace);
  set_backlog(input, row);
  //= [SMUFF] eq. (6), i = 1
  Bytes x = row.occupancy;
  if (input.link.view.has_push_back) x = std::max(mean_of(x) - half_saw(), Bytes{0}) + yielded_;
  row.rate = row.drain + (row.target - x) / params_.d_1;
  if (!input.link.drain.has_drain() && input.link.view.has_push_back)
    row.rate = std::max(row.rate, params_.backlog_start / start_burst);
  row.takes_part = true;
  update_trim(input, row.occupancy);
}

void OwnQueueTerm::read(const SafeRangeInput& input, BufferRow& row) noexcept {
  const LinkSample& sample = input.sample;
  const QueueTelemetry& queue = input.link.view.queue;
  // A qdisc's backlog counts with the bytes of others in it.
  row.occupancy = input.ratio.to_payload(
      input.link.view.has_push_back ? queue.occupancy : queue.occupancy + input.link.view.foreign);
  row.drain = input.ratio.to_payload(input.link.drain.drain());
  saw_ = input.ratio.to_payload(input.link.sawtooth.amplitude());
  const auto& lower = sample.facts.lower_queue;
  const std::uint64_t refused_below = lower ? lower->value.queue.refused_total : 0;
  // Never below 1 ms of data, or a foreign flow's drops starve us.
  refusals_.step({.at = sample.at,
                  .refused_total = std::max({sample.path.tx_queue.refused_total, refused_below,
                                             queue.refused_total}),
                  .link_changes_total = sample.path.link_changes_total,
                  .backlog = row.occupancy,
                  .least = row.drain * 1ms});
}

// mean_of: the saw's mean from one reading whose phase is unknown: the port may read before it
// fills, after, or at any time. If the core fills to backlog_max the mean is backlog_max - S/2
// whatever the phase; outside that band the reading itself tells which end of the saw it is.
Bytes OwnQueueTerm::mean_of(Bytes reading) const noexcept {
  const Bytes half = half_saw();
  if (backlog_max_ == Bytes{0}) return reading;
  if (reading > backlog_max_) return reading - half;
  if (reading < backlog_max_ - half - half) return reading + half;
  return backlog_max_ - half;
}

//= [SMUFF] eq. (2), (3), (4)
void OwnQueueTerm::set_limits(const SafeRangeInput& input, LawTrace& trace) noexcept {
  BufferRow& row = trace.buffers[0];
  const BytesPerSecond claim = input.sample.limits.link_rate;
  const bool has_claim = claim > BytesPerSecond{0};
  const BytesPerSecond start =
      has_claim && !params_.is_start_known ? claim * claim_used : params_.rate_start;
  const BytesPerSecond v =
      input.link.drain.has_drain() ? row.drain : std::min(start, params_.rate_max);
  row.drain = v;
  const bool is_strict = params_.bounds == Bounds::strict;
  const BytesPerSecond lo = is_strict ? BytesPerSecond{} : v * params_.v_1_lo;
  const BytesPerSecond up = is_strict && has_claim ? std::max(v, claim) : v * params_.v_1_up;
  const BytesPerSecond v_0_up = v + up;  // (6) with an empty queue
  const Nanos d = params_.d_1;
  //= [SMUFF] table 1.3: X_max = 2 BDP; type=deviation
  //=   reason=below srtt 9 ms that leaves no safe range, at 9 ms one without a width
  const BytesPerSecond width = srtt_min_ > Nanos{0} ? v * range_width : BytesPerSecond{0};
  x_max_ =
      std::max(v * std::min(srtt_min_, srtt_for_x_max) * x_max_bdp, (up + v_0_up - lo + width) * d);
  if (const auto& lower = input.sample.facts.lower_queue;
      lower && lower->value.queue.capacity > Bytes{0})
    x_max_ = std::min(x_max_, input.ratio.to_payload(lower->value.queue.capacity));
  if (known_capacity_ > Bytes{0})
    x_max_ = std::min(x_max_, input.ratio.to_payload(known_capacity_));
  x_max_ = refusals_.bound(x_max_);

  const Bytes under = up * d;
  const Bytes over = x_max_ - (v_0_up - lo) * d;
  trace.is_degraded = under > over + input.ratio.payload_frame();
  row.under = under;
  row.over = std::max(over, Bytes{0});
  target_ = params_.target == Target::mid ? (under + over) / 2 : under;
  if (trace.is_degraded)
    target_ = std::clamp((under + over) / 2, x_max_ / 4, x_max_ / 2);  // edge case e
  if (!input.link.drain.has_drain() && !has_claim && !params_.is_start_known) {
    target_ = std::min(target_, params_.backlog_start);
    x_max_ = params_.backlog_start;
  }
}

void OwnQueueTerm::set_backlog(const SafeRangeInput& input, BufferRow& row) noexcept {
  const Bytes frame = input.ratio.payload_frame();
  batch_frames_ = batch_for(target_ / 4, frame, 2, params_.batch_frames_max);
  row.target = target_;
  if (params_.target == Target::zero && input.link.drain.has_drain()) {
    // Low latency: what leaves while the core naps, and a quarter more, so that the queue just
    // never runs dry; more where the link was idle.
    const Bytes most = target_ + half_saw();  // as without it
    naps_.step({.path = input.sample.path,
                .drain = input.ratio.to_wire(row.drain),
                .limit = input.ratio.to_wire(backlog_max_),
                .is_deciding = has_data(input.sample.path) && !input.is_standby &&
                               input.link.view.has_push_back &&
                               input.last_bottleneck == Bottleneck::tx_queue &&
                               row.drain * params_.d_1 >= frame * zero_frames_min},
               time_for(most, row.drain));
    const Bytes two_batches = frame * 2 * batch_frames_;
    const Nanos nap =
        std::max(input.link.sawtooth.period() * zero_margin_permille / 1000, naps_.lasting());
    backlog_max_ = std::min(std::max(two_batches, row.drain * nap), most);
    row.target = backlog_max_;
  } else {
    backlog_max_ = target_ + half_saw() + target_ * Gain{trim_.permille};
  }
  // Foreign bytes in the same queue: up to a fifth we yield to, beyond that only our own bytes
  // count (edge case b).
  const Bytes foreign = input.ratio.to_payload(input.link.view.foreign);
  const bool yields = input.link.view.has_push_back &&
                      foreign * 1000 <= (row.occupancy + foreign) * foreign_share_max_permille;
  yielded_ = yields ? foreign : Bytes{0};
  backlog_max_ = std::max(std::min(backlog_max_ - yielded_, x_max_), frame * backlog_frames_min);
  row.occupancy_max = x_max_;
}

// update_trim: X_1's mean over 32 readings against the target, only while our own queue decides.
void OwnQueueTerm::update_trim(const SafeRangeInput& input, Bytes occupancy) noexcept {
  const LinkSample& sample = input.sample;
  const bool is_ours = input.link.view.has_push_back && !input.is_standby &&
                       input.link.drain.has_exact() && !input.link.drain.is_stalled() &&
                       params_.target != Target::zero && has_data(sample.path) &&
                       input.last_bottleneck == Bottleneck::tx_queue && target_ > Bytes{0};
  // The backlog is above what we now allow: the link has slowed and the queue is on its way down.
  // That says nothing of the equilibrium, and would pull the backlog below the target afterwards.
  if (!is_ours || occupancy > backlog_max_ + saw_ / 2) {
    trim_.restart();
    return;
  }
  // A qdisc dump falls at any phase of the saw, so its mean is the truth; our own readings need the
  // phase rule.
  const QueueReading* lower = sample.path.tx_queue.scope != QueueScope::driver
                                  ? fresh(sample.facts.lower_queue, sample.at)
                                  : nullptr;
  Bytes reading = mean_of(occupancy);
  if (lower != nullptr)
    reading = input.ratio.to_payload(
        std::max(lower->queue.occupancy - lower_queue_foreign(sample), Bytes{0}));
  const Instant read_at = lower != nullptr ? lower->queue.at : sample.path.at;
  if (read_at == trim_.reading_at) return;
  trim_.reading_at = read_at;
  trim_.sum_bytes += reading.count;
  if (++trim_.readings < trim_readings) return;
  // What we yield to others is not ours to make up.
  const std::int64_t error = target_.count - yielded_.count - trim_.sum_bytes / trim_.readings;
  trim_.permille = std::clamp(trim_.permille + error * 1000 / target_.count / 4,
                              -trim_limit_permille, trim_limit_permille);
  trim_.restart();
}

}  // namespace onehop::law
