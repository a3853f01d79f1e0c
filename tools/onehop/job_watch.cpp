// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// What observers on this machine are told of a job.
#include <unistd.h>

#include <algorithm>

#include "engine/base/time.hpp"
#include "tools/onehop/job.hpp"

namespace onehop::tool {

namespace {

watch::BufferView view_of(const law::BufferRow& row, const QueueTelemetry& queue, bool is_sending) {
  const auto clamp = [](Bytes b) { return std::max(b, Bytes{0}); };
  watch::BufferView view{.scope = name_of(queue.scope), .occupancy = clamp(queue.occupancy), .capacity = clamp(queue.capacity),
                         .drain = std::max(row.drain, BytesPerSecond{0}), .refused_total = queue.refused_total};
  if (!is_sending) return view;  // the receiving end sets no rate: a law's terms would mean nothing
  // What the law read, where it read: the same units as its range.
  if (row.under || row.over) view.occupancy = clamp(row.occupancy);
  view.target = clamp(row.target);
  view.under = row.under;
  view.over = row.over;
  view.limit = clamp(row.occupancy_max);
  view.allowed = row.rate;
  view.takes_part = row.takes_part;
  return view;
}

/// The law's own quantities, by their names in the trace.
std::vector<std::pair<std::string, std::int64_t>> details_of(const law::LawDetails& d) {
  std::vector<std::pair<std::string, std::int64_t>> out;
  const auto add = [&](const char* key, const auto& value, auto number) {
    if (value) out.emplace_back(key, number(*value));
  };
  const auto count = [](auto v) { return v.count; };
  const auto permille = [](Gain g) { return g.permille; };
  const auto nanos = [](Nanos t) { return static_cast<std::int64_t>(t.count()); };
  add("alpha_permille", d.alpha, permille);
  add("beta_bytes_per_s", d.beta, count);
  add("a_bytes", d.a, count);
  add("b_bytes", d.b, count);
  add("aggregate_bytes", d.aggregate, count);
  add("phy_rate_bytes_per_s", d.phy_rate, count);
  add("airtime_use_permille", d.airtime_use, permille);
  add("stations", d.stations, [](std::int32_t n) { return static_cast<std::int64_t>(n); });
  add("share_bytes_per_s", d.share, count);
  add("tau_ns", d.tau, nanos);
  add("gate_bytes", d.gate, count);
  add("loss_cap_bytes_per_s", d.loss_cap, count);
  add("feedback_interval_ns", d.feedback_interval, nanos);
  return out;
}

}  // namespace

void Job::let_watch() {
  if (publisher_) return;
  auto opened = watch::Publisher::open(io_, [this] { return watch::line_of(telemetry()); });
  if (opened.has_value()) publisher_ = std::move(opened).value();
  else reporter_.say("not visible to onehop watch: " + opened.error().message());
}

void Job::end_watch() {
  if (publisher_) publisher_->stop();
}

watch::Telemetry Job::telemetry() const {
  const Instant now = monotonic_now();
  const bool is_running = engine_ != nullptr, is_sending = facts_.role == "send";
  const RateState state = is_running ? links_->state.load() : last_state_;
  const rate::TraceRow row = links_->row.load();
  const PathReport& path = state.path;
  watch::Telemetry t{.pid = ::getpid(), .role = facts_.role, .version = ONEHOP_VERSION, .phase = std::string{plane::name_of(phase_)}, .peer = facts_.peer,
                     .interface = facts_.interface, .io = facts_.io_used, .io_mode = facts_.io_mode, .law = facts_.law, .repair = facts_.repair,
                     .link_source = facts_.link_source, .at = now};
  const bool is_idle = !is_running && !has_data() && !is_sending;
  if (is_idle && (phase_ == plane::Phase::connecting || phase_ == plane::Phase::done)) t.phase = "listening";
  if (has_data()) {
    t.elapsed = (ended_at_ == Instant{} ? now : ended_at_) - first_data_at_;
    t.goodput = recent_.now();
    const QueueTelemetry& buffer = is_running ? links_->report.load().app_buffer : path.app_buffer;
    t.bytes_done = std::min(static_cast<std::uint64_t>(std::max<std::int64_t>(0, (buffer.drained_total + buffer.occupancy).count)), bytes_expected_);
    if (recent_.trend() > BytesPerSecond{0})
      t.eta_seconds = static_cast<double>(bytes_expected_ - t.bytes_done) / static_cast<double>(recent_.trend().count);
  }
  t.bytes_expected = bytes_expected_;
  if (is_sending) {
    t.rate = state.rate;
    t.backlog_max = state.backlog_max;
    t.bottleneck = rate::name_of(state.bottleneck);
    t.is_degraded = row.law.is_degraded;
    t.sensor = rate::name_of(row.law.details.sensor);
    t.details = details_of(row.law.details);
    if (const BytesPerSecond* link = law::fresh(row.facts.phy_rate, row.at)) t.link_rate = *link;
  }
  t.srtt = path.srtt;
  t.packets_sent_total = path.packets_sent_total;
  t.packets_lost_total = path.packets_lost_total;
  t.retransmitted_bytes_total = path.counters.retransmitted_bytes_total;
  t.auth_failures_total = path.counters.auth_failures_total;
  t.cpu_seconds = UsageMeter::cpu_seconds();
  const std::array queues{&path.tx_queue, &path.rx_ring, &path.app_buffer};
  for (std::size_t i = 0; i < queues.size(); ++i) t.buffers[i] = view_of(row.law.buffers[i], *queues[i], is_sending);
  // The receiving end's few answers fill no queue, so the law has for its drain what it starts from.
  if (!is_sending) t.buffers[0].drain = {};
  return t;
}

}  // namespace onehop::tool
