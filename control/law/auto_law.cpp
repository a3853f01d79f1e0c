// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/law/auto_law.hpp"

#include <algorithm>

#include "control/law/param_reader.hpp"
#include "engine/base/check.hpp"

namespace onehop::law {

namespace {
// Ours, of a claimed rate, for the start. Low: the first 30 ms are slow. High: the start overshoots
// the queue.
constexpr Gain claim_wired{900}, claim_wifi{600};
// Ours: rate control of Wi-Fi hops by 10 % all the time. Low: v_1 is scaled by noise. High: a fall
// is seen by the queue alone.
constexpr std::int64_t capacity_threshold_permille = 200;
// Ours, on v_1. Low: the queue stays at a. High: it stands at b.
constexpr Gain lean{1020};
// Measured in ns-3 (wdtcp-mcs-change): when C has just changed v_1 may be wrong by more than
// alpha's 2, until the meter has a window of the new rate. Low: aggregates leave short after each
// rise. High: turns, for nothing.
constexpr Gain lean_changed{2000};
constexpr Nanos changed_span{20ms};  // measured; low and high: as above
// Ours, of u. Low: a late report of the physical rate looks like other senders (its fact is 20 ms
// old). High: others are found late.
constexpr Nanos share_span{100ms};
// Ours, of v_1. Low: a long queue is left to the port's limit alone. High: the rate starves a port
// that is above its limit for a moment.
constexpr Gain beta_min_pushed_back{125};
// Ours: a quarter of a is "empty", for reports are made before or after a refill. Low: a saw's foot
// is. High: an empty queue is not.
constexpr std::int64_t empty_part = 4;

Bytes times(Bytes b, double factor) noexcept {
  return {static_cast<std::int64_t>(static_cast<double>(b.count) * factor)};
}

/// with_own_account is the sample with our own account of what has left, in the place of a port's
/// counters that do not add up: what was handed over and is no backlog has left.
LinkSample with_own_account(LinkSample sample) noexcept {
  QueueTelemetry& queue = sample.path.tx_queue;
  const Bytes refused = sample.path.wire_per_frame * static_cast<std::int64_t>(queue.refused_total);
  queue.drained_total = handed_total(sample.path) + refused - queue.occupancy;
  return sample;
}
}  // namespace

void AutoParams::read(ParamReader& r) {
  r.ms("drain_window_ms", drain_window, 0.5, 50);
  r.ms("time_constant_min_ms", time_constant_min, 0.1, 100);
  r.gain("beta_max", beta_max, 0.01, 1);
  r.gain("b_over_a", b_over_a, 1, 10);
  r.count("wired_bursts", wired_bursts, 1, 64);
  r.ms("wired_burst_ms", wired_burst, 0.01, 10);
  aggregate.read(r);
}

AutoLaw::AutoLaw(const AutoParams& params) noexcept
    : params_{params},
      safe_range_{params.safe_range},
      link_{params.safe_range,
            params.aggregate,
            {.lowest = Gain{500},
             .highest = Gain{2000},
             .threshold_permille = capacity_threshold_permille}} {}

RateGrant AutoLaw::step(const LinkSample& sample) {
  link_.observe(sample);
  if (link_.alpha != Gain{}) capacity_changed_at_ = sample.at;
  const bool is_exact = link_.view.is_exact;
  const bool is_credible = !is_exact || audit_.step(sample.path, link_.view);
  Mode mode = Mode::fallback;
  if (is_exact && is_credible)
    mode = sample.facts.medium == Medium::wired ? Mode::wired
           : link_.view.has_push_back           ? Mode::aggregates_held
                                                : Mode::aggregates_read;
  enter(mode, sample);
  RateGrant grant = mode_ != Mode::fallback ? step_exact(sample)
                    : is_credible           ? step_fallback(sample)
                                            : step_fallback(with_own_account(sample));
  safe_range_.request_reports(sample, trace_, grant);
  if (link_.alpha != Gain{}) trace_.details.alpha = link_.alpha;
  if (link_.phy != nullptr) trace_.details.phy_rate = *link_.phy;
  granted_ = grant.rate;
  return grant;
}

void AutoLaw::enter(Mode mode, const LinkSample& sample) noexcept {
  if ((mode == Mode::fallback) != (mode_ == Mode::fallback)) {
    link_.drain.restart();
    probe_.begin(sample.at, handed_total(sample.path));
  }
  if (mode == Mode::fallback) probe_.reset();
  mode_ = mode;
}

RateGrant AutoLaw::step_fallback(const LinkSample& sample) {
  safe_range_.read(sample, link_);
  return safe_range_.step(sample, link_, SafeRangeModel::Role::active, trace_);
}

RateGrant AutoLaw::step_exact(const LinkSample& sample) {
  link_.read_link(sample.path, params_.drain_window);
  // safe-range stays warm: its receiver terms are ours, and the exact queue may be lost.
  safe_range_.step(sample, link_, SafeRangeModel::Role::standby, trace_);
  const QueueTelemetry& queue = link_.view.queue;
  room_.step(link_.aggregates,
             {.backlog = queue.occupancy,
              .backlog_max = backlog_limit(),
              .limit = link_.limit,
              .has_others = has_others()},
             fresh(sample.facts.mac, sample.at));
  set_band(sample);
  update_share(sample);
  const BytesPerSecond v = drain_rate(sample);
  const Bytes q = mode_ == Mode::aggregates_read
                      ? late_queue_.step(sample.at, queue, handed_total(sample.path), v)
                      : queue.occupancy;
  probe_.step(
      {.at = sample.at,
       .sent_total = handed_total(sample.path),
       .granted = granted_,
       .is_empty = q * empty_part < a_ && has_data(sample.path) && !link_.drain.is_stalled(),
       .is_above = q >= a_},
      time_constant_);
  const BytesPerSecond rate = bound(sample, base_rate(sample, q));

  const Bytes frame = safe_range_.ratio().wire_frame();
  const Bytes least = frame * backlog_frames_min;
  refusals_.step({.at = sample.at,
                  .refused_total = queue.refused_total,
                  .link_changes_total = sample.path.link_changes_total,
                  .backlog = queue.occupancy,
                  .least = least});
  trace_.is_degraded = false;
  const bool has_aggregates = mode_ != Mode::wired;
  return {.rate = rate,
          .backlog_max = std::max(refusals_.bound(backlog_limit()), least),
          .backlog_low = has_aggregates ? a_ : Bytes{0},
          .batch_frames = batch_for(a_ / 4, frame, 1, params_.safe_range.batch_frames_max),
          .poll_interval = has_aggregates ? link_.exchange / polls_per_exchange : Nanos{0}};
}

Bytes AutoLaw::backlog_limit() const noexcept {
  if (mode_ == Mode::wired || link_.aggregates.mean_burst() <= Bytes{0})
    return b_ + link_.sawtooth.amplitude() / 2;
  return a_ + times(link_.limit, room_.room());
}

// drain_rate is v_1: measured, or what the link claims before anything was.
BytesPerSecond AutoLaw::drain_rate(const LinkSample& sample) const noexcept {
  if (link_.drain.has_drain()) return link_.drain.drain();
  const Gain part = sample.facts.medium == Medium::wired ? claim_wired : claim_wifi;
  if (link_.phy != nullptr && *link_.phy > BytesPerSecond{0}) return *link_.phy * part;
  if (sample.limits.link_rate > BytesPerSecond{0}) return sample.limits.link_rate * part;
  return params_.safe_range.rate_start;
}

bool AutoLaw::has_others() const noexcept {
  return share_ * 1000 < static_cast<double>(alone_min.permille);
}

// update_share is u: what leaves, of what would leave if every turn were ours.
void AutoLaw::update_share(const LinkSample& sample) noexcept {
  const BytesPerSecond won = turn_rate(link_.limit, link_.phy);
  const double u = won > BytesPerSecond{0} ? static_cast<double>(drain_rate(sample).count) /
                                                 static_cast<double>(won.count)
                                           : 1.0;
  const double part = static_cast<double>(std::min(link_.step_span, share_span).count()) /
                      static_cast<double>(share_span.count());
  share_ += part * (std::min(u, 1.0) - share_);
}

// set_band: L, E, T, a and b of this step, (3) and the table at the top of the header.
void AutoLaw::set_band(const LinkSample& sample) noexcept {
  const BytesPerSecond v = drain_rate(sample);
  if (mode_ == Mode::wired) {
    link_.set_limit(sample, std::max(v * params_.wired_burst, safe_range_.ratio().wire_frame()), v);
    a_ = link_.limit * params_.wired_bursts;
    b_ = a_ * 2;
  } else {
    link_.set_aggregate_limit(sample, v);
    a_ = link_.limit;
    b_ = a_ * params_.b_over_a;
  }
  a_ = times(a_, probe_.margin());
  b_ = times(b_, probe_.margin());
  time_constant_ = std::max(link_.exchange * 2, params_.time_constant_min);
  if (mode_ == Mode::aggregates_read) {
    a_ += link_.limit / 2;
    b_ += link_.limit / 2;
    time_constant_ = std::max(time_constant_, link_.step_span);
  }
}

// base_rate is (1) and (2).
BytesPerSecond AutoLaw::base_rate(const LinkSample& sample, Bytes q) noexcept {
  const BytesPerSecond v = drain_rate(sample);
  const bool is_held = mode_ == Mode::aggregates_held;
  const bool has_push_back = link_.view.has_push_back;
  // A port that pushes back is read after its refill: what it shows is the upper end of the saw.
  const Bytes top = has_push_back ? std::max(backlog_limit(), b_) : b_;
  BytesPerSecond beta{};
  if (q < a_)
    beta = (a_ - q) / (is_held ? refill_span : time_constant_);
  else if (q > top)
    beta = BytesPerSecond{0} - (q - top) / time_constant_;
  // A port that pushes back sends nothing above its limit anyway; a slower rate would only starve
  // it afterwards.
  const BytesPerSecond least =
      v * (has_push_back ? std::min(params_.beta_max, beta_min_pushed_back) : params_.beta_max);
  beta =
      std::clamp(beta, BytesPerSecond{-least.count}, v * (is_held ? refill_max : params_.beta_max));
  const bool is_new =
      is_held && capacity_changed_at_ && sample.at - *capacity_changed_at_ < changed_span;
  BytesPerSecond mean =
      v * Gain{static_cast<std::int64_t>(probe_.growth() * 1000)} * (is_new ? lean_changed : lean);
  if (is_held && has_others()) mean = std::max(mean, turn_rate(link_.limit, link_.phy));
  const BytesPerSecond base = mean + beta;
  trace_.details = {
      .sensor = link_.view.sensor, .beta = beta, .a = a_, .b = b_, .aggregate = link_.limit};
  trace_.buffers[0] = safe_range_.row(q, v, a_, b_, base);
  return base;
}

// bound is (4), and which of its parts decides.
BytesPerSecond AutoLaw::bound(const LinkSample& sample, BytesPerSecond base) noexcept {
  const PathReport& path = sample.path;
  const FrameRatio& ratio = safe_range_.ratio();
  BytesPerSecond rate = base;
  trace_.bottleneck = Bottleneck::tx_queue;
  for (std::size_t i = 1; i < trace_.buffers.size(); ++i) {
    const BytesPerSecond term = ratio.to_wire(trace_.buffers[i].rate);
    if (!trace_.buffers[i].takes_part || term >= rate) continue;
    rate = term;
    trace_.bottleneck = bottleneck_of_buffer[i];
  }
  if (path.rate_offer > BytesPerSecond{0} && path.rate_offer < rate) {
    rate = path.rate_offer;
    trace_.bottleneck = Bottleneck::cap;
  }
  const auto cap =
      losses_.step({.at = sample.at,
                    .packets_reported_total = path.packets_reported_total,
                    .packets_lost_total = path.packets_lost_total,
                    .receiver_drops_total = path.rx_ring.refused_total,
                    .is_outage = safe_range_.is_outage(),
                    .srtt = path.srtt,
                    .feedback_interval = safe_range_.feedback_interval(),
                    .wanted = rate,
                    .drain = link_.drain.has_exact() ? link_.drain.drain() : BytesPerSecond{},
                    .rate_min = ratio.to_wire(params_.safe_range.rate_min)},
                   fresh(sample.facts.mac, sample.at));
  if (cap) {
    trace_.details.loss_cap = *cap;
    rate = std::min(rate, *cap);
  }
  if (path.offered <= Bytes{0} && !path.is_credit_limited) trace_.bottleneck = Bottleneck::source;
  return safe_range_.clamp_wire(rate);
}

}  // namespace onehop::law
