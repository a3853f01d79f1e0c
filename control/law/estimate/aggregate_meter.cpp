// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/law/estimate/aggregate_meter.hpp"

#include <algorithm>

#include "control/law/param_reader.hpp"

namespace onehop::law {

namespace {
//= [802.11] aPPDUMaxTime: a PPDU lasts 5.484 ms at most, whatever the aggregate's limit in bytes
constexpr Nanos ppdu_max{5'484us};
// Ours. A window: steps of half an exchange meet the end of a transmission every second time. Low:
// a few short aggregates are a verdict. High: L follows a change of the link late.
constexpr std::int32_t window_steps = 32;
// Ours. Low: a smooth link with a late core looks bursty. High: contention makes aggregates that no
// look falls between.
constexpr std::int32_t quiet_steps_min = window_steps / 6;
// Ours, of an exchange. Low: no step is long enough. High: too few are quiet to tell, or two
// aggregates fall into one.
constexpr std::int64_t step_min_permille = 250, step_max_permille = 800;
// Derived: preamble, delimiters and MAC headers take the rest of the physical rate. Low: L is cut
// short. High: L has air it never gets.
constexpr Gain phy_payload{950};
// Ours: four full frames. Low: a smooth link's pairs of frames count as bursts. High: short
// aggregates are not seen.
constexpr Bytes burst_least{4 * 1538};
// Ours. Low: a queue that is too short teaches an L that keeps it so. High: L never falls.
constexpr Gain link_limited{1600};
// Ours, on the negotiated limit. Low: two aggregates in one step, now and then, pass for longer
// ones. High: air is lost to short ones.
constexpr Gain reported_short{1050};
}  // namespace

void AggregateParams::read(ParamReader& r) {
  r.bytes("aggregate_start_bytes", start);
  r.bytes("aggregate_least_bytes", least);
  r.bytes("aggregate_most_bytes", most);
  r.require(least <= start && start <= most, "aggregate_start_bytes",
            "it must lie between aggregate_least_bytes and aggregate_most_bytes");
}

void AggregateMeter::add(const PathReport& path, Bytes occupancy, Nanos exchange) noexcept {
  if (path.at == at_) return;  // the report was there before
  at_ = path.at;
  const Bytes left = path.tx_step;
  const Nanos span = path.tx_step_span;
  const bool was_empty = left <= Bytes{0} && occupancy <= Bytes{0};
  // A short step without a burst says nothing: a smooth link is quiet between two frames.
  const bool is_short = span < exchange * step_min_permille / 1000 && left < burst_least;
  const bool is_usable =
      span > Nanos{0} && span <= exchange * step_max_permille / 1000 && !is_short;
  if (was_empty || !is_usable || left < Bytes{0}) return;
  largest_ = std::max(largest_, left);
  backlog_max_ = std::max({backlog_max_, occupancy, left});
  sum_ += left;
  if (left == Bytes{0})
    ++quiet_steps_;
  else
    is_dry_ = is_dry_ || left >= path.tx_step_backlog;
  if (++steps_ == window_steps) close_window();
}

void AggregateMeter::close_window() noexcept {
  const bool is_bursty = quiet_steps_ >= quiet_steps_min && quiet_steps_ < window_steps;
  const Bytes sample = is_bursty ? largest_ : params_.least;
  const bool is_link_limited = largest_ * link_limited <= backlog_max_;
  if (sample > learnt_)
    learnt_ += (sample - learnt_) / 2;
  else if (quiet_steps_ < window_steps && is_link_limited)
    learnt_ += (sample - learnt_) / 8;
  learnt_ = std::clamp(learnt_, params_.least, params_.most);
  mean_burst_ = is_bursty ? sum_ / (window_steps - quiet_steps_) : Bytes{0};
  if (mean_burst_ > seen_)
    seen_ += (mean_burst_ - seen_) / 2;
  else if (is_bursty && is_link_limited)
    seen_ += (mean_burst_ - seen_) / 8;
  has_run_dry_ = is_dry_;
  is_dry_ = false;
  ++windows_total_;
  largest_ = backlog_max_ = sum_ = {};
  steps_ = quiet_steps_ = 0;
}

Bytes AggregateMeter::limit(const Bytes* negotiated, const BytesPerSecond* phy,
                            BytesPerSecond drain) const noexcept {
  if (phy != nullptr) drain = std::max(drain, *phy * phy_payload);
  const bool is_negotiated = negotiated != nullptr && *negotiated > Bytes{0};
  const Bytes wanted = !is_negotiated                         ? learnt_
                       : seen_ > *negotiated * reported_short ? seen_
                                                              : *negotiated;
  const Bytes air = drain > BytesPerSecond{0} ? drain * ppdu_max : wanted;
  return std::clamp(std::min(wanted, air), std::min(params_.least, std::max(air, Bytes{1})),
                    params_.most);
}

}  // namespace onehop::law
