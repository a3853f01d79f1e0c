// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// DataPath, its reports of ten times a second.
#include <unistd.h>

#include <algorithm>

#include "control/transfer/data_path.hpp"
#include "engine/base/time.hpp"

namespace onehop::transfer {

namespace {

api::Buffer view_of(const law::BufferRow& row, const QueueTelemetry& queue, const RecentRate& drain,
                    bool is_sending) {
  const auto clamp = [](Bytes b) { return std::max(b.count, std::int64_t{0}); };
  const auto count = [](const auto& value) {
    return value ? std::optional{value->count} : std::nullopt;
  };
  api::Buffer view;
  view.scope = name_of(queue.scope);
  view.occupancy_bytes = clamp(queue.occupancy);
  view.capacity_bytes = clamp(queue.capacity);
  view.drain_bps = bps(drain.now());
  view.refused_total = queue.refused_total;
  if (!is_sending) return view;  // the receiving end sets no rate: a law's terms would mean nothing
  // What the law read, where it read: the same units as its range.
  if (row.under || row.over) view.occupancy_bytes = clamp(row.occupancy);
  view.target_bytes = clamp(row.target);
  view.under_bytes = count(row.under);
  view.over_bytes = count(row.over);
  view.limit_bytes = clamp(row.occupancy_max);
  view.allowed_bps = bps(row.rate);
  view.takes_part = row.takes_part;
  return view;
}

/// What sets the rate of `state`, whose bottleneck is a cap.
api::Cap cap_of(const rate::RateState& state, const std::string& law, BytesPerSecond rate_max) {
  const law::LawTrace& trace = state.law;
  const auto holds = [&](BytesPerSecond cap) {
    constexpr Gain rounding{970};  // what is granted went through payload and frames
    return cap > BytesPerSecond{0} && cap * rounding <= state.grant.rate;
  };
  if (holds(rate_max)) return api::Cap::max_rate;
  if (holds(state.path.rate_offer)) return api::Cap::max_rate_there;
  if (trace.details.loss_cap && holds(*trace.details.loss_cap)) return api::Cap::loss;
  return law.starts_with("fixed") ? api::Cap::law : api::Cap::airtime;
}

/// The law's own quantities, by their names in the trace.
std::vector<std::pair<std::string, std::int64_t>> details_of(const law::LawTrace& trace) {
  std::vector<std::pair<std::string, std::int64_t>> out;
  for (const rate::DetailColumn& column : rate::columns_of(trace.details))
    if (column.value) out.emplace_back(column.name, *column.value);
  return out;
}

}  // namespace

api::Progress DataPath::progress() const {
  const Instant now = monotonic_now();
  const Account& account = account_;
  const api::End& facts = account.facts;
  const bool is_running = engine_ != nullptr, is_sending = account.is_sending();
  // Empty when no data path runs: what the law said of the last one holds no more.
  const rate::RateState newest = links_->state.load();
  const rate::RateState& state = is_running ? newest : account.last_state;
  const PathReport& path = state.path;
  api::Progress t;
  t.pid = ::getpid();
  t.role = facts.role;
  t.version = ONEHOP_VERSION;
  t.phase = phase_of(account.has_data() ? account.phase_at(bytes_arrived()) : account.phase);
  t.peer = facts.peer;
  t.interface = facts.interface;
  t.io = facts.io_used;
  t.io_mode = facts.io_mode;
  t.law = facts.law;
  t.repair = facts.repair;
  t.link_source = facts.link_source;
  t.t_ns = now.time_since_epoch().count();
  const bool is_idle = !is_running && !account.has_data() && !is_sending;
  if (is_idle &&
      (account.phase == session::Phase::connecting || account.phase == session::Phase::done))
    t.phase = api::Phase::listening;
  t.bytes_expected = account.bytes_to_arrive();
  t.bytes_to_compare = account.bytes_held();
  if (account.has_data()) {
    const Instant until = is_running || account.ended_at == Instant{} ? now : account.ended_at;
    t.elapsed_ns = (until - account.first_data_at).count();
    t.goodput_bps = bps(account.recent.now());
    t.bytes_done = std::min(bytes_arrived(), t.bytes_expected);
    t.eta_seconds = account.eta_seconds(t.bytes_done);
  }
  if (account.link_down_since) t.link_down_ns = (now - *account.link_down_since).count();
  t.files_done = account.files_done;
  t.files_total = account.files_total();
  t.is_all_known = account.is_all_known;
  if (is_sending) {
    t.rate_bps = bps(state.grant.rate);
    t.backlog_max_bytes = state.grant.backlog_max.count;
    t.bottleneck = rate::name_of(state.bottleneck);
    if (state.bottleneck == Bottleneck::cap)
      t.cap = cap_of(state, facts.law, links_->limits.load().rate_max);
    for (std::size_t i = 0; i < newest.bottleneck_permille.size(); ++i) {
      const auto share = newest.bottleneck_permille[i];
      if (share > 0)
        t.bottleneck_permille[std::string{rate::name_of(static_cast<Bottleneck>(i))}] = share;
    }
    t.is_degraded = newest.law.is_degraded;
    t.sensor = rate::name_of(newest.law.details.sensor);
    t.details = details_of(newest.law);
    if (const BytesPerSecond* link = law::fresh(newest.facts.phy_rate, newest.at))
      t.link_rate_bps = bps(*link);
  }
  t.srtt_ns = path.srtt.count();
  t.packets_sent_total = path.packets_sent_total;
  t.packets_lost_total = path.packets_lost_total;
  t.retransmitted_bytes_total = path.counters.retransmitted_bytes_total;
  t.auth_failures_total = path.counters.auth_failures_total;
  t.cpu_seconds = UsageMeter::cpu_seconds();
  const std::array queues{&path.tx_queue, &path.rx_ring, &path.app_buffer};
  for (std::size_t i = 0; i < queues.size(); ++i)
    t.buffers[i] = view_of(newest.law.buffers[i], *queues[i], account.recent_drains[i], is_sending);
  if (!is_sending) t.buffers[0].drain_bps = 0;  // of a few answers
  return t;
}

}  // namespace onehop::transfer
