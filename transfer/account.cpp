// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "transfer/account.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "control/law/notice.hpp"
#include "control/rate/trace.hpp"

namespace onehop::host {

namespace {

constexpr Nanos interval_period = 1s;
constexpr Gain start_share{800};  // of the remembered rate: the link may have become slower since
constexpr Nanos rate_span_min = 200ms;  // a shorter transfer says little about the path

/// What an engine counted before it was started once more, in the same session.
void add(PathReport& sum, const PathReport& before) {
  sum.packets_sent_total += before.packets_sent_total;
  sum.packets_lost_total += before.packets_lost_total;
  sum.packets_ce_total += before.packets_ce_total;
  const std::uint64_t syscalls_total = sum.counters.syscalls_total;  // the port's, which goes on
  sum.counters += before.counters;
  sum.counters.syscalls_total = syscalls_total;
}

std::string hex(const Digest& digest, std::string_view kind) {
  const std::size_t length = kind == "sha256" ? 32 : 16;
  std::string text;
  for (std::size_t i = 0; i < length; ++i)
    text += fmt::format("{:02x}", std::to_integer<unsigned>(digest[i]));
  return text;
}

const char* name_of(FileOutcome outcome) {
  static constexpr std::array names{"received", "there", "kept", "not_compared"};
  return names[static_cast<std::size_t>(outcome)];
}

api::Queue queue_of(const QueueTelemetry& queue, const BufferUse& use) {
  return {.scope = host::name_of(queue.scope),
          .capacity_bytes = queue.capacity.count,
          .occupancy_bytes_p50 = use.p50.count,
          .occupancy_bytes_p99 = use.p99.count,
          .occupancy_bytes_max = use.max.count,
          .refused_total = queue.refused_total,
          .underflow_ns_total = use.underflow.count()};
}

}  // namespace

const char* name_of(QueueScope scope) {
  static constexpr std::array names{"none", "own_ring", "driver", "lower_queue"};
  return names[static_cast<std::size_t>(scope)];
}

Account::Account(const Events& events, const Settings& settings, std::string role)
    : events_{events}, settings_{settings} {
  facts.role = std::move(role);
  facts.io_requested = settings.io;
  facts.digest = settings.digest;
}

void Account::on_first_data(Instant at) {
  if (has_data()) return;
  first_data_at = interval_at_ = at;
  usage.open_span();
}

void Account::set_place(std::string peer, const std::string& folder) {
  facts.peer = std::move(peer);
  facts.directory = file::display_name(folder);
}

void Account::on_file_done(const file::ManifestEntry& entry, const session::FileDone& done) {
  // Without an event: a hundred thousand lines are a cost.
  if (done.is_packed && done.outcome != FileOutcome::kept) {
    facts.path = facts.directory;
    facts.bytes_total += entry.size;
    facts.files_total += entry.is_folder ? 0 : 1;
    if (done.outcome == FileOutcome::there && !has_restarted)
      facts.bytes_skipped_total += entry.size;
    return;
  }
  const std::string name = file::display_name(file::final_name(entry.name, done.name_number));
  const bool is_verified =
      done.outcome == FileOutcome::received || done.outcome == FileOutcome::there;
  facts.path = facts.directory + (facts.directory.ends_with('/') ? "" : "/") + name;
  if (is_verified) {
    facts.bytes_total += entry.size;
    ++facts.files_total;
  } else {
    ++facts.files_kept_total;
    // Its blocks were counted as there while they were compared; no root was announced where
    // nothing was.
    if (done.root != Digest{})
      facts.bytes_skipped_total -= std::min(facts.bytes_skipped_total, entry.size);
  }
  events_.emit(api::FileDone{.name = file::display_name(entry.name),
                             .bytes = entry.size,
                             .digest_kind = facts.digest,
                             .digest = is_verified ? hex(done.root, facts.digest) : "",
                             .is_verified = is_verified,
                             .outcome = name_of(done.outcome),
                             .final_name = name,
                             .path = facts.path});
}

void Account::say_notices(const RateState& state) {
  const std::uint32_t fresh = state.notices & ~notices_said_;
  notices_said_ |= fresh;
  for (std::uint32_t i = 0; i < law::notices_max; ++i) {
    if ((fresh & (1U << i)) != 0)
      events_.warn(std::string{law::text_of(static_cast<law::Notice>(i))});
  }
}

void Account::tick(Instant now, std::uint64_t bytes, const RateState& state) {
  if (!has_data() || now - interval_at_ < interval_period) return;
  const Bytes step{static_cast<std::int64_t>(bytes - interval_bytes_)};
  events_.emit(api::Interval{.t_ns = (now - first_data_at).count(),
                             .phase = std::string{session::name_of(phase)},
                             .bytes_total = bytes,
                             .goodput_bps = bps(step / (now - interval_at_)),
                             .rate_bps = bps(state.rate),
                             .bottleneck = std::string{rate::name_of(state.bottleneck)},
                             .tx_queue_bytes = state.path.tx_queue.occupancy.count,
                             .rx_ring_bytes = state.path.rx_ring.occupancy.count,
                             .app_buffer_bytes = state.path.app_buffer.occupancy.count,
                             .srtt_ns = state.path.srtt.count()});
  interval_at_ = now;
  interval_bytes_ = bytes;
}

void Account::close_data(const RateState& state) {
  const RateState before = last_state;
  last_state = state;
  say_notices(last_state);
  add(last_state.path, before.path);
}

void Account::set_start(const std::string& peer, law::SafeRangeParams& params) {
  path_used_.reset();
  if (!law::has_start_rate(settings_.law) || params.is_start_known) return;
  auto remembered = RateMemory{settings_.rate_memory}.recall(peer, facts.interface);
  if (!remembered.has_value()) {
    events_.say(remembered.error().message() + "; starting without");
  } else if (remembered.value()) {
    params.rate_start =
        std::clamp(*remembered.value() * start_share, params.rate_min, params.rate_max);
    params.is_start_known = true;
    events_.emit(api::StartRate{bps(params.rate_start), peer, facts.interface});
  }
  if (settings_.rate_max.empty())
    path_used_ = {peer, facts.interface, {}};  // a capped run does not show the path's rate
}

void Account::remember_rate() {
  const Nanos span = all_arrived_at - first_data_at;
  if (!path_used_ || !has_data() || all_arrived_at == Instant{} || span < rate_span_min) return;
  const DataPathCounters& counters = last_state.path.counters;
  path_used_->rate = Bytes{static_cast<std::int64_t>(counters.data_bytes_sent_total -
                                                     counters.retransmitted_bytes_total)} /
                     span;
  if (auto kept = RateMemory{settings_.rate_memory}.remember(*path_used_); !kept.has_value())
    events_.say(kept.error().message());
}

void Account::fill_path(const RateState& state) {
  const PathReport& path = state.path;
  const DataPathCounters& counters = path.counters;
  facts.frames_total = counters.frames_sent_total + counters.frames_received_total;
  facts.retransmitted_bytes_total = counters.retransmitted_bytes_total;
  facts.tail_probes_total = counters.tail_probes_total;
  facts.duplicate_bytes_total = counters.duplicate_bytes_total;
  facts.loss_ratio = path.packets_sent_total == 0
                         ? 0
                         : static_cast<double>(path.packets_lost_total) /
                               static_cast<double>(path.packets_sent_total);
  facts.ce_packets_total = path.packets_ce_total;
  facts.link_acked_total = path.packets_link_acked_total;
  facts.link_failed_total = path.packets_link_failed_total;
  facts.srtt_ns = path.srtt.count();
  facts.tx_queue = queue_of(path.tx_queue, state.tx_queue);
  facts.rx_ring = queue_of(path.rx_ring, state.rx_ring);
  facts.app_buffer = queue_of(path.app_buffer, state.app_buffer);
  facts.tx_queue_mean_bytes = state.tx_queue_mean.count;
  facts.tx_queue_target_bytes = state.tx_queue_target.count;
  facts.auth_failures_total = counters.auth_failures_total;
  facts.replays_total = counters.replays_total;
  facts.malformed_total = counters.malformed_total;
  facts.key_updates_total = counters.key_updates_total;
  facts.engine_turns_total = counters.turns_total;
  facts.engine_wakeups_total = counters.wakeups_total;
  facts.engine_syscalls_total = counters.syscalls_total;
}

void Account::end(const session::SessionEnd& end) {
  if (end.code != ExitCode::done)
    events_.emit(to_api(end.error));
  else
    remember_rate();
  facts.exit_code = static_cast<api::Status>(end.code);
  facts.seconds = has_data() ? std::chrono::duration<double>(ended_at - first_data_at).count() : 0;
  fill_path(last_state);
  facts.cpu_seconds = UsageMeter::cpu_seconds();
  facts.softirq_seconds = usage.softirq_seconds();
  facts.system_busy_seconds = usage.system_busy_seconds();
  facts.rss_bytes_max = UsageMeter::rss_bytes_max();
  events_.emit(facts);
  forget_session();
}

void Account::forget_session() {
  first_data_at = all_arrived_at = ended_at = interval_at_ = {};
  interval_bytes_ = bytes_expected = bytes_asked = facts.bytes_skipped_total = facts.bytes_total =
      facts.files_total = facts.files_kept_total = 0;
  facts.peer = facts.directory = facts.path = {};
  has_restarted = false;
  last_state = {};
  usage = {};
  recent = {};
}

}  // namespace onehop::host
