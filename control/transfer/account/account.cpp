// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/transfer/account/account.hpp"

#include "control/law/notice.hpp"
#include "control/transfer/account/time_left.hpp"
#include "engine/base/display_name.hpp"
#include "engine/base/rate_text.hpp"
#include "engine/base/time.hpp"

namespace onehop::transfer {

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

api::Queue queue_of(const QueueTelemetry& queue, const rate::BufferUse& use) {
  return {.scope = transfer::name_of(queue.scope),
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

Account::Account(const Events& events, const Settings& settings, api::Role role)
    : events_{events}, settings_{settings} {
  facts.role = role;
  facts.io_requested = settings.io;
  facts.digest = crypto::digest_name(digest_kind(settings));
}

void Account::note_drains(Instant now, const PathReport& path) noexcept {
  const std::array queues{&path.tx_queue, &path.rx_ring, &path.app_buffer};
  for (std::size_t i = 0; i < queues.size(); ++i)
    recent_drains[i].add(
        now, static_cast<std::uint64_t>(std::max(queues[i]->drained_total, Bytes{0}).count));
}

void Account::learn(const session::SessionFact& fact) {
  std::visit([this](const auto& known) { on(known); }, fact);
}

void Account::on(session::Phase now) {
  phase = now;
  tell_unnamed();
}

void Account::on(const Event& event) {
  // A session whose source changed starts once more, which does not count.
  if (event.kind == EventKind::first_data && !has_data()) {
    first_data_at = interval_at_ = event.at;
    usage.open_span();
  }
  if (event.kind == EventKind::all_arrived) all_arrived_at = event.at;
}

void Account::on(const session::Notice& notice) {
  notice.is_warning ? events_.warn(notice.text) : events_.say(notice.text);
}

void Account::on(const session::LinkState& link) {
  if (link.is_up)
    link_down_since.reset();
  else if (!link_down_since)
    link_down_since = monotonic_now();
}

void Account::set_place(std::string peer, const std::string& folder) {
  facts.peer = std::move(peer);
  facts.directory = display_name(folder);
}

void Account::on(const session::Report& report) {
  const session::FileDone& done = report.done;
  const list::ManifestEntry& entry = report.manifest->files[report.place];
  if (receipt_) receipt_->add(entry, done, facts.digest);
  const bool is_verified =
      done.outcome == FileOutcome::received || done.outcome == FileOutcome::there;
  const bool is_as_offered = is_verified || done.outcome == FileOutcome::there_unread;
  if (!session::is_named(done.outcome))
    unnamed_.items.push_back({.path = display_name(entry.name),
                              .kind = std::string{name_of(outcome_of(done.outcome))},
                              .cause = session::name_fault_text(done.outcome, done.name_fault),
                              .is_failure = true});
  const auto hole = holes_.extract(done.file);
  if (hole && is_as_offered) facts.bytes_hole_total += hole.mapped();
  bytes_over_ += entry.size;
  count(entry, done, is_as_offered);
  files_done += entry.is_folder() || entry.is_piece() ? 0 : 1;
  facts.path = facts.directory;
  // Without an event: a hundred thousand lines are a cost.
  const bool is_one_of_many = done.is_small || entry.is_piece();
  const bool is_told = !is_one_of_many || !is_as_offered || settings_.has_all_files;
  if (entry.is_folder() || (done.is_small && !is_told)) return;
  const std::string name = display_name(list::final_name(entry.name, done.name_number));
  facts.path += (facts.directory.ends_with('/') ? "" : "/") + name;
  if (!is_told) return;
  events_.emit(api::FileDone{.name = display_name(entry.name),
                             .bytes = entry.size,
                             .digest_kind = facts.digest,
                             .digest = is_verified ? hex(done.root, facts.digest) : "",
                             .is_verified = is_verified,
                             .outcome = outcome_of(done.outcome),
                             .final_name = name,
                             .path = facts.path});
}

void Account::count(const list::ManifestEntry& entry, const session::FileDone& done,
                    bool is_as_offered) {
  const bool is_unread = done.outcome == FileOutcome::there_unread;
  if (is_as_offered) {
    facts.bytes_total += entry.size;
    if (entry.is_piece())
      facts.files_total = 1;  // of whose pieces this is one
    else
      facts.files_total += entry.is_folder() ? 0 : 1;
    facts.files_there_unread_total += is_unread ? 1 : 0;
    // Of files with blocks of their own, blocks were counted.
    const bool is_packed_there = done.is_small && done.outcome == FileOutcome::there;
    if (is_unread || (is_packed_there && !has_restarted)) facts.bytes_skipped_total += entry.size;
    if (is_unread || is_packed_there) bytes_absent_ += entry.size;
    return;
  }
  // Its blocks were counted as there while they were compared; no root was announced where nothing
  // was.
  const bool is_compared = !done.is_small && done.root != Digest{};
  if (!is_compared) bytes_absent_ += entry.size;
  if (!session::is_named(done.outcome)) {
    ++facts.names_refused_total;
    return;
  }
  ++facts.files_kept_total;
  if (is_compared) facts.bytes_skipped_total -= std::min(facts.bytes_skipped_total, entry.size);
}

void Account::on(const session::VolumeOver& over) {
  if (receipt_) receipt_->on_volume_over(over.manifest->files.size());
}

void Account::tell_unnamed() {
  if (!unnamed_.items.empty()) events_.emit(std::exchange(unnamed_, {}));
}

void Account::on(const session::HoleAnnounced& hole) {
  holes_[hole.file] += hole.bytes;
  bytes_absent_ += hole.bytes;
}

void Account::on_left_out(const list::ManifestEntry& entry) {
  bytes_over_ += entry.size;
  bytes_absent_ += entry.size;
  files_done += entry.is_folder() ? 0 : 1;
}

void Account::on(const session::Skipped& skipped) {
  bytes_absent_ += skipped.bytes;
  bytes_held_ -= std::min(bytes_held_, skipped.bytes);
  // Else they came in this session.
  if (!has_restarted) facts.bytes_skipped_total += skipped.bytes;
}

Result<void> Account::begin_receipt() {
  if (settings_.receipt_file.empty() || receipt_) return success();
  ONEHOP_TRY(opened, Receipt::open(settings_, name_of(facts.role)));
  receipt_ = std::move(opened);
  return success();
}

void Account::on_restart() {
  has_restarted = true;
  holes_.clear();
  // The next data path counts from nothing. What is not done is offered again, and so is what of
  // it arrived.
  bytes_offered = bytes_absent_ = bytes_over_;
  bytes_held_ = 0;
  interval_bytes_ = 0;
  if (receipt_) receipt_->on_restart();
}

void Account::close_receipt(session::SessionEnd& end) {
  if (!receipt_) return;
  auto root = std::exchange(receipt_, nullptr)->close(facts, end.is_complete, signer);
  if (root.has_value())
    facts.receipt_root = std::move(root).value();
  else if (end.code == ExitCode::done)
    end = {.code = root.error().code, .error = root.error(), .is_complete = end.is_complete};
  else
    events_.warn(root.error().message());
}

void Account::say_notices(const rate::RateState& state) {
  const std::uint32_t fresh = state.notices & ~notices_said_;
  notices_said_ |= fresh;
  for (std::uint32_t i = 0; i < law::notices_max; ++i) {
    if ((fresh & (1U << i)) != 0)
      events_.warn(std::string{law::text_of(static_cast<law::Notice>(i))});
  }
}

void Account::tick(Instant now, std::uint64_t bytes, const rate::RateState& state) {
  if (!has_data() || now - interval_at_ < interval_period) return;
  const Bytes step{static_cast<std::int64_t>(bytes - interval_bytes_)};
  events_.emit(api::Interval{.t_ns = (now - first_data_at).count(),
                             .phase = phase_of(phase_at(bytes)),
                             .bytes_total = bytes,
                             .files_done = files_done,
                             .files_total = files_total(),
                             .is_all_known = is_all_known,
                             .eta_seconds = eta_seconds(bytes),
                             .goodput_bps = bps(step / (now - interval_at_)),
                             .rate_bps = bps(state.grant.rate),
                             .bottleneck = std::string{rate::name_of(state.bottleneck)},
                             .tx_queue_bytes = state.path.tx_queue.occupancy.count,
                             .rx_ring_bytes = state.path.rx_ring.occupancy.count,
                             .app_buffer_bytes = state.path.app_buffer.occupancy.count,
                             .srtt_ns = state.path.srtt.count()});
  interval_at_ = now;
  interval_bytes_ = bytes;
}

session::Phase Account::phase_at(std::uint64_t bytes) const {
  const bool is_early =
      !is_sending() && phase == session::Phase::verifying && bytes < bytes_to_arrive();
  return is_early ? session::Phase::transferring : phase;
}

std::optional<double> Account::eta_seconds(std::uint64_t bytes_done) const {
  if (!is_all_known || !has_data()) return std::nullopt;
  const std::uint64_t bytes = bytes_to_arrive();
  const Left left{.bytes = bytes - std::min(bytes_done, bytes),
                  .files = files_total() - files_done};
  return time_left(left, {recent.trend_per_s(), recent_files.trend_per_s()});
}

void Account::close_data(const rate::RateState& state) {
  const rate::RateState before = last_state;
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
    const auto rate_max = parse_rate(settings_.rate_max);  // an Error where there is none
    const bool is_capped = rate_max.has_value() && rate_max.value() <= params.rate_start;
    if (!is_capped) events_.emit(api::StartRate{bps(params.rate_start), peer, facts.interface});
  }
  if (settings_.rate_max.empty())
    path_used_ = {peer, facts.interface, {}};  // a capped run does not show the path's rate
}

void Account::remember_rate() {
  const Nanos span = all_arrived_at - first_data_at;
  // A stream comes as fast as somebody else makes it.
  if (!path_used_ || is_stream || !has_data() || all_arrived_at == Instant{} ||
      span < rate_span_min)
    return;
  const DataPathCounters& counters = last_state.path.counters;
  path_used_->rate = Bytes{static_cast<std::int64_t>(counters.data_bytes_sent_total -
                                                     counters.retransmitted_bytes_total)} /
                     span;
  if (auto kept = RateMemory{settings_.rate_memory}.remember(*path_used_); !kept.has_value())
    events_.say(kept.error().message());
}

void Account::fill_path(const rate::RateState& state) {
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

session::SessionEnd Account::end(session::SessionEnd end) {
  facts.exit_code = static_cast<api::Status>(end.code);
  facts.seconds = has_data() ? std::chrono::duration<double>(ended_at - first_data_at).count() : 0;
  if (end.code == ExitCode::done) remember_rate();
  close_receipt(end);
  tell_unnamed();
  if (end.code != ExitCode::done) events_.emit(to_api(end.error));
  facts.exit_code = static_cast<api::Status>(end.code);
  fill_path(last_state);
  facts.cpu_seconds = UsageMeter::cpu_seconds();
  facts.softirq_seconds = usage.softirq_seconds();
  facts.system_busy_seconds = usage.system_busy_seconds();
  facts.rss_bytes_max = UsageMeter::rss_bytes_max();
  events_.emit(facts);
  forget_session();
  return end;
}

void Account::forget_session() {
  // The port stays, and so does what is known of it.
  facts = {.role = facts.role,
           .io_requested = std::move(facts.io_requested),
           .io_used = std::move(facts.io_used),
           .io_mode = std::move(facts.io_mode),
           .io_reason = std::move(facts.io_reason),
           .interface = std::move(facts.interface),
           .digest = std::move(facts.digest),
           .port_memory_bytes = facts.port_memory_bytes};
  first_data_at = all_arrived_at = ended_at = interval_at_ = {};
  interval_bytes_ = bytes_expected = bytes_offered = bytes_absent_ = bytes_over_ = bytes_held_ = 0;
  files_expected = files_done = 0;
  has_restarted = is_all_known = is_stream = false;
  receipt_.reset();
  holes_.clear();
  last_state = {};
  usage = {};
  recent = recent_files = {};
  recent_drains = {};
}

}  // namespace onehop::transfer
