// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/law/qcut.hpp"

#include <algorithm>

#include "control/law/estimate/queue_view.hpp"
#include "control/law/param_reader.hpp"

namespace onehop::law {

namespace {
// Ours. Low: a starved gate opens too slowly, and stays open for ever. High: it swings by more than
// an aggregate.
constexpr Gain tau_up{1250}, tau_down{980};
// Ours. Low: tau is at its most after one late core, and falls between two. High: a starved link
// waits, a fed one keeps its delay.
constexpr Nanos starved_span{100ms}, relax_span{1s};
// Ours, of what the link can do at most. Low: a burst's completions are false. High: a driver that
// completes at once is believed.
constexpr Gain false_completion{1500};
// Ours: R_hat is an average over a window. Low: a burst that completes at once turns the gate off.
// High: a useless gate stays on.
constexpr std::int32_t false_readings_max = 50;
// Derived: the core sleeps until three fifths of its limit have drained. Low: an aggregate takes
// the rest first. High: wake-ups.
constexpr std::int64_t polls_per_tau = 4;
// [QCUT] B_min. Low: a gate that is shorter than what the core hands over at once starves it. High:
// tau does not bind on slow links.
constexpr std::int64_t batches_min = 2;
// Ours: single windows hold one aggregate more or less. Low: starved for seconds before it counts.
// High: noise opens the gate.
constexpr double slack_gain = 1.0 / 64.0, slack_max = 0.1;
}  // namespace

void QcutParams::read(ParamReader& r) {
  r.ms("tau_wired_ms", tau_wired, 0.1, 1'000);
  r.ms("tau_wifi_ms", tau_wifi, 0.1, 1'000);
  r.ms("tau_max_ms", tau_max, 0.1, 1'000);
  r.require(tau_wired <= tau_max && tau_wifi <= tau_max, "tau_max_ms",
            "it is below tau_wired_ms or tau_wifi_ms");
}

Qcut::Qcut(std::unique_ptr<Controller> inner, const QcutParams& params)
    : WrapperLaw{std::move(inner), "+qcut"},
      params_{params},
      completion_{{.window = params.tau_wired, .gain_permille = 125, .rate_max = params.rate_max}} {
}

// is_false_completion compares R_hat with the most that the link can carry. If that is unknown, it
// cannot decide.
bool Qcut::is_false_completion(const LinkSample& sample) noexcept {
  BytesPerSecond cap{};
  if (const BytesPerSecond* phy = fresh(sample.facts.phy_rate, sample.at))
    cap = *phy;
  else
    cap = sample.limits.link_rate;
  if (cap <= BytesPerSecond{0} || !completion_.has_drain() ||
      completion_.drain() <= cap * false_completion) {
    false_readings_ = 0;
    return false;
  }
  return ++false_readings_ >= false_readings_max;
}

// adapt: starved means that the gate let B run to 0 with data waiting. A report that is made after
// the refill never shows 0; there, less flow than the link drains when it has something says the
// same.
void Qcut::adapt(const LinkSample& sample, bool is_binding) noexcept {
  const Nanos tau_0 = sample.facts.medium == Medium::wifi ? params_.tau_wifi : params_.tau_wired;
  tau_ = std::clamp(tau_, tau_0, params_.tau_max);
  const bool is_waiting = is_binding && has_data(sample.path);
  if (!is_waiting || !completion_.has_flow() || !completion_.has_drain()) {
    slack_ = 0;
  } else {
    // Smoothed, for single windows hold one aggregate more or less.
    const double flow = static_cast<double>(completion_.flow().count),
                 drain = static_cast<double>(completion_.drain().count);
    slack_ += (1.0 - flow / std::max(drain, 1.0) - slack_) * slack_gain;
  }
  const bool is_starved =
      is_waiting && (sample.path.tx_queue.occupancy <= Bytes{0} || slack_ > slack_max);
  if (is_starved && sample.at - widened_at_ >= starved_span) {
    tau_ = std::min(Nanos{tau_.count() * tau_up.permille / 1000}, params_.tau_max);
    widened_at_ = adapted_at_ = sample.at;
  } else if (sample.at - adapted_at_ >= relax_span) {
    tau_ = std::max(Nanos{tau_.count() * tau_down.permille / 1000}, tau_0);
    adapted_at_ = sample.at;
  }
}

RateGrant Qcut::step(const LinkSample& sample) {
  RateGrant grant = step_inner(sample);
  const QueueTelemetry queue = without_refused(sample.path);
  const bool has_queue = pushes_back(queue.scope);
  if (no_queue_.step(sample.at, has_queue || !has_data(sample.path)))
    trace_.notices |= bit_of(Notice::qcut_no_queue);
  if (!has_queue || is_off_) return grant;

  // On a slow link two batches of the law inside may be more than tau of data: a batch is then half
  // of that.
  const Bytes frame = std::max(sample.path.wire_per_frame, Bytes{1});
  if (completion_.has_drain()) {
    const std::int64_t half = (completion_.drain() * tau_ / 2).count / frame.count;
    grant.batch_frames = static_cast<std::uint32_t>(
        std::clamp<std::int64_t>(half, 1, std::max<std::uint32_t>(grant.batch_frames, 1)));
  }
  const Bytes batch =
      frame * static_cast<std::int64_t>(std::max<std::uint32_t>(grant.batch_frames, 1));
  completion_.add(
      {.at = queue.at, .drained_total = queue.drained_total, .occupancy = queue.occupancy}, batch);
  if (is_false_completion(sample)) {
    is_off_ = true;
    trace_.notices |= bit_of(Notice::qcut_false_completion);
    return grant;
  }
  adapt(sample, gate_ > Bytes{0} && gate_ < grant.backlog_max);
  trace_.details.tau = tau_;
  if (!completion_.has_drain()) return grant;
  gate_ = std::max(completion_.drain() * tau_, batch * batches_min);
  trace_.details.gate = gate_;
  grant.backlog_max = std::min(grant.backlog_max, gate_);
  if (sample.facts.medium == Medium::wired) return grant;
  // The core sleeps until three fifths of its limit have drained, and an aggregate may take the
  // rest at once.
  const Nanos poll = tau_ / polls_per_tau;
  grant.poll_interval = grant.poll_interval > Nanos{0} ? std::min(grant.poll_interval, poll) : poll;
  return grant;
}

}  // namespace onehop::law
