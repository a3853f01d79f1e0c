// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/rate/rate_loop.hpp"

#include <algorithm>

#include "control/law/estimate/frame_ratio.hpp"
#include "control/law/estimate/outage.hpp"
#include "engine/base/check.hpp"

namespace onehop::rate {

namespace {
constexpr Nanos halving_min{10ms};           // without a round trip, or with one below it
constexpr BytesPerSecond rate_min{150'000};  // one full packet per 10 ms
constexpr Nanos state_interval{20ms};
constexpr Nanos cap_backlog{18ms};  // 4.5 d_1, the safe range's X_max at the cap's rate
}  // namespace

void RateLoop::tick(Instant now, Nanos (*cpu_time)() noexcept) {
  const Instant before = ticked_at_.value_or(now);
  ONEHOP_CHECK(now >= before);
  ticked_at_ = state_.at = now;

  law::LinkSample sample{.at = now};
  sample.path = state_.path = cells_.path.load();
  sample.limits = cells_.limits.load();
  flow_.update(now, state_.path);
  readings_.read(now, flow_.is_on, state_.path.tx_queue, state_.facts);
  sample.facts = state_.facts;
  const RateGrant wanted = law_.step(sample);
  state_.law = law_.trace();
  state_.bottleneck = state_.law.bottleneck;
  state_.notices |= state_.law.notices;
  state_.grant = apply_caps(sample.limits.rate_max, hold_when_silent(wanted));
  cells_.grant.store(state_.grant);

  statistics_.add(state_, flow_.is_on, std::min(now - before, QueueStatistics::span_max));
  interval_.choose(state_, flow_, law_.is_constant());
  if (trace_ != nullptr) {
    if (cpu_time != nullptr) state_.cpu_total = cpu_time();
    trace_->write(state_, traced_, law_.name(), readings_.source_name());
    traced_ = state_.path.counters;
  }
  if (now - published_at_ >= state_interval) publish_state(now);
}

// hold_when_silent: without feedback the path may be gone. After max(4 srtt, 200 ms) the rate is
// halved once per srtt, down to the least rate; the first feedback gives all of it back.
RateGrant RateLoop::hold_when_silent(RateGrant grant) const noexcept {
  if (!flow_.is_on) return grant;
  const PathReport& path = state_.path;
  const Instant heard = std::max(path.feedback_at, flow_.began_at);
  const Nanos limit = law::silence_limit(path.srtt, state_.grant.feedback_interval);
  const Nanos silent = state_.at - heard;
  if (silent <= limit) return grant;
  const auto halvings =
      std::min<std::int64_t>((silent - limit) / std::max(path.srtt, halving_min) + 1, 40);
  grant.rate =
      std::min(grant.rate, std::max(BytesPerSecond{grant.rate.count >> halvings}, rate_min));
  return grant;
}

RateGrant RateLoop::apply_caps(BytesPerSecond own, RateGrant grant) noexcept {
  // A peer may lower the rate, and not stop us by it: for that there is credit.
  const BytesPerSecond offer = state_.path.rate_offer;
  const bool is_offer = offer > BytesPerSecond{0} && (own <= BytesPerSecond{0} || offer < own);
  const BytesPerSecond cap = is_offer ? std::max(offer, rate_min) : own;
  if (cap <= BytesPerSecond{0} || grant.rate <= cap) return grant;
  grant.rate = cap;
  grant.is_rate_final = !is_offer;  // the peer's next report may take it back
  const Bytes least = state_.path.wire_per_frame * 4;
  grant.backlog_max = std::min(grant.backlog_max, std::max(cap * cap_backlog, least));
  if (state_.bottleneck != Bottleneck::source) state_.bottleneck = Bottleneck::cap;
  return grant;
}

void RateLoop::publish_state(Instant now) {
  published_at_ = state_.at = now;
  law::FrameRatio ratio;
  ratio.read(state_.path);
  statistics_.write_to(state_);
  state_.tx_queue_target = ratio.to_wire(state_.law.buffers[0].target);
  cells_.state.store(state_);
}

}  // namespace onehop::rate
