// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/rate/rate_loop.hpp"

#include <algorithm>
#include <utility>

#include "control/law/estimate/frame_ratio.hpp"
#include "control/law/estimate/outage.hpp"
#include "control/law/estimate/queue_view.hpp"
#include "engine/base/check.hpp"

namespace onehop::rate {

namespace {
constexpr Nanos lower_queue_dead{100ms};     // an older reading is not shown to the law at all
constexpr Nanos halving_min{10ms};           // without a round trip, or with one below it
constexpr BytesPerSecond rate_min{150'000};  // one full packet per 10 ms
constexpr Nanos state_interval{20ms};
constexpr Nanos weight_max{20ms};  // a tick that came late says nothing about the time it missed
// Ticks. Of the law's delay budget of (pi/2) d_1 = 6.3 ms a tick takes half of itself on the
// average. Where the drain has not moved for long, 4 ms = d_1 do, for each tick wakes an idle core.
// Where our own queue is the bottleneck and its port keeps it below the backlog limit, the rate
// limits nothing, and a tick only moves that limit: 6 ms do, in which less leaves than stands there
// (8 ms), so that the drain is still measured exactly. On Wi-Fi the rate moves from frame to frame,
// and while nothing flows the next start is looked for.
constexpr Nanos tick_first{500us}, tick_moving{1ms}, tick_steady{4ms}, tick_held{6ms},
    tick_wifi{2ms}, tick_paused{2ms}, tick_idle{20ms};
// Under a law that is constant ticks serve statistics, trace and silence alone, and at its low
// rates 10 ms are a few frames.
constexpr Nanos tick_fixed{10ms};
constexpr BytesPerSecond tick_fixed_rate_max = mbit_per_s(100);
// The drain has moved when it differs by a fifth. Less: a shaper's batches move a steady link's
// estimate by a tenth now and then (tx_queue_drain in a trace), and it would be ticked for as a
// moving one. More: a step from 600 to 900 Mbit/s is found a tick later.
constexpr std::int64_t moved_part = 5;
constexpr Nanos first_span{50ms}, moving_span{100ms}, idle_after{1s};
constexpr Nanos cap_backlog{18ms};  // 4.5 d_1, the safe range's X_max at the cap's rate
std::uint64_t clamp_count(Bytes b) noexcept {
  return static_cast<std::uint64_t>(std::max<std::int64_t>(b.count, 0));
}
Bytes as_bytes(std::uint64_t v) noexcept { return {static_cast<std::int64_t>(v)}; }
}  // namespace

RateLoop::RateLoop(law::Controller& law, Latest<PathReport>& path, Latest<Limits>& limits,
                   Latest<RateGrant>& grant, Latest<RateState>& state, TraceWriter* trace)
    : law_{law},
      path_{path},
      limits_{limits},
      grant_cell_{grant},
      state_cell_{state},
      trace_{trace} {}

void RateLoop::tick(Instant now) {
  ONEHOP_CHECK(now >= ticked_at_);
  if (!begun_at_) begun_at_ = ticked_at_ = now;
  const Nanos since_last = std::min(now - ticked_at_, weight_max);
  ticked_at_ = now;

  law::LinkSample sample{.at = now};
  sample.path = state_.path = path_.load();
  sample.limits = limits_.load();

  const bool is_flowing = sample.path.offered > Bytes{0} || sample.path.sent_total != sent_seen_;
  sent_seen_ = sample.path.sent_total;
  if (is_flowing && !is_flowing_ && (now - flowed_at_ > tick_idle || flow_began_at_ == Instant{}))
    flow_began_at_ = moved_at_ = now;
  is_flowing_ = is_flowing;
  if (is_flowing) flowed_at_ = now;

  read_facts(now, sample.path.tx_queue);
  sample.facts = state_.facts;
  const RateGrant wanted = law_.step(sample);
  state_.at = now;
  state_.law = law_.trace();
  state_.bottleneck = state_.law.bottleneck;
  state_.notices |= state_.law.notices;
  state_.grant = apply_caps(sample, hold_when_silent(sample, wanted));
  grant_cell_.store(state_.grant);

  bottleneck_share_.add(now, state_.bottleneck, since_last);
  count(sample, since_last);
  choose_next_tick(sample);
  if (trace_ != nullptr) {
    trace_->write(state_, traced_, law_.name(), source_ != nullptr ? source_->name() : "none");
    traced_ = sample.path.counters;
  }
  if (now - published_at_ >= state_interval) publish_state(now);
}

void RateLoop::read_facts(Instant now, const QueueTelemetry& own) {
  if (source_ != nullptr && is_flowing_)
    source_->read(now, state_.facts);
  else if (source_ != nullptr && own.occupancy > Bytes{0})
    source_->read_backlog(now, state_.facts);
  auto& lower = state_.facts.lower_queue;
  if (lower && now - lower->at > lower_queue_dead) lower.reset();
  refused_exact_.step(state_.facts.exact_queue);
  refused_lower_.step(lower);
  if (!lower || lower->at == foreign_at_) return;
  foreign_at_ = lower->at;
  if (law::pushes_back(own.scope)) {
    // The dump and our own reading are of two moments, and between them our own bytes move by a
    // burst. Bytes of others are what is in excess in every one of the last readings: the least
    // excess.
    foreign_[foreign_count_++ % foreign_readings] =
        std::max<std::int64_t>((lower->value.queue.occupancy - own.occupancy).count, 0);
  }
  if (foreign_count_ >= foreign_readings)
    lower->value.foreign = {*std::min_element(foreign_.begin(), foreign_.end())};
}

void RateLoop::RefusalsSeen::step(law::MaybeFact<law::QueueReading>& fact) noexcept {
  if (!fact) {
    has_reading = false;
    return;
  }
  std::uint64_t& refused_total = fact->value.queue.refused_total;
  if (has_reading && fact->at == at) {  // reported twice
    refused_total = total;
    return;
  }
  if (has_reading && refused_total > counter) total += refused_total - counter;
  at = fact->at;
  counter = std::exchange(refused_total, total);
  has_reading = true;
}

// hold_when_silent: without feedback the path may be gone. After max(4 srtt, 200 ms) the rate is
// halved once per srtt, down to the least rate; the first feedback gives all of it back.
RateGrant RateLoop::hold_when_silent(const law::LinkSample& sample, RateGrant grant) noexcept {
  if (!is_flowing_) return grant;
  const Instant heard = std::max(sample.path.feedback_at, flow_began_at_);
  const Nanos limit = law::silence_limit(sample.path.srtt, state_.grant.feedback_interval);
  const Nanos silent = sample.at - heard;
  if (silent <= limit) return grant;
  const auto halvings =
      std::min<std::int64_t>((silent - limit) / std::max(sample.path.srtt, halving_min) + 1, 40);
  grant.rate =
      std::min(grant.rate, std::max(BytesPerSecond{grant.rate.count >> halvings}, rate_min));
  return grant;
}

RateGrant RateLoop::apply_caps(const law::LinkSample& sample, RateGrant grant) noexcept {
  // A peer may lower the rate, and not stop us by it: for that there is credit.
  const BytesPerSecond own = sample.limits.rate_max, offer = sample.path.rate_offer;
  const bool is_offer = offer > BytesPerSecond{0} && (own <= BytesPerSecond{0} || offer < own);
  const BytesPerSecond cap = is_offer ? std::max(offer, rate_min) : own;
  if (cap <= BytesPerSecond{0} || grant.rate <= cap) return grant;
  grant.rate = cap;
  grant.is_rate_final = !is_offer;  // the peer's next report may take it back
  const Bytes least = sample.path.wire_per_frame * 4;
  grant.backlog_max = std::min(grant.backlog_max, std::max(cap * cap_backlog, least));
  if (state_.bottleneck != Bottleneck::source) state_.bottleneck = Bottleneck::cap;
  return grant;
}

// standing: the core reports right after it has refilled the queue, so the mean of its readings is
// too high, by at most half of what drains during one rest. Here the bytes that have drained since
// the reading are taken off, at the rate that the law has measured.
Bytes RateLoop::standing(const law::LinkSample& sample) const noexcept {
  const QueueTelemetry& queue = sample.path.tx_queue;
  const std::int64_t payload = std::max<std::int64_t>(sample.path.payload_per_frame.count, 1);
  const Bytes drained =
      law_.trace().buffers[0].drain * std::clamp(sample.at - queue.at, Nanos{0}, weight_max);
  const auto wire = static_cast<Wide>(drained.count) * sample.path.wire_per_frame.count / payload;
  return std::max(queue.occupancy - Bytes{static_cast<std::int64_t>(wire)}, Bytes{0});
}

void RateLoop::count(const law::LinkSample& sample, Nanos since_last) noexcept {
  const auto weight = static_cast<std::uint64_t>(since_last / 1us);
  if (!is_flowing_ || weight == 0) return;
  const PathReport& path = sample.path;
  const auto add = [&](Count& count, const QueueTelemetry& buffer, Bytes held, bool is_dry) {
    if (buffer.scope == QueueScope::none) return;
    count.held.add(clamp_count(held), weight);
    if (is_dry) count.underflow += since_last;
  };
  const auto is_empty = [](const QueueTelemetry& buffer) { return buffer.occupancy <= Bytes{0}; };
  const bool may_send =
      path.offered > Bytes{0} && !path.is_credit_limited && law::pushes_back(path.tx_queue.scope);
  add(tx_, path.tx_queue, standing(sample), may_send && is_empty(path.tx_queue));
  add(rx_, path.rx_ring, path.rx_ring.occupancy, is_empty(path.rx_ring));
  add(app_, path.app_buffer, path.app_buffer.occupancy, is_empty(path.app_buffer));
}

BufferUse RateLoop::Count::use() const noexcept {
  return {as_bytes(held.percentile(500)), as_bytes(held.percentile(990)), as_bytes(held.max()),
          underflow};
}

void RateLoop::choose_next_tick(const law::LinkSample& sample) noexcept {
  const Instant now = sample.at;
  const BytesPerSecond drain = law_.trace().buffers[0].drain;
  const std::int64_t moved = std::abs(drain.count - steady_drain_.count);
  if (moved * moved_part > steady_drain_.count) {
    steady_drain_ = drain;
    if (is_flowing_) moved_at_ = now;
  }
  if (!is_flowing_ && flow_began_at_ == Instant{} && now - *begun_at_ < idle_after) {
    // The first data is due. Found 20 ms late, it would have gone at the start rate until then: 12
    // % of 10 MB at 600 Mbit/s.
    next_tick_in_ = tick_first;
  } else if (!is_flowing_) {
    next_tick_in_ = now - flowed_at_ > idle_after ? tick_idle : tick_paused;
  } else if (now - flow_began_at_ < first_span) {
    next_tick_in_ = tick_first;
  } else {
    const bool is_moving = now - moved_at_ < moving_span;
    const bool is_slow = law_.is_constant() && state_.grant.rate < tick_fixed_rate_max;
    const bool is_held =
        state_.bottleneck == Bottleneck::tx_queue && law::pushes_back(sample.path.tx_queue.scope);
    const Nanos steady = sample.facts.medium == law::Medium::wifi ? tick_wifi
                         : is_held                                ? tick_held
                                                                  : tick_steady;
    next_tick_in_ = is_moving ? tick_moving : is_slow ? tick_fixed : steady;
  }
}

void RateLoop::publish_state(Instant now) {
  published_at_ = state_.at = now;
  law::FrameRatio ratio;
  ratio.read(state_.path);
  state_.bottleneck_permille = bottleneck_share_.permille();
  state_.tx_queue = tx_.use();
  state_.rx_ring = rx_.use();
  state_.app_buffer = app_.use();
  state_.tx_queue_mean = as_bytes(tx_.held.mean());
  state_.tx_queue_target = ratio.to_wire(state_.law.buffers[0].target);
  state_cell_.store(state_);
}

}  // namespace onehop::rate
