// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/law/safe_range.hpp"

#include <algorithm>

#include "control/law/param_reader.hpp"
#include "engine/base/check.hpp"

namespace onehop::law {

namespace {
// Ours: a core that was away for that long catches up in one burst. Low: naps cost rate. High:
// bursts overflow a queue that no sensor reads.
constexpr Nanos paced_depth{5ms};
// Ours: a batch is what leaves in this time. Low: more doorbells. High: bursts on a slow link.
constexpr Nanos paced_batch{500us};
// Ours, on the injection: used is what is granted, or 5/7 of it. Low: a pacer's rounding passes for
// a source that pauses. High: such a source passes for the link.
constexpr Gain used_gain{1400};
}  // namespace

void SafeRangeParams::read(ParamReader& r) {
  r.ms("d_1_ms", d_1, 0.5, 100);
  r.gains("v_1_bounds", v_1_lo, v_1_up, 0, 10);
  r.require(v_1_lo <= Gain{1000} && v_1_up >= Gain{1000}, "v_1_bounds",
            "the bounds must lie around 1");
  r.gains("v_rx_bounds", v_rx_lo, v_rx_up, 0, 10);
  r.require(v_rx_lo <= Gain{1000} && v_rx_up >= Gain{1000}, "v_rx_bounds",
            "the bounds must lie around 1");
  r.ms("d_rx_min_ms", d_rx_min, 0.1, 100);
  r.ms("latch_min_ms", latch_min, 1, 10'000);
  if (r.rate("rate_start_bps", rate_start)) is_start_known = true;
  r.rate("rate_min_bps", rate_min);
  r.rate("rate_max_bps", rate_max);
  r.require(rate_min <= rate_start && rate_start <= rate_max, "rate_start_bps",
            "it must lie between rate_min_bps and rate_max_bps");
  r.bytes("backlog_start_bytes", backlog_start);
  r.count("batch_frames_max", batch_frames_max, 2, 256);
}

SafeRangeModel::SafeRangeModel(const SafeRangeParams& params) noexcept
    : params_{params},
      own_{params},
      receivers_{params},
      paced_{params},
      batch_frames_{params.batch_frames_max} {}

BytesPerSecond SafeRangeModel::clamp_wire(BytesPerSecond rate) const noexcept {
  return std::clamp(rate, ratio_.to_wire(params_.rate_min), ratio_.to_wire(params_.rate_max));
}

RateGrant SafeRangeModel::step(const LinkSample& sample, const LinkModel& link, Role role,
                               LawTrace& trace) {
  ratio_.read(sample.path);
  is_outage_ = outage_.step(sample.at, sample.path, feedback_interval_);
  trace.buffers = {};
  trace.details = {.sensor = link.view.sensor};
  trace.is_degraded = false;

  receivers_.read(sample.path, ratio_.payload_frame());
  own_.step({.sample = sample,
             .link = link,
             .ratio = ratio_,
             .is_standby = role == Role::standby,
             .last_bottleneck = bottleneck_},
            trace);
  if (link.has_queue)
    batch_frames_ = own_.batch_frames();
  else
    set_paced_term(sample, trace.buffers[0]);
  receivers_.set_rows(sample.at, sample.path.srtt,
                      link.has_queue ? ratio_.to_payload(link.drain.flow()) : paced_.injection(),
                      trace.buffers);

  BytesPerSecond v_0 = params_.rate_max;
  bottleneck_ = Bottleneck::none;
  for (std::size_t i = 0; i < trace.buffers.size(); ++i) {
    const BufferRow& row = trace.buffers[i];
    if (!row.takes_part || row.rate > v_0) continue;
    if (row.rate == v_0 && bottleneck_ != Bottleneck::none) continue;
    v_0 = row.rate;
    bottleneck_ = bottleneck_of_buffer[i];
  }
  const bool has_offer = sample.path.offered > Bytes{0} && role == Role::active;
  if (!has_offer && !sample.path.is_credit_limited) bottleneck_ = Bottleneck::source;
  //= [SMUFF] eq. (6)  type=deviation
  //=   reason=v_0 = 0 would never learn that a link is back (edge case a); R_min while X < X_max
  v_0 = std::clamp(v_0, params_.rate_min, params_.rate_max);
  rate_ = ratio_.to_wire(v_0);
  trace.bottleneck = bottleneck_;
  return {.rate = rate_,
          .backlog_max = ratio_.to_wire(link.has_queue ? own_.backlog_max() : paced_backlog_max_),
          .batch_frames = batch_frames_};
}

// set_paced_term stands in for i = 1 where no queue can be read.
void SafeRangeModel::set_paced_term(const LinkSample& sample, BufferRow& row) noexcept {
  const PathReport& path = sample.path;
  BytesPerSecond rate = paced_.step({.at = sample.at,
                                     .sent_total = ratio_.to_payload(path.sent_total),
                                     .packets_reported_total = path.packets_reported_total,
                                     .packets_lost_total = path.packets_lost_total,
                                     .srtt = path.srtt,
                                     .feedback_at = path.feedback_at,
                                     .is_outage = is_outage_});
  const bool has_ring = receivers_.is_ring_known();
  const auto bound =
      delay_bound_.step({.rtt = path.rtt,
                         .arrived_total = has_ring ? path.rx_ring.drained_total : Bytes{},
                         .arrived_at = has_ring ? path.rx_ring.at : Instant{},
                         .arrival_rate = receivers_.ring_flow(),
                         .rate_start = params_.rate_start,
                         .is_used = paced_.injection() * used_gain >= ratio_.to_payload(rate_),
                         .is_outage = is_outage_});
  if (bound) rate = std::min(rate, std::max(*bound, params_.rate_min));
  row = {.drain = paced_.injection(), .rate = rate, .takes_part = true};
  const Bytes frame = ratio_.payload_frame();
  batch_frames_ = batch_for(rate * paced_batch, frame, 2, params_.batch_frames_max);
  const Bytes two_batches = frame * 2 * batch_frames_;
  paced_backlog_max_ = std::max(two_batches, rate * paced_depth);
  // A burst larger than half of the peer's ring is lost there. The peer's claim can only lower the
  // depth.
  if (const Bytes ring = receivers_.ring_capacity(); ring > Bytes{0})
    paced_backlog_max_ = std::clamp(paced_backlog_max_, Bytes{0}, std::max(ring / 2, two_batches));
}

void SafeRangeModel::request_reports(const LinkSample& sample, LawTrace& trace,
                                     RateGrant& grant) noexcept {
  grant.feedback_interval = feedback_interval_ = acks_.step(sample, trace.bottleneck);
  if (feedback_interval_ > Nanos{0}) trace.details.feedback_interval = feedback_interval_;
  grant.nack_request_id = acks_.requests_total();
}

RateGrant SafeRange::step(const LinkSample& sample) {
  ONEHOP_CHECK(sample.at >= stepped_at_);
  stepped_at_ = sample.at;
  model_.read(sample, link_);
  RateGrant grant = model_.step(sample, link_, SafeRangeModel::Role::active, trace_);
  model_.request_reports(sample, trace_, grant);
  return grant;
}

}  // namespace onehop::law
