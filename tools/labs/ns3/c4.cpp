// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/labs/ns3/c4.hpp"

#include <algorithm>
#include <cmath>

namespace onehop::sim {

namespace {

constexpr double alpha_initial = 2, alpha_recovery = 15.0 / 16, alpha_cruising = 1,
                 alpha_probing = 17.0 / 16, alpha_probing_ecn = 33.0 / 32, alpha_pushing = 1.25;
constexpr double initial_packets = 10, window_packets_min = 2;
constexpr double initial_rate_min = 1'048'576.0 / 8;
constexpr std::uint32_t initial_eras_without_increase = 3, initial_eras_before_delay = 2;
constexpr double initial_increase = 1 + (alpha_initial - 1) / 4;
constexpr std::uint64_t packets_before_loss = 20;
constexpr std::uint32_t cruising_eras = 2, pushing_eras_min = 2, pushing_eras_max = 3;
constexpr double pushing_increase = 19.0 / 16;
constexpr double margin_max_s = 0.015, jitter_max_s = 0.250, delay_threshold_max_s = 0.025;
constexpr double rtt_floor_s = 0.001;  // section 6.3; the round trips here are as short
constexpr double high_jitter = 2.0 / 5;
constexpr double keep = 7.0 / 8;  // of a round trip, for each era
constexpr double loss_gain = 1.0 / 16, ecn_gain = 1.0 / 16;
constexpr double ecn_step = 0.5;  // what is marked as often is believed at once
constexpr double beta_max = 0.25;

}  // namespace

C4::C4(std::uint32_t packet_bytes, double interface_rate)
    : packet_bytes_{packet_bytes},
      interface_rate_{interface_rate},
      initial_window_bytes_{initial_packets * packet_bytes} {}

double C4::alpha() const {
  switch (state_) {
    case State::initial: return alpha_initial;
    case State::recovery: return alpha_recovery;
    case State::cruising: return alpha_cruising;
    case State::probing: return has_seen_ce_ ? alpha_probing_ecn : alpha_probing;
    case State::pushing: return alpha_pushing;
  }
  return alpha_cruising;
}

double C4::pacing_rate() const {
  if (nominal_rate_ <= 0 || nominal_max_rtt_s_ <= 0) return interface_rate_;
  const double rate = alpha() * nominal_rate_;
  return state_ == State::initial ? std::max(rate, initial_rate_min) : rate;
}

double C4::window_bytes() const {
  if (state_ == State::initial) return initial_window_bytes_;
  const double rtt_s = std::max(nominal_max_rtt_s_, rtt_floor_s);
  const double margin_s = std::min(rtt_s / 4, margin_max_s);
  return std::max(pacing_rate() * (rtt_s + margin_s), window_packets_min * packet_bytes_);
}

/// Section 5.1: linear between the points that it names, in bytes per second.
double C4::sensitivity() const {
  constexpr double low = 50'000, middle = 1'000'000, high = 10'000'000, at_middle = 0.92;
  if (nominal_rate_ <= low) return 0;
  if (nominal_rate_ <= middle) return at_middle * (nominal_rate_ - low) / (middle - low);
  if (nominal_rate_ <= high)
    return at_middle + (1 - at_middle) * (nominal_rate_ - middle) / (high - middle);
  return 1;
}

double C4::delay_threshold_s() const {
  const double share = 1.0 / 16 + (1 - sensitivity()) * 3 / 16;
  return std::min(delay_threshold_max_s, share * std::max(nominal_max_rtt_s_, rtt_floor_s));
}
double C4::loss_threshold() const { return 0.02 + 0.50 * (1 - sensitivity()); }
double C4::ecn_threshold() const { return (2 - sensitivity()) * 3 / 32; }

void C4::on_ack(const Ack& ack) {
  delivered_bytes_total_ = ack.delivered_bytes_total;
  packets_acked_ += (ack.acked_bytes + packet_bytes_ - 1) / packet_bytes_;
  if (ack.rtt_s > 0) measure_rtt(ack.rtt_s);
  measure_rate(ack);
  if (state_ == State::initial) initial_window_bytes_ += static_cast<double>(ack.acked_bytes);
  find_congestion(ack);
  const bool is_of_this_era = ack.delivered_bytes_at_send >= era_from_bytes_;
  if (is_of_this_era && ack.delivered_bytes_total > era_from_bytes_) end_era(ack);
}

void C4::measure_rtt(double rtt_s) {
  if (nominal_max_rtt_s_ <= 0) nominal_max_rtt_s_ = running_min_rtt_s_ = rtt_s;
  era_max_rtt_s_ = std::max(era_max_rtt_s_, rtt_s);
  era_min_rtt_s_ = era_min_rtt_s_ > 0 ? std::min(era_min_rtt_s_, rtt_s) : rtt_s;
}

/// Section 3.1. Who sends faster than the path carries sees it in the time that acknowledgements
/// take, and whom acknowledgements reach in bunches sees it in the time that sending took.
void C4::measure_rate(const Ack& ack) {
  const double delay_s = std::max(ack.since_sent_s, ack.send_delay_s);
  if (delay_s <= 0) return;
  const double rate =
      static_cast<double>(ack.delivered_bytes_total - ack.delivered_bytes_at_send) / delay_s;
  recent_rate_max_ = std::max(recent_rate_max_, rate);
  const bool is_bounce = state_ == State::recovery && is_congested_;
  if (!is_bounce) nominal_rate_ = std::max(nominal_rate_, rate);
}

void C4::find_congestion(const Ack& ack) {
  const double acked = static_cast<double>((ack.acked_bytes + packet_bytes_ - 1) / packet_bytes_);
  loss_rate_ *= std::pow(1 - loss_gain, acked);
  for (std::uint32_t i = 0; i < ack.lost_packets; ++i) loss_rate_ += (1 - loss_rate_) * loss_gain;
  if (loss_rate_ > loss_threshold()) congest(Signal::loss, beta_max);

  if (const std::uint32_t marked = ack.ce_marks + ack.ect1_marks; marked > 0) {
    const double share = static_cast<double>(ack.ce_marks) / marked;
    ecn_alpha_ = share >= ecn_step ? share : ecn_alpha_ + (share - ecn_alpha_) * ecn_gain;
    has_seen_ce_ = has_seen_ce_ || ack.ce_marks > 0;
    if (ecn_alpha_ > ecn_threshold())
      congest(Signal::ecn, (ecn_alpha_ - ecn_threshold()) / ecn_threshold());
  }

  const double limit_s = std::max(nominal_max_rtt_s_, rtt_floor_s) + delay_threshold_s();
  if (ack.rtt_s > limit_s) congest(Signal::delay, (ack.rtt_s - limit_s) / delay_threshold_s());
}

void C4::congest(Signal signal, double beta) {
  if (state_ == State::recovery) {  // of packets sent before it
    is_congested_ = true;
    return;
  }
  if (state_ == State::initial) {
    const bool counts = signal == Signal::loss
                            ? packets_acked_ > packets_before_loss
                            : eras_without_increase_ >= initial_eras_before_delay;
    if (counts) leave_initial(true);
    return;
  }
  if (state_ == State::cruising) nominal_rate_ *= 1 - std::min(beta, beta_max);
  enter(State::recovery);
  is_congested_ = true;
}

void C4::end_era(const Ack& ack) {
  if (alpha_previous_ <= 1) update_max_rtt();
  ++eras_;
  switch (state_) {
    case State::initial:
      if (ack.is_app_limited) break;
      eras_without_increase_ =
          nominal_rate_ > initial_increase * era_rate_ ? 0 : eras_without_increase_ + 1;
      if (eras_without_increase_ >= initial_eras_without_increase) return leave_initial(false);
      break;
    case State::recovery: return end_recovery();
    case State::cruising:
      if (eras_ >= cruising_eras && !ack.is_app_limited) return enter(State::probing);
      break;
    case State::probing:
      enter(State::recovery);
      was_probing_ = true;
      return;
    case State::pushing:
      if (eras_ < pushing_eras_min) break;
      if (nominal_rate_ < pushing_increase * era_rate_) return enter(State::recovery);
      if (eras_ > pushing_eras_max) return enter(State::initial);
      break;
  }
  begin_era();
}

/// Section 3.2: the longest round trip that data sent no faster than the nominal rate saw.
void C4::update_max_rtt() {
  if (era_min_rtt_s_ <= 0) return;
  running_min_rtt_s_ = era_min_rtt_s_ < running_min_rtt_s_
                           ? era_min_rtt_s_
                           : keep * running_min_rtt_s_ + (1 - keep) * era_min_rtt_s_;
  const double seen_s = std::min(era_max_rtt_s_, running_min_rtt_s_ + jitter_max_s);
  nominal_max_rtt_s_ =
      seen_s > nominal_max_rtt_s_ ? seen_s : keep * nominal_max_rtt_s_ + (1 - keep) * seen_s;
}

/// Section 4.2: the window has doubled once more since the rate was that.
void C4::leave_initial(bool is_congested) {
  if (nominal_rate_ > 0) nominal_max_rtt_s_ = initial_window_bytes_ / 2 / nominal_rate_;
  enter(State::recovery);
  is_congested_ = is_congested;
}

void C4::end_recovery() {
  congestions_in_a_row_ = is_congested_ ? congestions_in_a_row_ + 1 : 0;
  if (congestions_in_a_row_ > 1 && recent_rate_max_ > 0) nominal_rate_ = recent_rate_max_;
  recent_rate_max_ = 0;
  ecn_alpha_ = 0;
  const bool has_grown = was_probing_ && !is_congested_ && nominal_rate_ > rate_before_probing_;
  if (!has_begun_again_for_jitter_ && running_min_rtt_s_ < high_jitter * nominal_max_rtt_s_) {
    has_begun_again_for_jitter_ = true;
    return enter(State::initial);
  }
  enter(has_grown ? State::pushing : State::cruising);
}

void C4::enter(State state) {
  begin_era();
  if (state == State::initial)
    initial_window_bytes_ = std::max(nominal_rate_ * nominal_max_rtt_s_,
                                     initial_packets * static_cast<double>(packet_bytes_));
  if (state == State::probing) rate_before_probing_ = nominal_rate_;
  state_ = state;
  eras_ = eras_without_increase_ = 0;
  is_congested_ = was_probing_ = false;
}

void C4::begin_era() {
  alpha_previous_ = alpha();
  era_from_bytes_ = delivered_bytes_total_;
  era_max_rtt_s_ = era_min_rtt_s_ = 0;
  era_rate_ = nominal_rate_;
}

}  // namespace onehop::sim
