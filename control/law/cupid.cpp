// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/law/cupid.hpp"

#include <algorithm>

namespace onehop::law {

namespace {
// The core refills when a quarter of the backlog limit has gone. At a rate below the link's the
// queue is empty, and that quarter is then what the MAC finds. Derived from the core's refill at a
// quarter. Low: small aggregates eat the air that they were to save. High: a longer queue than the
// share needs.
constexpr std::int64_t refills = 4;
// [802.11] an HT aggregate, until one is known. Low and high: as above.
constexpr Bytes aggregate{64 * 1024};
// Derived: safe-range's X_max, at the rate given. Low: aggregates are cut at low rates. High: delay
// above safe-range's.
constexpr Nanos backlog_max{18ms};

Bytes backlog_for(BytesPerSecond rate, const LinkSample& sample, Bytes frame) noexcept {
  const Bytes* known = fresh(sample.facts.aggregate_max, sample.at);
  const Bytes burst = known != nullptr ? *known : aggregate;
  return std::max(std::min(burst * refills, rate * backlog_max), frame * backlog_frames_min);
}

void show(LawDetails& details, const Share& share) noexcept {
  details.airtime_use = share.use;
  details.stations = share.stations;
  details.share = share.rate;
}
}  // namespace

RateGrant Cupid::step(const LinkSample& sample) {
  const auto share = share_.step(sample);
  safe_range_.read(sample, link_);
  RateGrant grant = safe_range_.step(
      sample, link_, share ? SafeRangeModel::Role::standby : SafeRangeModel::Role::active, trace_);
  safe_range_.request_reports(sample, trace_, grant);
  const bool has_flow = has_data(sample.path);
  if (no_airtime_.step(sample.at, !has_flow || share_.missing() != MissingSensor::airtime))
    trace_.notices |= bit_of(Notice::cupid_no_airtime);
  if (no_phy_rate_.step(sample.at, !has_flow || share_.missing() != MissingSensor::phy_rate))
    trace_.notices |= bit_of(Notice::cupid_no_phy_rate);
  if (const BytesPerSecond* phy = fresh(sample.facts.phy_rate, sample.at))
    trace_.details.phy_rate = *phy;
  if (!share) return grant;

  const Bytes frame = safe_range_.ratio().wire_frame();
  grant.rate = safe_range_.clamp_wire(share->rate);
  grant.backlog_max = backlog_for(grant.rate, sample, frame);
  grant.batch_frames = batch_for(grant.backlog_max / 4, frame, 1, batch_frames_max_);
  show(trace_.details, *share);
  trace_.buffers[0].rate = safe_range_.ratio().to_payload(grant.rate);
  trace_.bottleneck = has_flow ? Bottleneck::cap : Bottleneck::source;
  return grant;
}

RateGrant CupidCap::step(const LinkSample& sample) {
  ratio_.read(sample.path);
  RateGrant grant = step_inner(sample);
  const auto share = share_.step(sample);
  if (!share) return grant;
  show(trace_.details, *share);
  // Without a station count N is a guess from foreign air and swings, and so would the cap: among
  // senders that contend alike the MAC divides the air better. With a count, a router serves near
  // and far stations alike, and only the cap gives each the same air.
  if (fresh(sample.facts.stations, sample.at) == nullptr) return grant;
  if (share->stations <= 1 || share->rate >= grant.rate) return grant;
  grant.rate = share->rate;
  grant.is_rate_final = false;
  grant.backlog_max = backlog_for(grant.rate, sample, ratio_.wire_frame());
  if (trace_.bottleneck != Bottleneck::source) trace_.bottleneck = Bottleneck::cap;
  return grant;
}

}  // namespace onehop::law
