// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/law/cupid.hpp"

#include <algorithm>

#include "control/law/queue_view.hpp"

namespace onehop::law {

namespace {
// The core refills when a quarter of the backlog limit has gone. At a rate below the link's nothing
// stands in the queue, and that quarter is then what the MAC finds. Derived from the core's refill
// at a quarter. Low: small aggregates eat the air that they were to save. High: a longer queue than
// the share needs.
constexpr std::int64_t refills = 4;
// [802.11] an HT aggregate, until one is told. Low and high: as above.
constexpr Bytes aggregate{64 * 1024};
// Derived: safe-range's X_max, at the rate given. Low: aggregates are cut at low rates. High: delay
// above safe-range's.
constexpr Nanos backlog_max{18ms};
// Ours: two batches of two. Low: a core that comes late runs the queue dry. High: delay on a slow
// link.
constexpr std::int64_t frames_min = 4;

Bytes backlog_for(BytesPerSecond rate, const LinkSample& sample, Bytes frame) noexcept {
  const Bytes* known = fresh(sample.facts.aggregate_max, sample.at);
  const Bytes burst = known != nullptr ? *known : aggregate;
  return std::max(std::min(burst * refills, rate * backlog_max), frame * frames_min);
}

void show(LawDetails& details, const Share& share) noexcept {
  details.airtime_use = share.use;
  details.stations = share.stations;
  details.share = share.rate;
}
}  // namespace

Cupid::Cupid(const CupidParams& params) noexcept
    : params_{params}, share_{params.share}, fallback_{params.safe_range} {}

RateGrant Cupid::step(const LinkSample& sample) {
  ratio_.read(sample.path);
  const auto share = share_.step(airtime_reading(sample));
  LinkSample shadow = sample;
  // In the background safe-range must not learn from a queue that it does not set.
  if (share) shadow.path.offered = {};
  RateGrant grant = fallback_.step(shadow);
  const std::uint32_t notices = trace_.notices;
  trace_ = fallback_.trace();
  trace_.notices |= notices;
  const bool has_flow = has_data(sample.path);
  if (no_airtime_.step(sample.at, !has_flow || share_.lack() != AirtimeShare::Lack::airtime))
    trace_.notices |= bit_of(Notice::cupid_no_airtime);
  if (no_phy_rate_.step(sample.at, !has_flow || share_.lack() != AirtimeShare::Lack::phy_rate))
    trace_.notices |= bit_of(Notice::cupid_no_phy_rate);
  if (const BytesPerSecond* phy = fresh(sample.facts.phy_rate, sample.at)) trace_.details.phy_rate = *phy;
  else trace_.details.phy_rate.reset();
  if (!share) return grant;

  const BytesPerSecond least = ratio_.to_wire(params_.safe_range.rate_min), most = ratio_.to_wire(params_.safe_range.rate_max);
  grant.rate = std::clamp(share->rate, least, most);
  grant.backlog_max = backlog_for(grant.rate, sample, ratio_.wire_frame());
  const Bytes quarter = grant.backlog_max / 4;
  grant.batch_frames = static_cast<std::uint32_t>(
      std::clamp<std::int64_t>(quarter.count / ratio_.wire_frame().count, 1, params_.safe_range.batch_frames_max));
  show(trace_.details, *share);
  trace_.buffers[0].rate = ratio_.to_payload(grant.rate);
  trace_.rate = grant.rate;
  trace_.backlog_max = grant.backlog_max;
  trace_.bottleneck = has_flow ? Bottleneck::cap : Bottleneck::source;
  return grant;
}

CupidCap::CupidCap(std::unique_ptr<Controller> inner, const AirtimeShareParams& params) noexcept
    : inner_{std::move(inner)}, share_{params} {}

RateGrant CupidCap::step(const LinkSample& sample) {
  ratio_.read(sample.path);
  RateGrant grant = inner_->step(sample);
  trace_ = inner_->trace();
  const auto share = share_.step(airtime_reading(sample));
  if (!share) return grant;
  show(trace_.details, *share);
  // Guessed from foreign air, N swings, and so would the cap: among senders that contend alike the MAC divides the air better.
  // Where stations are counted, a router serves near and far ones alike, and only the cap gives each the same air.
  if (fresh(sample.facts.stations, sample.at) == nullptr) return grant;
  if (share->stations <= 1 || share->rate >= grant.rate) return grant;
  grant.rate = share->rate;
  grant.is_rate_final = false;
  grant.backlog_max = backlog_for(grant.rate, sample, ratio_.wire_frame());
  trace_.rate = grant.rate;
  trace_.backlog_max = grant.backlog_max;
  if (trace_.bottleneck != Bottleneck::source) trace_.bottleneck = Bottleneck::cap;
  return grant;
}

}  // namespace onehop::law
