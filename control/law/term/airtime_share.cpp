// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/law/term/airtime_share.hpp"

#include <algorithm>
#include <cmath>

#include "control/law/estimate/frame_ratio.hpp"
#include "control/law/estimate/queue_view.hpp"
#include "control/law/param_reader.hpp"

namespace onehop::law {

namespace {
// Ours. Low: a burst of others is taken for saturation, and U falls for ever. High: a first
// transfer ends before it.
constexpr Nanos saturation_span{1s};
// Ours. Low: beacons and noise are a station. High: a station of a tenth of the air is none.
constexpr double foreign_min = 0.10;
// Ours: below it we are a newcomer, and our ratio to the others says nothing yet. Low: N in the
// dozens. High: far stations stay new.
constexpr double own_min = 0.02;
// Ours: backoff makes single intervals differ by a third. Low: N is late by seconds. High: N jumps,
// and the share with it.
constexpr double others_gain = 0.25;
// Ours: what k is measured over. The peer's counters come with its reports, which may be rarer than
// an interval, and a frame at a low rate takes a quarter of one: the quotient of a single interval
// is off by a factor, and its mean is too (ns-3, two far stations: 0.74 for 0.89). Low: as there.
// High: k is wrong for seconds after a start.
constexpr Nanos k_span{250ms};
// Ours, of such a span. Low: as above. High: one good span raises the share of all.
constexpr double k_gain = 0.5;
// Ours, of N or C between intervals. Low: each step of rate control is a jump. High: an old share
// goes into a slower link.
constexpr double change_at_once = 0.25;
// [CUPID]. Low: the first aggregate's wait ends the start. High: a newcomer saturates the channel
// for longer.
constexpr int start_srtts = 3;
// Ours: some drivers fill their survey in while they scan, and never again. Low: a scan, in which
// the radio is elsewhere, ends the share. High: a share of long ago is kept.
constexpr Nanos still_span{1s};

double of(Gain g) noexcept { return static_cast<double>(g.permille) / 1000.0; }
double of(Nanos t) noexcept { return static_cast<double>(t.count()) / 1e9; }
double share_of(Nanos part, Nanos whole) noexcept {
  return whole <= Nanos{0} ? 0.0 : std::clamp(of(part) / of(whole), 0.0, 1.0);
}
}  // namespace

void AirtimeShareParams::read(ParamReader& r) {
  r.gain("eta", eta, 0.1, 1);
  r.gain("hysteresis", hysteresis, 0, 0.5);
  r.gain("k_start", k_start, 0.05, 1);
  r.gains("k_bounds", k_lowest, k_highest, 0.05, 1);
  r.gain("use_saturated", use_saturated, 0.1, 1);
  r.ms_pair("interval_ms", interval_min, interval_max, 1, 10'000);
  r.count("stations_max", stations_max, 2, 1'000);
}

AirtimeShare::AirtimeShare(const AirtimeShareParams& params) noexcept
    : params_{params}, k_{of(params.k_start)}, use_saturated_{of(params.use_saturated)} {}

void AirtimeShare::forget() noexcept {
  has_interval_ = has_share_ = false;
  phase_ = Phase::start;
  others_ = received_best_ = 0;
  stations_ = 1;
}

bool AirtimeShare::is_still(Instant now, const ChannelAirtime& channel) noexcept {
  if (channel.active_total != active_) active_at_ = now;
  active_ = channel.active_total;
  return now - active_at_ > still_span;
}

AirtimeShare::Mark AirtimeShare::mark_of(const LinkSample& sample,
                                         const ChannelAirtime& channel) noexcept {
  const QueueView view = view_queue(sample);
  Mark mark{.at = sample.facts.channel->at,
            .active = channel.active_total,
            .busy = *channel.busy_total,
            .received = view.queue.drained_total,
            .received_at = view.queue.at,
            .is_backlogged = view.is_known() && view.queue.occupancy > Bytes{0}};
  // The peer's counters where they are known, else our own drain.
  if (const QueueTelemetry& peer = sample.path.rx_ring; peer.scope != QueueScope::none) {
    FrameRatio ratio;
    ratio.read(sample.path);
    mark.received = ratio.to_wire(peer.drained_total + peer.occupancy);
    mark.received_at = peer.at;
  }
  if (const OwnAirtime* own = fresh(sample.facts.own_airtime, sample.at)) {
    mark.own_tx = own->tx_total;
    mark.own_rx = own->rx_total;
  }
  return mark;
}

std::optional<Share> AirtimeShare::step(const LinkSample& sample) noexcept {
  const BytesPerSecond* phy = fresh(sample.facts.phy_rate, sample.at);
  const ChannelAirtime* channel = fresh(sample.facts.channel, sample.at);
  const bool has_phy = phy != nullptr && *phy > BytesPerSecond{0};
  const bool has_airtime =
      channel != nullptr && channel->busy_total && !is_still(sample.at, *channel);
  missing_ = !has_airtime ? MissingSensor::airtime
             : !has_phy   ? MissingSensor::phy_rate
                          : MissingSensor::none;
  if (missing_ != MissingSensor::none) {
    forget();
    return std::nullopt;
  }
  capacity_ = static_cast<double>(phy->count);
  const Mark now = mark_of(sample, *channel);
  was_backlogged_ = was_backlogged_ && now.is_backlogged;
  if (!has_interval_ || now.active < interval_.active || now.busy < interval_.busy) {
    forget();
    interval_ = second_ = k_mark_ = now;
    has_interval_ = true;
    was_backlogged_ = now.is_backlogged;
    rose_at_ = sample.at;
    return std::nullopt;
  }
  if (now.at > interval_.at) {
    update_saturation(now);
    const Nanos interval = std::clamp(sample.path.srtt, params_.interval_min, params_.interval_max);
    if (now.at - interval_.at >= interval) close_interval(sample, now);
  }
  if (!has_share_) return std::nullopt;
  if (const std::int32_t* counted = fresh(sample.facts.stations, sample.at))
    stations_ = std::clamp(*counted, 1, params_.stations_max);
  // A change of N or C of more than a quarter is applied at once: waiting an interval would send
  // the old share into it.
  const bool is_jump =
      std::abs(capacity_ - applied_capacity_) > change_at_once * applied_capacity_ ||
      std::abs(stations_ - applied_stations_) > change_at_once * applied_stations_;
  if (is_jump && phase_ != Phase::start) rate_ = fair();
  applied_capacity_ = capacity_;
  applied_stations_ = stations_;
  return Share{.rate = {static_cast<std::int64_t>(rate_)},
               .line = {static_cast<std::int64_t>(line())},
               .use = {static_cast<std::int64_t>(use_ * 1000)},
               .stations = stations_};
}

//= [CUPID] target utilisation: type=deviation
//=   reason=a saturated channel waits between frames, and how much of the time it is busy differs
//=   from link to link; U is the busy part of what a saturated one shows
void AirtimeShare::update_saturation(const Mark& now) noexcept {
  if (now.at - second_.at < saturation_span) return;
  const double busy = share_of(now.busy - second_.busy, now.active - second_.active);
  if (was_backlogged_ && busy > 0) {
    use_saturated_ = has_saturated_ ? std::max(use_saturated_, busy) : busy;
    has_saturated_ = true;
  }
  second_ = now;
  was_backlogged_ = now.is_backlogged;
}

void AirtimeShare::close_interval(const LinkSample& sample, const Mark& now) noexcept {
  const Nanos active = now.active - interval_.active;
  if (active <= Nanos{0}) return;  // the radio was elsewhere: nothing was measured
  const double busy = share_of(now.busy - interval_.busy, active);
  if (now.received_at > interval_.received_at && now.received >= interval_.received)
    received_ = static_cast<double>((now.received - interval_.received).count) /
                of(now.received_at - interval_.received_at);
  use_ = std::min(busy / use_saturated_, 1.0);
  double own = -1, own_both = -1;  // shares of the air; negative: not counted
  if (now.own_tx && interval_.own_tx) {
    own = own_both = share_of(*now.own_tx - *interval_.own_tx, active);
    if (now.own_rx && interval_.own_rx)
      own_both = std::min(own + share_of(*now.own_rx - *interval_.own_rx, active), 1.0);
  }
  const double guessed = std::min(received_ / line() * use_saturated_, busy);
  count_stations(sample, busy, own_both >= 0 ? own_both : guessed);
  update_k(now);
  update_rate(sample);
  interval_ = now;
  has_share_ = true;
}

void AirtimeShare::count_stations(const LinkSample& sample, double busy, double own) noexcept {
  if (const std::int32_t* counted = fresh(sample.facts.stations, sample.at)) {
    stations_ = std::clamp(*counted, 1, params_.stations_max);
    return;
  }
  const double foreign = std::max(busy - own, 0.0);
  if (foreign <= foreign_min) {
    others_ = 0;
    stations_ = 1;
    return;
  }
  // A newcomer takes one station for all the others: half the air then makes the channel divide it
  // evenly, and the ratio becomes true. Its true ratio of next to nothing would keep it at next to
  // nothing.
  const double ratio = own < own_min ? 1.0 : foreign / own;
  others_ = others_ == 0 ? ratio : others_ + others_gain * (ratio - others_);
  stations_ = static_cast<std::int32_t>(
      std::clamp(1.0 + std::round(others_), 2.0, static_cast<double>(params_.stations_max)));
}

//= [CUPID] delta(C): type=deviation
//=   reason=delivered / C is k times our own share of the air, and is divided by it; taken alone it
//=   would learn k / N from a shared channel, and from our own eta a k that falls for ever
void AirtimeShare::update_k(const Mark& now) noexcept {
  const Mark begin = k_mark_;
  const Nanos span = now.received_at - begin.received_at;
  if (std::abs(capacity_ - k_capacity_) > change_at_once * k_capacity_) {
    k_capacity_ = capacity_;  // what was sent before was sent at another rate
    k_mark_ = now;
    return;
  }
  if (now.at - begin.at < k_span || span < k_span / 2) return;
  k_mark_ = now;
  const Nanos active = now.active - begin.active;
  if (now.received <= begin.received || active <= Nanos{0}) return;
  double share = 0;
  if (now.own_tx && begin.own_tx) {
    share = share_of(*now.own_tx - *begin.own_tx, active) / use_saturated_;
  } else {  // a guess, good where the channel is full
    const double use = share_of(now.busy - begin.busy, active) / use_saturated_;
    share = use < of(params_.eta) ? 0 : std::min(use, 1.0) / stations_;
  }
  if (share < own_min) return;
  const double received = static_cast<double>((now.received - begin.received).count) / of(span);
  k_ += k_gain * (received / (capacity_ * std::min(share, 1.0)) - k_);
  k_ = std::clamp(k_, of(params_.k_lowest), of(params_.k_highest));
}

double AirtimeShare::fair() const noexcept { return of(params_.eta) * line() / stations_; }

//= [CUPID] start and steady state
void AirtimeShare::update_rate(const LinkSample& sample) noexcept {
  if (phase_ == Phase::start) {
    if (received_ > received_best_ * 1.01) rose_at_ = sample.at;
    received_best_ = std::max(received_best_, received_);
    const Nanos patience = std::max(sample.path.srtt * start_srtts, params_.interval_min * 2);
    if (received_ < fair() && sample.at - rose_at_ < patience) {
      rate_ = line();
      return;
    }
    phase_ = Phase::fair;
  }
  if (use_ >= of(params_.eta))
    phase_ = Phase::fair;
  else if (use_ < of(params_.eta) - of(params_.hysteresis))
    phase_ = Phase::add;
  if (phase_ == Phase::fair || received_ <= 0)
    rate_ = fair();
  else
    rate_ =
        std::min(received_ + std::max(of(params_.eta) - use_, 0.0) * line() / stations_, line());
}

}  // namespace onehop::law
