// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/onehop/job.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "engine/base/cpu.hpp"
#include "engine/base/rate_text.hpp"
#include "engine/base/time.hpp"
#include "engine/crypto/aead.hpp"
#include "engine/file/manifest.hpp"
#include "engine/run/placement.hpp"
#include "engine/wire/frame.hpp"
#include "tools/onehop/quantity.hpp"
#include "tools/onehop/set_up.hpp"

namespace onehop::tool {

namespace {

constexpr Nanos view_period = 100ms;      // progress is redrawn at most ten times a second
constexpr Nanos count_period = 100ms;     // of the receiving end's occupancies
constexpr Nanos interval_period = 1s;     // of the interval event
constexpr std::size_t ethernet_bytes = 14;
constexpr Gain start_share{800};          // of the remembered rate: the link may have become slower since
constexpr Nanos rate_span_min = 200ms;    // a shorter transfer says little about the path

/// What an engine counted before it was started once more, in the same session.
void add(PathReport& sum, const PathReport& before) {
  sum.packets_sent_total += before.packets_sent_total;
  sum.packets_lost_total += before.packets_lost_total;
  sum.packets_ce_total += before.packets_ce_total;
  const std::uint64_t syscalls_total = sum.counters.syscalls_total;  // the port's, which goes on
  sum.counters += before.counters;
  sum.counters.syscalls_total = syscalls_total;
}

}  // namespace

Job::Job(boost::asio::io_context& io, const CommonOptions& options, Reporter& reporter, std::string role)
    : io_{io}, options_{options}, reporter_{reporter}, progress_{!options.is_quiet && !options.is_json}, timer_{io},
      links_{std::make_unique<SessionLinks>()} {
  facts_.role = std::move(role);
  facts_.io_requested = options.io;
  facts_.digest = options.digest;
}

Job::~Job() { stop(); }

Result<void> Job::open_dpdk(const std::optional<sockaddr_storage>& local) {
  if (options_.io != "dpdk" || dpdk_) return success();
  ONEHOP_TRY(opened, DpdkHost::open(options_, local));
  dpdk_ = std::move(opened);
  reporter_.say(dpdk_->summary());
  return success();
}

Result<void> Job::open_port(const std::string& interface, const plane::IpAddress& local, std::uint16_t port, bool has_fragments) {
  if (port_ && port_address_ == local && has_fragments_ == has_fragments) return success();
  if (has_fragments) {
    ONEHOP_TRYV(OpenPort::check_fragments(options_));
  }
  if (port_ && is_port_last_ && options_.io == "afxdp")
    return Error{ExitCode::privilege_missing, "use --io afxdp on " + local.text(),
                 "it was opened on " + port_address_->text() + " before root's privileges were given up",
                 "Send to " + port_address_->text() + ", or start the receiver with --listen " + local.text()};
  port_.reset();
  sockaddr_storage address{};
  (void)plane::Endpoint{local, port}.to_sockaddr(address);
  ONEHOP_TRYV(open_dpdk(address));
  ONEHOP_TRY(opened, OpenPort::open(options_, interface, address, facts_.role == "send" ? PortRole::sending : PortRole::receiving,
                                      has_fragments, dpdk_.get()));
  port_ = std::move(opened);
  port_address_ = local;
  has_fragments_ = has_fragments;
  facts_.port = port_->info();
  facts_.io_used = facts_.port.io;
  facts_.io_mode = facts_.port.mode;
  facts_.io_reason = port_->reason();
  facts_.interface = dpdk_ ? dpdk_->label() : interface;
  if (options_.io == "auto" || (options_.io == "afxdp" && facts_.io_reason != "asked for")) reporter_.say(io_text(facts_));
  return success();
}

Result<plane::DataOpened> Job::opened(const plane::RouteInfo& route) const {
  const PortInfo info = port_->info();
  const std::size_t headers = static_cast<std::size_t>(info.wire_overhead.count) - ethernet_bytes;
  const std::size_t mtu = route.link.mtu_bytes;
  std::size_t frame = std::min<std::size_t>(mtu > headers ? mtu - headers : 0, info.frame_bytes_max);
  if (options_.frame_bytes != 0) {
    if (options_.frame_bytes > frame)
      return Error{ExitCode::usage, fmt::format("use frames of {} bytes (--frame-size)", options_.frame_bytes),
                   fmt::format("{} carries at most {} with MTU {}", route.link.name, frame, mtu), "Leave --frame-size out"};
    frame = options_.frame_bytes;
  }
  ONEHOP_TRY(data_port, port_->local_port());
  return plane::DataOpened{data_port, static_cast<std::uint32_t>(frame - wire::overhead_bytes), facts_.io_used};
}

run::GateKeys Job::keys_of(const plane::DataPlan& plan, bool is_sending) const {
  const auto from_sender = crypto::direction_secret(plan.secret, crypto::Direction::from_sender, 0);
  const auto from_receiver = crypto::direction_secret(plan.secret, crypto::Direction::from_receiver, 0);
  return {.send = is_sending ? from_sender : from_receiver,
          .receive = is_sending ? from_receiver : from_sender,
          .key_interval_packets = plan.key_interval,
          .backend = aead_backend(options_)};
}

Result<void> Job::start_control(const plane::DataPlan& plan, bool is_sending) {
  facts_.frame_bytes = plan.has_fragments ? wire::datagram_bytes_max : plan.frame_body_max_bytes + wire::overhead_bytes;
  facts_.fragments = plan.has_fragments ? "on" : "off";
  facts_.aead = crypto::name(crypto::resolve(aead_backend(options_)));
  facts_.digest = crypto::digest_name(plan.digest);  // the sender's choice, at both ends
  ONEHOP_TRY(limits, limits_on(plan.path.ifindex));
  links_->limits.store(limits);
  ifindex_ = plan.path.ifindex;
  facts_.repair = plan.is_repair_lazy ? "lazy" : "eager";
  law::LawOptions law_options = tool::law_options(options_);
  law_options.is_repair_lazy = plan.is_repair_lazy;
  if (is_sending) set_start(plan, law_options.params.safe_range);
  ONEHOP_TRY(made, law::make_law(law_options));
  law_ = std::move(made);
  facts_.law = law_->name();
  if (is_sending && has_kernel_link()) {
    ONEHOP_TRYV(open_link_sources(plan.path));
  }
  if (!options_.trace_file.empty() && !trace_) {
    const std::size_t payload = wire::frame_payload_bytes(plan.frame_body_max_bytes, block_bytes);
    const std::size_t wire = payload + wire::overhead_bytes + static_cast<std::size_t>(port_->info().wire_overhead.count);
    const std::string config = fmt::format("{} law {}{} target {} bounds {} io {} frame {} payload {} wire {} link {}", facts_.role, options_.law,
                                           options_.has_qcut ? "+qcut" : "", options_.target, options_.bounds,
                                           facts_.io_used, facts_.frame_bytes, payload, wire, facts_.link_source);
    ONEHOP_TRY(trace, rate::TraceWriter::open(options_.trace_file, {command_line(), ONEHOP_VERSION, config}));
    trace_ = std::move(trace);
  }
  rate_ = std::make_unique<rate::RateLoop>(*law_, nullptr, links_->report, links_->limits,
                                           links_->grant, links_->state, trace_ ? &*trace_ : nullptr);
  rate_->set_row_cell(links_->row);
  facts_.peer = plan.peer.address.text();
  rate_->set_sources(qdisc_ ? &*qdisc_ : nullptr, link_ ? &*link_ : nullptr);
  if (is_sending) {
    rate_thread_ = std::make_unique<rate::RateThread>(*rate_);
    ONEHOP_TRYV(rate_thread_->start());
    rate_thread_->wake();
  }
  return success();
}

Result<void> Job::start_engine(std::unique_ptr<Engine> engine) {
  ONEHOP_TRY(core, run::choose_core(options_.core));
  engine_ = std::move(engine);
  ONEHOP_TRYV(engine_->start({.poll = options_.poll == "busy" ? run::Poll::busy : run::Poll::adaptive, .core = core}));
  tick();
  return success();
}

void Job::stop() noexcept {
  timer_.cancel();
  if (engine_) {
    facts_.voluntary_switches_total = UsageMeter::voluntary_switches_total();  // while the threads are there to ask
    facts_.thread_cpu_seconds = UsageMeter::thread_cpu_seconds();
    engine_->join();
    facts_.thread_cpu_seconds["engine"] = std::chrono::duration<double>(engine_->cpu_time()).count();
    ended_at_ = monotonic_now();
    usage_.close_span();
  }
  note_drops();
  if (rate_thread_) rate_thread_->stop();
  else if (rate_) {
    tick_rate(monotonic_now());  // a transfer may be over before the first turn of the timer
    rate_->publish_state(monotonic_now());
  }
  if (rate_) {
    const RateState before = last_state_;
    last_state_ = links_->state.load();
    say_notices(last_state_);
    say_single();
    add(last_state_.path, before.path);
  }
  rate_thread_.reset();
  rate_.reset();
  if (file_thread_) {
    file_thread_->request_stop();
    file_thread_->join();
  }
  engine_.reset();
  file_thread_.reset();
  if (link_ && link_->name() != "none") facts_.link_source = link_->name();  // as it was last read
  qdisc_.reset();
  link_.reset();
  links_ = std::make_unique<SessionLinks>();
  progress_.finish();
}

void Job::set_start(const plane::DataPlan& plan, law::SafeRangeParams& params) {
  path_used_.reset();
  if (!law::has_start_rate(options_.law) || params.is_start_known) return;
  const std::string peer = plan.peer.address.text();
  auto remembered = RateMemory{rate_memory_file()}.recall(peer, facts_.interface);
  if (!remembered.has_value()) {
    reporter_.say(remembered.error().message() + "; starting without");
  } else if (remembered.value()) {
    params.rate_start = std::clamp(*remembered.value() * start_share, params.rate_min, params.rate_max);
    params.is_start_known = true;
    reporter_.say(fmt::format("starting at {}, from the last run to {} over {}", format_rate(params.rate_start), peer,
                              facts_.interface));
  }
  if (options_.rate_max.empty()) path_used_ = {peer, facts_.interface, {}};  // a capped run does not show the path's rate
}

void Job::remember_rate() {
  const Nanos span = all_arrived_at_ - first_data_at_;
  if (!path_used_ || first_data_at_ == Instant{} || all_arrived_at_ == Instant{} || span < rate_span_min) return;
  const DataPathCounters& counters = last_state_.path.counters;
  path_used_->rate = Bytes{static_cast<std::int64_t>(counters.data_bytes_sent_total - counters.retransmitted_bytes_total)} / span;
  if (auto kept = RateMemory{rate_memory_file()}.remember(*path_used_); !kept.has_value()) reporter_.say(kept.error().message());
}

void Job::close_trace() {
  if (trace_) {
    if (auto closed = trace_->close(); !closed.has_value()) reporter_.warn(closed.error().message());
  }
  trace_.reset();
}

void Job::forget_session() {
  first_data_at_ = all_arrived_at_ = ended_at_ = interval_at_ = {};
  interval_bytes_ = bytes_expected_ = facts_.bytes_skipped_total = facts_.bytes_total = facts_.files_total = facts_.files_kept_total = 0;
  facts_.peer = facts_.directory = facts_.path = {};
  last_state_ = {};
  usage_ = {};
  recent_ = {};
}

void Job::on_phase(plane::Phase phase) {
  phase_ = phase;
  if (phase == plane::Phase::done) progress_.finish();
}

void Job::on_first_data(Instant at) {
  if (first_data_at_ != Instant{}) return;  // a session whose source changed starts once more
  first_data_at_ = interval_at_ = at;
  usage_.open_span();
}

plane::Arrival Job::arrival() const {
  const PathReport report = links_->report.load();
  const auto bytes = static_cast<std::uint64_t>(std::max<std::int64_t>(0, report.sent_total.count));  // as the receiver fills it: accepted
  return {.bytes = bytes, .is_up_to_us = report.app_buffer.is_backlogged || (bytes_expected_ > 0 && bytes + facts_.bytes_skipped_total >= bytes_expected_)};
}

std::uint64_t Job::bytes_arrived() const {
  const QueueTelemetry buffer = links_->report.load().app_buffer;
  return static_cast<std::uint64_t>(std::max<std::int64_t>(0, (buffer.drained_total + buffer.occupancy).count));
}

void Job::tick_rate(Instant now) {
  if (rate_->has_trace()) rate_->set_cpu_total(process_cpu_time());
  rate_->tick(now);
}

void Job::tick() {
  const Instant now = monotonic_now();
  const bool has_data = this->has_data();
  if (has_data) recent_.add(now, bytes_arrived());
  if (!rate_thread_ && rate_) tick_rate(now);
  if (now - viewed_at_ >= view_period) {
    viewed_at_ = now;
    progress_.update(now, {std::string{plane::name_of(phase_)}, bytes_arrived(), bytes_expected_, has_data ? now - first_data_at_ : 0ns});
  }
  if (has_data && now - interval_at_ >= interval_period) emit_interval(now);
  say_notices(links_->state.load());
  say_single();
  timer_.expires_after(rate_thread_ ? view_period : count_period);
  timer_.async_wait([this](const boost::system::error_code& error) {
    // A timer that had run out before cancel() still calls back, without an error.
    if (!error && engine_) tick();
  });
}

// A law cannot print: it raises a bit, and each bit's sentence is said once, to this process's user.
void Job::say_notices(const RateState& state) {
  const std::uint32_t fresh = state.notices & ~notices_said_;
  if (fresh == 0) return;
  notices_said_ |= fresh;
  progress_.finish();
  for (std::uint32_t i = 0; i < law::notices_max; ++i) {
    if ((fresh & (1U << i)) != 0) reporter_.warn(std::string{law::text_of(static_cast<law::Notice>(i))});
  }
}

// The engine shows it by the size of its frames.
void Job::say_single() {
  const Bytes payload = links_->report.load().payload_per_frame;
  if (facts_.fragments != "on" || facts_.role != "send" || payload.count == 0 || payload > Bytes{wire::datagram_bytes_max / 2}) return;
  facts_.fragments = "given_up";
  progress_.finish();
  reporter_.warn("--fragment: the path loses 0.1 % of its frames or more; from here on each frame is a datagram of its own");
}

void Job::emit_interval(Instant now) {
  const std::uint64_t bytes = bytes_arrived();
  const RateState state = links_->state.load();
  const Nanos span = now - interval_at_;
  reporter_.event("interval", {{"t_ns", (now - first_data_at_).count()},
                               {"phase", plane::name_of(phase_)},
                               {"bytes_total", bytes},
                               {"goodput_bps", bps(Bytes{static_cast<std::int64_t>(bytes - interval_bytes_)} / span)},
                               {"rate_bps", bps(state.rate)},
                               {"bottleneck", rate::name_of(state.bottleneck)},
                               {"tx_queue_bytes", state.path.tx_queue.occupancy.count},
                               {"rx_ring_bytes", state.path.rx_ring.occupancy.count},
                               {"app_buffer_bytes", state.path.app_buffer.occupancy.count},
                               {"srtt_ns", state.path.srtt.count()}});
  interval_at_ = now;
  interval_bytes_ = bytes;
}

void Job::end(const plane::SessionEnd& end) {
  progress_.finish();
  close_trace();
  if (end.code != ExitCode::done) reporter_.error(end.error);
  else remember_rate();
  facts_.is_hash_ok = end.code == ExitCode::done;
  if (first_data_at_ != Instant{}) facts_.seconds = std::chrono::duration<double>(ended_at_ - first_data_at_).count();
  reporter_.end(facts_, last_state_, usage_, end.code);
  if (publisher_) {
    const auto rate = facts_.seconds > 0 ? static_cast<double>(facts_.bytes_total) / facts_.seconds : 0;
    publisher_->tell(watch::line_of(watch::Ended{.exit_code = static_cast<int>(end.code), .bytes_total = facts_.bytes_total, .seconds = facts_.seconds,
                                                 .goodput = {static_cast<std::int64_t>(rate)}}));
  }
  forget_session();
}

}  // namespace onehop::tool
