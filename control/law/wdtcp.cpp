// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/law/wdtcp.hpp"

#include <algorithm>

#include "engine/base/check.hpp"

namespace onehop::law {

namespace {
// Ours. Low: one aggregate more or less is the rate. High: a change of rate is seen late.
constexpr Nanos drain_window{2ms};
// Ours. Low: one aggregate more or less is a third of the rate. High: a change of rate is seen
// late.
constexpr std::int64_t exchanges_per_window = 4;
// Ours: (6) is one step per sample of eta_hat, not per tick. Low: R_base follows noise. High: it is
// late after a fade.
constexpr Nanos pull_interval{1ms};
constexpr std::int64_t pull = 16;  // ours; low and high: as above
// Ours, on L. Low: a refill ends between a and b, and the rate jitters. High: delay.
constexpr Gain b_gain{1500};
// Derived, safe-range's X_max: the paper's form is bounded by nothing but its rate. Low: it is cut.
// High: it swings for longer.
constexpr Nanos paper_backlog{18ms};
// Ours: two batches of two. Low: a core that comes late runs the queue dry. High: delay on a slow
// link.
constexpr std::int64_t frames_min = 4;
// Derived, as auto's. Low: wake-ups, for nothing. High: a core that sleeps through whole exchanges
// sees no aggregate.
constexpr Nanos look_exchange_min{1ms};
constexpr std::int64_t looks_per_exchange = 2;  // derived; low and high: as above
// Derived, as auto's: who has just won the medium may win it again after AIFS and a mean backoff,
// and the backlog limit holds the queue. Low: bursts that no link takes. High: second turns find
// half an aggregate (ns-3, eight greedy: 0.967 of UDP for 0.984).
constexpr Nanos refill_span{110us};
constexpr Gain refill_max{10'000};  // derived; low and high: as above
// Derived, of an aggregate in each exchange: one other sender takes half. Low: two senders are each
// alone. High: aggregates that repeat a frame have company.
constexpr Gain alone_min{750};
}  // namespace

Wdtcp::Wdtcp(const WdtcpParams& params) noexcept
    : params_{params},
      fallback_{params.safe_range},
      aggregate_{params.aggregate},
      drain_{{.window = drain_window, .rate_max = params.safe_range.rate_max, .rate_min = params.safe_range.rate_min,
              .has_stall_rule = true}},
      eta_{params.eta_start} {}

bool Wdtcp::is_slow() const noexcept { return params_.form == WdtcpParams::Form::offset && rtt_ > look_exchange_min; }

BytesPerSecond Wdtcp::clamp_rate(BytesPerSecond rate) const noexcept {
  return std::clamp(rate, params_.safe_range.rate_min, params_.safe_range.rate_max);
}

RateGrant Wdtcp::step(const LinkSample& sample) {
  ONEHOP_CHECK(sample.at >= stepped_at_);
  span_ = stepped_at_ == Instant{} ? Nanos{0} : sample.at - stepped_at_;
  stepped_at_ = sample.at;
  ratio_.read(sample.path);
  is_wired_ = sample.facts.medium == Medium::wired;
  const QueueView view = view_queue(sample);
  const BytesPerSecond* phy = fresh(sample.facts.phy_rate, sample.at);
  const bool has_queue = view.queue.scope != QueueScope::none;
  const bool has_flow = has_data(sample.path);
  const std::uint32_t notices = trace_.notices;

  LinkSample shadow = sample;
  if (has_queue || phy != nullptr) shadow.path.offered = {};  // in the background it must not learn from our queue
  const RateGrant fallback = fallback_.step(shadow);
  trace_ = fallback_.trace();
  trace_.notices |= notices;
  const bool is_blind = no_sensor_.step(sample.at, has_queue || phy != nullptr || !has_flow);
  const bool is_rateless = no_phy_rate_.step(sample.at, phy != nullptr || !has_flow);
  const bool is_queueless = no_queue_.step(sample.at, has_queue || !has_flow);
  if (is_blind) trace_.notices |= bit_of(Notice::wdtcp_no_sensor);
  else if (is_rateless && has_queue) trace_.notices |= bit_of(Notice::wdtcp_no_phy_rate);
  else if (is_queueless && phy != nullptr) trace_.notices |= bit_of(Notice::wdtcp_no_queue);
  if (!has_queue && phy == nullptr) {
    has_base_ = false;
    return fallback;
  }

  const Gain alpha = capacity_.step(phy);
  if (has_queue) read_queue(sample, view);
  if (alpha != Gain{}) drain_.rescale(alpha);
  set_band(sample, phy);
  const BytesPerSecond beta = has_queue ? linear_part(view) : BytesPerSecond{};
  BytesPerSecond rate{};
  if (params_.form == WdtcpParams::Form::paper) {
    if (!has_base_) follow_capacity(phy, {});
    base_ = clamp_rate(base_ * alpha + beta);
    rate = base_;
  } else {
    follow_capacity(phy, alpha);
    rate = base_ + beta;
  }
  trace_.details = {.sensor = view.sensor, .alpha = alpha, .beta = beta, .a = a_, .b = b_, .aggregate = limit_};
  if (phy != nullptr) trace_.details.phy_rate = *phy;
  if (const std::int32_t* stations = fresh(sample.facts.stations, sample.at)) trace_.details.stations = *stations;
  return grant(sample, view, clamp_rate(rate));
}

void Wdtcp::read_queue(const LinkSample& sample, const QueueView& view) noexcept {
  if (view.has_push_back)
    aggregate_.add(sample.path, view.stood, rtt_);
  drain_.set_window(std::max(drain_window, rtt_ * exchanges_per_window));
  drain_.add({.at = view.queue.at, .drained_total = view.queue.drained_total, .occupancy = view.queue.occupancy},
             limit_);
  visits_.add(sample.path, drain_.newest_drained());
}

//= [WDTCP] explicit capacity control, alpha; type=deviation reason=see (5), (6) at the top of the header
void Wdtcp::follow_capacity(const BytesPerSecond* phy, Gain alpha) noexcept {
  if (drain_.has_exact() && phy != nullptr && *phy > BytesPerSecond{0}) {
    eta_ = {static_cast<std::int64_t>(static_cast<Wide>(drain_.drain().count) * 1000 / phy->count)};
    eta_ = std::clamp(eta_, Gain{10}, Gain{1000});
  }
  BytesPerSecond delivered = phy != nullptr ? *phy * eta_ : params_.safe_range.rate_start;
  // Before the queue ever stood, what drains is a bound from below: it may raise, or a low start would hold itself down.
  if (drain_.has_exact()) delivered = drain_.drain();
  else if (drain_.has_drain()) delivered = std::max(delivered, drain_.drain());
  if (!has_base_) {
    base_ = clamp_rate(delivered);  // a high fixed rate at once: no slow start
    has_base_ = true;
    pulled_at_ = stepped_at_;
    return;
  }
  base_ = clamp_rate(base_ * alpha);
  if (stepped_at_ - pulled_at_ < pull_interval) return;
  pulled_at_ = stepped_at_;
  base_ = clamp_rate({base_.count + (delivered.count - base_.count) / pull});
}

//= [WDTCP] a = BDP (bf_1/bf_2 - 1), b = the aggregate limit; type=deviation reason=a > b is possible, and a queue of less
// than one aggregate at a transmission opportunity sends a short one: a <= L, b = 1.5 L
void Wdtcp::set_band(const LinkSample& sample, const BytesPerSecond* phy) noexcept {
  const BytesPerSecond smooth = drain_.has_drain() ? drain_.drain() : base_;
  limit_ = aggregate_.limit(fresh(sample.facts.aggregate_max, sample.at), phy, smooth);
  rtt_ = exchange_time(sample.facts, sample.at, limit_, smooth);
  has_others_ = phy != nullptr && smooth * rtt_ < limit_ * alone_min;
  const std::int32_t* stations = fresh(sample.facts.stations, sample.at);
  const std::int64_t pairs = std::max(stations != nullptr ? *stations : params_.pairs_min, params_.pairs_min);
  const BytesPerSecond capacity = phy != nullptr ? *phy : smooth;
  a_ = std::min(capacity * rtt_ / (pairs - 1), limit_);
  b_ = std::max(limit_ * b_gain, a_);
  if (params_.form == WdtcpParams::Form::paper) return;
  // The queue is a saw, of the core's visits or of whole aggregates, and is read after a refill: at its upper end.
  const Bytes tooth = aggregate_.mean_burst() > Bytes{0} ? std::max(limit_, visits_.amplitude()) : visits_.amplitude();
  // With two looks per exchange every second one is made halfway, a quarter of the saw below.
  const Bytes half_saw = is_slow() ? tooth / 4 : tooth / 2;
  a_ += half_saw;
  b_ += half_saw;
}

// is_refill: the queue is below its band, and the port's backlog limit ends what a high rate begins.
bool Wdtcp::is_refill(const QueueView& view) const noexcept {
  return params_.form != WdtcpParams::Form::paper && view.has_push_back && !is_wired_ && view.queue.occupancy < a_;
}

// backlog, on a medium of our own: a while aggregates leave full, for the core then refills between two transmissions, and what stood
// above a would wait for one more. Where they leave short the core comes late, and the next transmission takes what stands above.
// Beside others two transmissions may follow at once: what stands above a is for the second, and a refill ends at a.
Bytes Wdtcp::backlog(const QueueView& view, BytesPerSecond rate) const noexcept {
  if (params_.form == WdtcpParams::Form::paper) return std::max(rate * paper_backlog, b_ * 2);
  const bool is_held = view.has_push_back && !is_wired_;
  const bool is_fed = has_others_ ? is_refill(view) : is_held && aggregate_.is_full(limit_) && !aggregate_.has_run_dry();
  return is_fed ? a_ : b_ + limit_ / 2;
}

//= [WDTCP] beta
BytesPerSecond Wdtcp::linear_part(const QueueView& view) const noexcept {
  const Bytes q = view.queue.occupancy;
  const bool is_paper = params_.form == WdtcpParams::Form::paper;
  // A step is in force until the next one: an error spread over less than that would be answered several times over.
  const Nanos spread = is_paper ? rtt_ : std::max(rtt_, span_);
  const bool is_refilled = is_refill(view);
  BytesPerSecond beta{};
  if (q < a_) beta = (a_ - q) / (is_refilled ? refill_span : spread);
  else if (q > b_) beta = BytesPerSecond{0} - (q - b_) / spread;
  if (is_paper) return beta;
  const BytesPerSecond least = base_ * params_.beta_max, most = base_ * (is_refilled ? refill_max : params_.beta_max);
  return std::clamp(beta, BytesPerSecond{-least.count}, most);
}

RateGrant Wdtcp::grant(const LinkSample& sample, const QueueView& view, BytesPerSecond rate) {
  BufferRow& row = trace_.buffers[0];
  row = {.occupancy = ratio_.to_payload(view.queue.occupancy),
         .drain = ratio_.to_payload(drain_.has_drain() ? drain_.drain() : base_),
         .target = ratio_.to_payload(a_), .rate = ratio_.to_payload(rate), .takes_part = true,
         .under = ratio_.to_payload(a_), .over = ratio_.to_payload(b_)};
  const Bytes least = ratio_.wire_frame() * frames_min;
  trace_.rate = rate;
  trace_.backlog_max = std::max(backlog(view, rate), least);
  trace_.bottleneck = !has_data(sample.path) ? Bottleneck::source : Bottleneck::tx_queue;
  trace_.is_degraded = false;
  const auto batch = std::clamp<std::int64_t>(a_.count / 4 / ratio_.wire_frame().count, 2, params_.safe_range.batch_frames_max);
  const bool has_aggregates = params_.form == WdtcpParams::Form::offset && !is_wired_;
  const AckSpacing::Wish acks = acks_.step(sample, trace_.bottleneck);
  if (acks.interval > Nanos{0}) trace_.details.feedback_interval = acks.interval;
  return {.rate = rate, .backlog_max = trace_.backlog_max, .backlog_low = has_aggregates ? limit_ : Bytes{0},
          .batch_frames = static_cast<std::uint32_t>(batch),
          .feedback_interval = acks.interval,
          .look_interval = has_aggregates ? rtt_ / looks_per_exchange : Nanos{0},
          .nack_request_id = acks.nack_request_id};
}

}  // namespace onehop::law
