// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/law/auto_law.hpp"

#include <algorithm>
#include <cstdlib>

#include "engine/base/check.hpp"

namespace onehop::law {

namespace {
// Ours, of a claimed rate, for the start. Low: the first 30 ms are slow. High: the start overshoots
// the queue.
constexpr Gain claim_wired{900}, claim_wifi{600};
// Ours: rate control of Wi-Fi hops by 10 % all the time. Low: v_1 is scaled by noise. High: a fall
// is seen by the queue alone.
constexpr std::int64_t capacity_threshold_permille = 200;
// Ours. Low: a counter that lies holds the rate down for long. High: a late core's dry queue blows
// the rate up.
constexpr double growth_step = 1.25, growth_max = 4.0, growth_decay = 0.9;
// Measured in ns-3 (wdtcp-delay-load in docs/papers.md). Low: aggregates leave short among many
// senders. High: delay, for nothing.
constexpr double room_fall = 0.02, room_fall_fast = 0.2, room_rise = 0.1, room_min = 0.0, room_max = 1.75;
// Measured in ns-3, while the MAC repeats more than 2 % of its frames. Low: short aggregates at 10
// % loss. High: more room buys 0.6 % of goodput there, and half as much delay again.
constexpr double room_max_repeating = 0.75, repeats_max = 0.02;
// Ours. Low: room falls fast after one lucky window. High: eight greedy senders wait longer for
// nothing.
constexpr std::int32_t full_windows_sure = 1;
// Ours. Low: room grows although a cap or the source keeps the queue short. High: it never grows
// under a core that naps.
constexpr Gain reached_gain{1300};
// Ours. Low: a core that naps runs the queue dry for seconds. High: one starved second is paid for
// in delay.
constexpr double margin_step = 1.25, margin_max = 4.0, margin_decay = 0.98;
// Ours. Low: the margin is gone before the next long nap. High: delay for the rest of the file.
constexpr Nanos margin_relax{1s};
// Ours, of what was granted. Low: a source that limits us makes v_1 grow. High: a pacer's rounding
// keeps it from growing.
constexpr std::int64_t used_permille = 700;
// Ours: two batches of two. Low: a core that comes late runs the queue dry. High: delay on a slow
// link.
constexpr std::int64_t frames_min = 4;
// Derived: two looks see one aggregate leave at most. Low: aggregates are slept through. High:
// wake-ups, for nothing.
constexpr std::int64_t looks_per_exchange = 2;
// Ours: the port's account against our own. Low: a burst between two readings, or rounding, is the
// difference. High: a port that lies is believed for longer, and by more.
constexpr Nanos audit_span{50ms};
// Ours. Low: rounding and single frames are the difference. High: a port that lies is believed.
constexpr std::int64_t audit_permille = 250, audit_frames_min = 32;
// Ours. Low: one aggregate more or less is a third of the rate. High: a change of rate is seen
// late.
constexpr std::int64_t exchanges_per_window = 4;
// Ours, on v_1: inside the dead band the queue leans towards b, where aggregates are full. Low: it
// stays at a. High: it stands at b.
constexpr Gain lean{1020};
// Measured in ns-3 (wdtcp-mcs-change): while the physical rate has just changed v_1 may be wrong by
// more than alpha's 2, until the meter has a window of the new one and a tick has brought it. Low:
// aggregates leave short after each rise. High: turns, for nothing.
constexpr Gain lean_changed{2000};
constexpr Nanos changed_span{20ms};  // measured; low and high: as above
// Ours, of v_1. Low: a long queue is left to the port's limit alone. High: the rate starves a port
// that is above its limit for a moment.
constexpr Gain beta_min_pushed_back{125};
// Derived, where the port pushes back: who has just won the medium may win it again after AIFS and
// a mean backoff. Low: bursts that no link takes. High: of several senders' second turns each finds
// half an aggregate.
constexpr Nanos refill_span{110us};
constexpr Gain refill_max{10'000};  // derived; low and high: as above
// Ours: a quarter of a is "empty", for reports are made before or after a refill. Low: a saw's foot
// is. High: an empty queue is not.
constexpr std::int64_t empty_part = 4;

// handed_total counts what we handed over and was not refused, by our own packets: it can contradict the port's counters.
Bytes handed_total(const PathReport& path) noexcept {
  const Bytes overhead = path.wire_per_frame - path.payload_per_frame;
  return Bytes{static_cast<std::int64_t>(path.counters.data_bytes_sent_total)} +
         overhead * static_cast<std::int64_t>(path.packets_sent_total) -
         path.wire_per_frame * static_cast<std::int64_t>(path.tx_queue.refused_total);
}
}  // namespace

AutoLaw::AutoLaw(const AutoParams& params) noexcept
    : params_{params},
      safe_{params.safe_range},
      aggregate_{params.aggregate},
      capacity_{{.lowest = Gain{500}, .highest = Gain{2000}, .threshold_permille = capacity_threshold_permille}},
      drain_{{.window = params.drain_window, .rate_max = params.safe_range.rate_max,
              .rate_min = params.safe_range.rate_min, .has_stall_rule = true}} {}

RateGrant AutoLaw::step(const LinkSample& told) {
  ONEHOP_CHECK(told.at >= stepped_at_);
  step_span_ = stepped_at_ == Instant{} ? Nanos{0} : told.at - stepped_at_;
  stepped_at_ = told.at;
  ratio_.read(told.path);
  LinkSample sample = told;
  is_outage_ = outage_.step(sample.at, sample.path, feedback_interval_);
  QueueView view = view_queue(sample);
  if (view.is_exact) audit(sample, view);
  if (view.is_exact && !is_credible_) {
    // What was handed over and does not stand there has left: our own account takes the place of the port's.
    view.is_exact = false;
    // (handed_total() leaves out what was refused, a port's drained_total has it.)
    const Bytes refused = sample.path.wire_per_frame * static_cast<std::int64_t>(sample.path.tx_queue.refused_total);
    sample.path.tx_queue.drained_total = handed_total(sample.path) + refused - sample.path.tx_queue.occupancy;
  }
  const Gain alpha = capacity_.step(fresh(sample.facts.phy_rate, sample.at));
  if (alpha != Gain{}) {
    safe_.scale_drain(alpha);
    drain_.rescale(alpha);
    changed_at_ = sample.at;
    has_changed_ = true;
  }
  // safe-range runs on in the background: its receiver terms are ours, and it must be warm when the exact queue is lost.
  // It sees no offered bytes then, or it would trim its backlog by a queue that it does not set.
  LinkSample shadow = sample;
  if (view.is_exact) {
    shadow.path.offered = {};
    if (!view.has_push_back && shadow.lower_queue.scope == QueueScope::none) {
      shadow.lower_queue = view.queue;
      shadow.lower_queue_age = Nanos{0};
    }
  }
  RateGrant grant = safe_.step(shadow);
  const std::uint32_t notices = trace_.notices;
  trace_ = safe_.trace();
  trace_.notices |= notices;
  if (view.is_exact) {
    grant = exact_grant(sample, view);
  } else {
    forget_exact();
  }
  const AckSpacing::Wish acks = acks_.step(sample, trace_.bottleneck);
  grant.feedback_interval = feedback_interval_ = acks.interval;
  grant.nack_request_id = acks.nack_request_id;
  if (alpha != Gain{}) trace_.details.alpha = alpha;
  if (acks.interval > Nanos{0}) trace_.details.feedback_interval = acks.interval;
  if (const BytesPerSecond* phy = fresh(sample.facts.phy_rate, sample.at)) trace_.details.phy_rate = *phy;
  else trace_.details.phy_rate.reset();
  granted_ = grant.rate;
  return grant;
}

// audit: what a queue took in has left it or stands in it. A port that counts otherwise is not to be trusted with one
// aggregate of queue; safe-range's 8 ms forgive it.
void AutoLaw::audit(const LinkSample& sample, const QueueView& view) noexcept {
  if (!view.has_push_back) {
    is_credible_ = true;
    has_audit_ = false;
    return;
  }
  const Bytes handed = handed_total(sample.path), counted = view.queue.drained_total + view.queue.occupancy;
  const Bytes ours = handed - audited_handed_, theirs = counted - audited_counted_;
  // Frames and not time alone: a drain that is told too small slows us down before the span is over.
  if (has_audit_ && (view.queue.at - audited_at_ < audit_span || ours < ratio_.wire_frame() * audit_frames_min)) return;
  if (has_audit_) is_credible_ = std::abs((ours - theirs).count) * 1000 <= ours.count * audit_permille;
  audited_handed_ = handed;
  audited_counted_ = counted;
  audited_at_ = view.queue.at;
  has_audit_ = true;
}

void AutoLaw::forget_exact() noexcept {
  if (is_exact_) drain_.restart();
  is_exact_ = false;
  growth_ = margin_ = 1;
}

// standing_now: see the header. A port that pushes back is read as it stands.
Bytes AutoLaw::standing_now(const LinkSample& sample, const QueueView& view) noexcept {
  if (view.has_push_back || is_wired_) return view.queue.occupancy;
  const Bytes handed = handed_total(sample.path);
  handed_[handed_count_++ % handed_max] = {sample.at, handed};
  // What was handed over by the step before the reading may stand there or have left; by the step after it, it does not count as read.
  Bytes before = handed;
  for (std::size_t n = 1; n <= std::min(handed_count_, handed_max); ++n) {
    const Handed& old = handed_[(handed_count_ - n) % handed_max];
    before = old.total;
    if (old.at <= view.queue.at) break;
  }
  const Nanos age = std::max(sample.at - view.queue.at, Nanos{0});
  return std::max(view.queue.occupancy + handed - before - own_rate(sample) * age, Bytes{0});
}

RateGrant AutoLaw::exact_grant(const LinkSample& sample, const QueueView& view) {
  if (!is_exact_) {
    is_exact_ = true;
    drain_.restart();
    grown_at_ = sample.at;
    sent_seen_ = handed_total(sample.path);
    sent_seen_at_ = sample.at;
  }
  read_queue(sample, view);
  adapt_room(sample, view.queue.occupancy);
  set_band(sample);
  if (!view.has_push_back && !is_wired_) {
    a_ += limit_ / 2;
    b_ += limit_ / 2;
    spread_ = std::max(spread_, step_span_);
  }
  const Bytes standing = standing_now(sample, view);
  grow(sample, standing);
  const BytesPerSecond base = base_rate(sample, view, standing);
  const BytesPerSecond rate = bound(sample, base);

  const Bytes frame = ratio_.wire_frame();
  const Bytes least = frame * frames_min;
  refusals_.step(sample.at, view.queue.refused_total, view.queue.occupancy, least);
  trace_.backlog_max = std::max(refusals_.bound(backlog()), least);
  trace_.rate = rate;
  trace_.is_degraded = false;
  const auto batch = std::clamp<std::int64_t>(a_.count / 4 / frame.count, 1, params_.safe_range.batch_frames_max);
  return {.rate = rate, .backlog_max = trace_.backlog_max, .backlog_low = is_wired_ ? Bytes{0} : a_,
          .batch_frames = static_cast<std::uint32_t>(batch),
          .look_interval = is_wired_ ? Nanos{0} : exchange_ / looks_per_exchange};
}

void AutoLaw::read_queue(const LinkSample& sample, const QueueView& view) noexcept {
  if (view.has_push_back)
    aggregate_.add(sample.path, view.stood, exchange_);
  drain_.set_window(std::max(params_.drain_window, exchange_ * exchanges_per_window));
  // The least that anybody says stood there: a queue that is told too long would pass off our own rate as the link's.
  drain_.add({.at = view.queue.at, .drained_total = view.queue.drained_total, .occupancy = view.stood},
             limit_);
  visits_.add(sample.path, drain_.newest_drained());
}

void AutoLaw::adapt_room(const LinkSample& sample, Bytes q) noexcept {
  highest_ = std::max(highest_, q);
  if (aggregate_.windows_total() == windows_seen_) return;
  windows_seen_ = aggregate_.windows_total();
  // Where the queue never came near its limit, something else keeps the aggregates short, and more room would not help.
  const bool has_reached_limit = highest_ * reached_gain >= backlog();
  highest_ = {};
  const double most = is_repeating(sample) ? room_max_repeating : room_max;
  if (aggregate_.mean_burst() <= Bytes{0}) return;
  const bool is_full = aggregate_.is_full(limit_);
  full_windows_ = is_full && !aggregate_.has_run_dry() ? full_windows_ + 1 : 0;
  if (is_full) {
    const double fall = full_windows_ > full_windows_sure ? room_fall_fast : room_fall;
    room_ = std::clamp(room_ + (aggregate_.has_run_dry() ? room_fall : -fall), room_min, most);
  } else if (has_reached_limit) {
    room_ = std::min(room_ + room_rise, most);
  }
}

// is_repeating: the MAC repeats so many frames that its window, which waits for them, is what keeps aggregates short.
bool AutoLaw::is_repeating(const LinkSample& sample) noexcept {
  const MacCounters* mac = fresh(sample.facts.mac, sample.at);
  if (mac == nullptr) return false;
  const std::uint64_t frames = mac->tx_frames_total - mac_seen_.tx_frames_total, retries = mac->tx_retries_total - mac_seen_.tx_retries_total;
  mac_seen_ = *mac;
  if (frames > 0) repeats_ += (static_cast<double>(retries) / static_cast<double>(frames) - repeats_) / 8;
  return repeats_ > repeats_max;
}

// backlog is the upper end of the saw.
Bytes AutoLaw::backlog() const noexcept {
  if (is_wired_ || aggregate_.mean_burst() <= Bytes{0}) return b_ + visits_.amplitude() / 2;
  return a_ + Bytes{static_cast<std::int64_t>(static_cast<double>(limit_.count) * room_)};
}

// own_rate is v_1: measured, or what the link claims before anything was.
BytesPerSecond AutoLaw::own_rate(const LinkSample& sample) const noexcept {
  if (drain_.has_drain()) return drain_.drain();
  const bool is_wired = sample.facts.medium == Medium::wired;
  if (const BytesPerSecond* phy = fresh(sample.facts.phy_rate, sample.at); phy != nullptr && *phy > BytesPerSecond{0})
    return *phy * (is_wired ? claim_wired : claim_wifi);
  if (sample.limits.link_rate > BytesPerSecond{0} && !sample.limits.is_link_virtual)
    return sample.limits.link_rate * (is_wired ? claim_wired : claim_wifi);
  return params_.safe_range.rate_start;
}

void AutoLaw::set_band(const LinkSample& sample) noexcept {
  const BytesPerSecond v = own_rate(sample);
  is_wired_ = sample.facts.medium == Medium::wired;
  if (is_wired_) {
    limit_ = std::max(v * params_.wired_burst, ratio_.wire_frame());
    a_ = limit_ * params_.wired_bursts;
    b_ = a_ * 2;
  } else {
    limit_ = aggregate_.limit(fresh(sample.facts.aggregate_max, sample.at), fresh(sample.facts.phy_rate, sample.at), v);
    a_ = limit_;
    b_ = limit_ * params_.b_over_a;
  }
  a_ = {static_cast<std::int64_t>(static_cast<double>(a_.count) * margin_)};
  b_ = {static_cast<std::int64_t>(static_cast<double>(b_.count) * margin_)};
  exchange_ = exchange_time(sample.facts, sample.at, limit_, v);
  spread_ = std::max(exchange_ * 2, params_.spread_min);
}

// grow: g and the margin, once per T. Starved means an empty queue with data waiting. If all that was granted was sent, the
// rate was too small; if the rate was above the link's and it still ran dry, the band is (the core's naps, long gaps).
void AutoLaw::grow(const LinkSample& sample, Bytes q) noexcept {
  if (sample.at - grown_at_ < spread_) return;
  const Nanos span = sample.at - sent_seen_at_;
  const Bytes sent = handed_total(sample.path);
  const BytesPerSecond injection = span > Nanos{0} ? (sent - sent_seen_) / span : BytesPerSecond{};
  const Nanos since = sample.at - grown_at_;
  grown_at_ = sample.at;
  sent_seen_ = sent;
  sent_seen_at_ = sample.at;
  const bool is_empty = q * empty_part < a_ && has_data(sample.path) && !drain_.is_stalled();
  const bool is_used = injection * Gain{1000} >= granted_ * Gain{used_permille};
  if (is_empty && is_used) {
    growth_ = std::min(growth_ * growth_step, growth_max);
    if (growth_ >= growth_max) margin_ = std::min(margin_ * margin_step, margin_max);
    return;
  }
  if (q >= a_) growth_ = std::max(growth_ * growth_decay, 1.0);
  const double decay = 1.0 - (1.0 - margin_decay) * static_cast<double>(since.count()) / static_cast<double>(margin_relax.count());
  margin_ = std::max(margin_ * decay, 1.0);
}

BytesPerSecond AutoLaw::base_rate(const LinkSample& sample, const QueueView& view, Bytes q) noexcept {
  const BytesPerSecond v = own_rate(sample);
  // A port that pushes back is read after its refill: what it shows is the upper end of the saw.
  const Bytes top = view.has_push_back ? std::max(backlog(), b_) : b_;
  const bool is_held = view.has_push_back && !is_wired_;  // by the port's backlog limit, whatever the rate is
  BytesPerSecond beta{};
  if (q < a_) beta = (a_ - q) / (is_held ? refill_span : spread_);
  else if (q > top) beta = BytesPerSecond{0} - (q - top) / spread_;
  const BytesPerSecond most = v * (is_held ? refill_max : params_.beta_max);
  // A port that pushes back sends nothing above its limit anyway; a slower rate would only starve it afterwards.
  const BytesPerSecond least = v * (view.has_push_back ? std::min(params_.beta_max, beta_min_pushed_back) : params_.beta_max);
  beta = std::clamp(beta, BytesPerSecond{-least.count}, most);
  const bool is_new = is_held && has_changed_ && sample.at - changed_at_ < changed_span;
  const BytesPerSecond base = v * Gain{static_cast<std::int64_t>(growth_ * 1000)} * (is_new ? lean_changed : lean) + beta;
  trace_.details = {.sensor = view.sensor, .beta = beta, .a = a_, .b = b_, .aggregate = limit_};
  trace_.buffers[0] = {.occupancy = ratio_.to_payload(q), .drain = ratio_.to_payload(v), .target = ratio_.to_payload(a_),
                       .rate = ratio_.to_payload(base), .takes_part = true, .under = ratio_.to_payload(a_), .over = ratio_.to_payload(b_)};
  return base;
}

// bound is (4): the receiver's terms, the peer's offer and the brake, and which of them decides.
BytesPerSecond AutoLaw::bound(const LinkSample& sample, BytesPerSecond base) noexcept {
  BytesPerSecond rate = base;
  trace_.bottleneck = Bottleneck::tx_queue;
  constexpr std::array names{Bottleneck::tx_queue, Bottleneck::rx_ring, Bottleneck::app_buffer};
  for (std::size_t i = 1; i < trace_.buffers.size(); ++i) {
    const BytesPerSecond term = ratio_.to_wire(trace_.buffers[i].rate);
    if (!trace_.buffers[i].takes_part || term >= rate) continue;
    rate = term;
    trace_.bottleneck = names[i];
  }
  if (sample.path.rate_offer > BytesPerSecond{0} && sample.path.rate_offer < rate) {
    rate = sample.path.rate_offer;
    trace_.bottleneck = Bottleneck::cap;
  }
  const BytesPerSecond least = ratio_.to_wire(params_.safe_range.rate_min);
  const BytesPerSecond most = ratio_.to_wire(params_.safe_range.rate_max);
  const auto brake = brake_.step({.at = sample.at, .packets_told_total = sample.path.packets_told_total,
                                  .packets_lost_total = sample.path.packets_lost_total,
                                  .receiver_drops_total = sample.path.rx_ring.refused_total,
                                  .mac = fresh(sample.facts.mac, sample.at), .is_outage = is_outage_, .srtt = sample.path.srtt,
                                  .feedback_interval = feedback_interval_, .wanted = rate,
                                  .drain = drain_.has_exact() ? drain_.drain() : BytesPerSecond{}, .rate_min = least});
  if (brake) {
    trace_.details.loss_cap = *brake;
    rate = std::min(rate, *brake);
  }
  if (sample.path.offered <= Bytes{0} && !sample.path.is_credit_limited) trace_.bottleneck = Bottleneck::source;
  return std::clamp(rate, least, most);
}

}  // namespace onehop::law
