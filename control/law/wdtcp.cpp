// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/law/wdtcp.hpp"

#include <algorithm>

#include "control/law/param_reader.hpp"
#include "engine/base/check.hpp"

namespace onehop::law {

namespace {
// Ours: (6) is one step per sample of eta_hat, not per tick. Low: R_base follows noise. High: it is
// late after a fade.
constexpr Nanos pull_interval{1ms};
constexpr std::int64_t pull = 16;  // ours; low and high: as above
// Ours, on L. Low: a refill ends between a and b, and the rate jitters. High: delay.
constexpr Gain b_gain{1500};
// Derived, safe-range's X_max: the paper's form is bounded by nothing but its rate. Low: it is cut.
// High: it swings for longer.
constexpr Nanos paper_backlog{18ms};
// Derived. Low: wake-ups, for nothing. High: a core that sleeps through whole exchanges sees no
// aggregate.
constexpr Nanos slow_exchange{1ms};
}  // namespace

void WdtcpParams::read(ParamReader& r) {
  r.gain("eta_start", eta_start, 0.05, 1);
  r.gain("beta_max", beta_max, 0.01, 1);
  r.count("pairs_min", pairs_min, 2, 64);
  aggregate.read(r);
}

Wdtcp::Wdtcp(const WdtcpParams& params) noexcept
    : params_{params},
      safe_range_{params.safe_range},
      link_{params.safe_range, params.aggregate},
      eta_{params.eta_start} {}

RateGrant Wdtcp::step(const LinkSample& sample) {
  is_wired_ = sample.facts.medium == Medium::wired;
  link_.observe(sample);
  link_.read_link(sample.path, LinkModel::drain_window);
  const bool has_sensor = link_.has_queue || link_.phy != nullptr;
  RateGrant fallback = safe_range_.step(
      sample, link_, has_sensor ? SafeRangeModel::Role::standby : SafeRangeModel::Role::active,
      trace_);
  raise_notices(sample, link_.has_queue, link_.phy != nullptr);
  if (!has_sensor) {
    has_base_ = false;
    safe_range_.request_reports(sample, trace_, fallback);
    return fallback;
  }

  set_band(sample);
  const BytesPerSecond beta = link_.has_queue ? linear_part() : BytesPerSecond{};
  BytesPerSecond rate{};
  if (is_paper()) {
    if (!has_base_) update_base({});
    rate = base_ = safe_range_.clamp_wire(base_ * link_.alpha + beta);
  } else {
    update_base(link_.alpha);
    rate = base_ + beta;
  }
  trace_.details = {.sensor = link_.view.sensor,
                    .alpha = link_.alpha,
                    .beta = beta,
                    .a = a_,
                    .b = b_,
                    .aggregate = link_.limit};
  if (link_.phy != nullptr) trace_.details.phy_rate = *link_.phy;
  if (const std::int32_t* stations = fresh(sample.facts.stations, sample.at))
    trace_.details.stations = *stations;
  return grant(sample, safe_range_.clamp_wire(rate));
}

void Wdtcp::raise_notices(const LinkSample& sample, bool has_queue, bool has_phy) noexcept {
  const bool has_flow = has_data(sample.path);
  const bool is_blind = no_sensor_.step(sample.at, has_queue || has_phy || !has_flow);
  const bool is_rateless = no_phy_rate_.step(sample.at, has_phy || !has_flow);
  const bool is_queueless = no_queue_.step(sample.at, has_queue || !has_flow);
  if (is_blind)
    trace_.notices |= bit_of(Notice::wdtcp_no_sensor);
  else if (is_rateless && has_queue)
    trace_.notices |= bit_of(Notice::wdtcp_no_phy_rate);
  else if (is_queueless && has_phy)
    trace_.notices |= bit_of(Notice::wdtcp_no_queue);
}

//= [WDTCP] explicit capacity control, alpha; type=deviation
//=   reason=see (5), (6) at the top of the header
void Wdtcp::update_base(Gain alpha) noexcept {
  const BytesPerSecond* phy = link_.phy;
  const DrainMeter& drain = link_.drain;
  if (drain.has_exact() && phy != nullptr && *phy > BytesPerSecond{0}) {
    eta_ = {static_cast<std::int64_t>(static_cast<Wide>(drain.drain().count) * 1000 / phy->count)};
    eta_ = std::clamp(eta_, Gain{10}, Gain{1000});
  }
  BytesPerSecond delivered = phy != nullptr ? *phy * eta_ : params_.safe_range.rate_start;
  // While no backlog was seen yet, the drain rate is a lower bound. It may raise the rate, or a low
  // start would keep itself low.
  if (drain.has_exact())
    delivered = drain.drain();
  else if (drain.has_drain())
    delivered = std::max(delivered, drain.drain());
  if (!has_base_) {
    base_ = safe_range_.clamp_wire(delivered);  // a high fixed rate at once: no slow start
    has_base_ = true;
    pulled_at_ = link_.observed_at;
    return;
  }
  base_ = safe_range_.clamp_wire(base_ * alpha);
  if (link_.observed_at - pulled_at_ < pull_interval) return;
  pulled_at_ = link_.observed_at;
  base_ = safe_range_.clamp_wire({base_.count + (delivered.count - base_.count) / pull});
}

//= [WDTCP] a = BDP (bf_1/bf_2 - 1), b = the aggregate limit; type=deviation
//=   reason=a > b is possible, and a queue of less than one aggregate at a transmission opportunity
//=   sends a short one: a <= L, b = 1.5 L
void Wdtcp::set_band(const LinkSample& sample) noexcept {
  const BytesPerSecond* phy = link_.phy;
  const BytesPerSecond smooth = link_.drain.has_drain() ? link_.drain.drain() : base_;
  link_.set_aggregate_limit(sample, smooth);
  has_others_ = phy != nullptr && smooth * link_.exchange < link_.limit * alone_min;
  const std::int32_t* stations = fresh(sample.facts.stations, sample.at);
  const std::int64_t pairs =
      std::max(stations != nullptr ? *stations : params_.pairs_min, params_.pairs_min);
  const BytesPerSecond capacity = phy != nullptr ? *phy : smooth;
  a_ = std::min(capacity * link_.exchange / (pairs - 1), link_.limit);
  b_ = std::max(link_.limit * b_gain, a_);
  if (is_paper()) return;
  // The queue is a saw, of the core's visits or of whole aggregates, and is read after a refill: at
  // its upper end.
  const Bytes tooth = link_.aggregates.mean_burst() > Bytes{0}
                          ? std::max(link_.limit, link_.sawtooth.amplitude())
                          : link_.sawtooth.amplitude();
  // With two polls per exchange every second one is made halfway, a quarter of the saw below.
  const Bytes half_saw = link_.exchange > slow_exchange ? tooth / 4 : tooth / 2;
  a_ += half_saw;
  b_ += half_saw;
}

// is_refill: the queue is below its band, and the port's backlog limit ends what a high rate
// begins.
bool Wdtcp::is_refill() const noexcept {
  return !is_paper() && link_.view.has_push_back && !is_wired_ && link_.view.queue.occupancy < a_;
}

// backlog_limit, alone on the medium: a while aggregates leave full, for the core then refills
// between two transmissions, and bytes above a would wait for one more. Where aggregates leave
// short the core comes late, and the next transmission takes the bytes above a. Beside others two
// transmissions may follow at once: the bytes above a are for the second, and a refill ends at a.
Bytes Wdtcp::backlog_limit(BytesPerSecond rate) const noexcept {
  if (is_paper()) return std::max(rate * paper_backlog, b_ * 2);
  const bool is_held = link_.view.has_push_back && !is_wired_;
  const bool is_fed = has_others_ ? is_refill()
                                  : is_held && link_.aggregates.is_full(link_.limit) &&
                                        !link_.aggregates.has_run_dry();
  return is_fed ? a_ : b_ + link_.limit / 2;
}

//= [WDTCP] beta
BytesPerSecond Wdtcp::linear_part() const noexcept {
  const Bytes q = link_.view.queue.occupancy;
  // A step is in force until the next one: an error spread over less than that would be answered
  // several times over.
  const Nanos time_constant =
      is_paper() ? link_.exchange : std::max(link_.exchange, link_.step_span);
  const bool is_refilled = is_refill();
  BytesPerSecond beta{};
  if (q < a_)
    beta = (a_ - q) / (is_refilled ? refill_span : time_constant);
  else if (q > b_)
    beta = BytesPerSecond{0} - (q - b_) / time_constant;
  if (is_paper()) return beta;
  const BytesPerSecond least = base_ * params_.beta_max,
                       most = base_ * (is_refilled ? refill_max : params_.beta_max);
  return std::clamp(beta, BytesPerSecond{-least.count}, most);
}

RateGrant Wdtcp::grant(const LinkSample& sample, BytesPerSecond rate) {
  const FrameRatio& ratio = safe_range_.ratio();
  trace_.buffers[0] =
      safe_range_.row(link_.view.queue.occupancy,
                      link_.drain.has_drain() ? link_.drain.drain() : base_, a_, b_, rate);
  trace_.bottleneck = has_data(sample.path) ? Bottleneck::tx_queue : Bottleneck::source;
  trace_.is_degraded = false;
  const bool has_aggregates = !is_paper() && !is_wired_;
  RateGrant grant{
      .rate = rate,
      .backlog_max = std::max(backlog_limit(rate), ratio.wire_frame() * backlog_frames_min),
      .backlog_low = has_aggregates ? link_.limit : Bytes{0},
      .batch_frames = batch_for(a_ / 4, ratio.wire_frame(), 2, params_.safe_range.batch_frames_max),
      .poll_interval = has_aggregates ? link_.exchange / polls_per_exchange : Nanos{0}};
  safe_range_.request_reports(sample, trace_, grant);
  return grant;
}

}  // namespace onehop::law
