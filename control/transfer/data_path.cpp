// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/transfer/data_path.hpp"

#include <fmt/format.h>
#include <net/if.h>
#include <unistd.h>

#include <algorithm>

#include "engine/base/rate_text.hpp"
#include "engine/base/system/cpu.hpp"
#include "engine/base/system/interface.hpp"
#include "engine/base/system/rights.hpp"
#include "engine/base/time.hpp"
#include "engine/wire/frame.hpp"

namespace onehop::transfer {

namespace {

constexpr Nanos tick_period = 100ms;  // of Progress, and of the receiving end's occupancies
constexpr std::size_t ethernet_bytes = 14;

}  // namespace

DataPath::DataPath(boost::asio::io_context& io, const Settings& settings, const Events& events,
                   api::Role role)
    : settings_{settings},
      events_{events},
      account_{events, settings, role},
      timer_{io},
      links_{std::make_unique<SessionLinks>()} {}

DataPath::~DataPath() { stop(); }

Result<void> DataPath::open_dpdk(const std::optional<onehop::Endpoint>& local) {
  if (settings_.io != "dpdk" || dpdk_) return success();
  ONEHOP_TRY(opened, DpdkHost::open(settings_, local));
  dpdk_ = std::move(opened);
  events_.say(dpdk_->summary());
  return success();
}

Result<void> DataPath::open_port(const std::string& interface, const IpAddress& local,
                                 std::uint16_t port, bool has_fragments, bool is_small) {
  const unsigned ifindex = ::if_nametoindex(interface.c_str());
  if (port_ && opened_for_.address == local && opened_for_.ifindex == ifindex &&
      opened_for_.has_fragments == has_fragments && (is_small || !opened_for_.is_small))
    return success();
  if (has_fragments) {
    ONEHOP_TRYV(check_fragments(settings_));
  }
  const bool has_lost_rights = port_ && kept_rights() == nullptr && !account_.is_sending() &&
                               opened_for_.user != ::geteuid() && settings_.io == "afxdp";
  if (has_lost_rights && opened_for_.address == local)
    return Error{ExitCode::privilege_missing, "use --io afxdp on " + interface,
                 "it was made anew after root's privileges were given up",
                 "Start the receiver again"};
  if (has_lost_rights)
    return Error{ExitCode::privilege_missing, "use --io afxdp on " + local.text(),
                 "it was opened on " + opened_for_.address->text() +
                     " before root's privileges were given up",
                 "Send to " + opened_for_.address->text() +
                     ", or start the receiver with --listen " + local.text()};
  port_.reset();
  const onehop::Endpoint address{local, port};
  for (std::string& warning : opening_warnings(settings_, interface))
    events_.warn(std::move(warning));
  ONEHOP_TRYV(open_dpdk(address));
  ONEHOP_TRY(opened, OpenPort::open({.settings = settings_,
                                     .interface = interface,
                                     .local = address,
                                     .role = account_.facts.role,
                                     .has_fragments = has_fragments,
                                     .is_small = is_small,
                                     .dpdk = dpdk_.get()}));
  port_ = std::move(opened);
  opened_for_ = {local, ifindex, has_fragments, is_small, ::geteuid()};
  tell_port(interface);
  return success();
}

void DataPath::tell_port(const std::string& interface) {
  const PortInfo info = port_->info();
  api::End& facts = account_.facts;
  facts.io_used = info.io;
  facts.io_mode = info.mode;
  facts.io_reason = port_->reason();
  facts.port_memory_bytes = info.memory.count;
  facts.interface = dpdk_ ? dpdk_->label() : interface;
  events_.emit(api::PortOpened{facts.io_requested, facts.io_used, facts.io_mode, facts.io_reason});
}

Result<session::DataOpened> DataPath::opened(const session::RouteInfo& route) const {
  const PortInfo info = port_->info();
  const std::size_t headers = static_cast<std::size_t>(info.wire_overhead.count) - ethernet_bytes;
  const std::size_t mtu = route.link.mtu_bytes;
  std::size_t frame =
      std::min<std::size_t>(mtu > headers ? mtu - headers : 0, info.frame_bytes_max);
  if (settings_.frame_bytes != 0) {
    if (settings_.frame_bytes > frame)
      return Error{ExitCode::usage,
                   fmt::format("use frames of {} bytes (--frame-size)", settings_.frame_bytes),
                   fmt::format("{} carries at most {} with MTU {}", route.link.name, frame, mtu),
                   "Leave --frame-size out"};
    frame = settings_.frame_bytes;
  }
  ONEHOP_TRY(data_port, port_->local_port());
  return session::DataOpened{
      .data_port = data_port,
      .frame_body_max_bytes = static_cast<std::uint32_t>(frame - wire::overhead_bytes),
      .io = account_.facts.io_used,
      .other_io = std::string{port_->other_io()}};
}

void DataPath::stop() noexcept {
  timer_.cancel();
  account_.link_down_since.reset();
  api::End& facts = account_.facts;
  if (engine_) {
    // While the threads are there to ask.
    facts.voluntary_switches_total = UsageMeter::voluntary_switches_total();
    facts.thread_cpu_seconds = UsageMeter::thread_cpu_seconds();
    engine_->thread.join();
    facts.thread_cpu_seconds["engine"] =
        std::chrono::duration<double>(engine_->thread.cpu_time()).count();
    account_.ended_at = monotonic_now();
    account_.usage.close_span();
  }
  note_drops();
  const bool is_used = rate_ != nullptr;
  if (rate_thread_.joinable()) {
    rate_thread_.request_stop();
    rate_thread_.join();
  } else if (rate_) {
    // A transfer may be over before the first turn of the timer.
    rate_->tick(monotonic_now(), process_cpu_time);
    rate_->publish_state(monotonic_now());
  }
  if (rate_) {
    account_.close_data(links_->state.load());
    say_single();
  }
  rate_.reset();
  if (file_thread_) {
    file_thread_->request_stop();
    file_thread_->join();
    facts.file_io += file_thread_->worker().cache_text();
  }
  engine_.reset();
  volumes_.clear();
  file_thread_.reset();
  if (link_.watch && link_.watch->name() != "none")
    facts.link_source = link_.watch->name();  // as it was last read
  link_.watch.reset();
  if (is_used) links_ = std::make_unique<SessionLinks>();
}

void DataPath::on_fact(const session::SessionFact& fact) {
  account_.learn(fact);
  if (std::holds_alternative<session::Phase>(fact)) emit_progress();
}

session::Arrival DataPath::arrival() const {
  const PathReport report = links_->report.load();
  // As the receiver fills it: accepted
  const auto bytes = static_cast<std::uint64_t>(std::max<std::int64_t>(0, report.sent_total.count));
  const std::uint64_t offered = account_.bytes_offered;
  return {.bytes = bytes,
          .is_up_to_us = report.app_buffer.is_backlogged ||
                         (offered > 0 && bytes + account_.bytes_absent() >= offered)};
}

std::optional<Bytes> DataPath::arrived() const {
  if (!engine_ || account_.is_sending()) return std::nullopt;
  const std::uint64_t frames = links_->report.load().counters.frames_received_total;
  return (Bytes{static_cast<std::int64_t>(account_.facts.frame_bytes)} +
          port_->info().wire_overhead) *
         static_cast<std::int64_t>(frames);
}

void DataPath::offer(BytesPerSecond rate) noexcept {
  const BytesPerSecond own = links_->limits.load().rate_max, none{};
  links_->rate_offer.store(own > none && (rate <= none || own < rate) ? own : rate);
}

std::uint64_t DataPath::bytes_arrived() const {
  const QueueTelemetry buffer =
      engine_ ? links_->report.load().app_buffer : account_.last_state.path.app_buffer;
  return static_cast<std::uint64_t>(
      std::max<std::int64_t>(0, (buffer.drained_total + buffer.occupancy).count));
}

void DataPath::tick() {
  const Instant now = monotonic_now();
  if (account_.has_data()) {
    account_.recent.add(now, bytes_arrived());
    account_.recent_files.add(now, account_.files_done);
    account_.usage.open_softirq();
  }
  if (!rate_thread_.joinable() && rate_) rate_->tick(now, process_cpu_time);
  const rate::RateState state = links_->state.load();
  if (account_.has_data()) account_.note_drains(now, state.path);
  emit_progress();
  account_.tell_unnamed();
  account_.tick(now, bytes_arrived(), state);
  account_.say_notices(state);
  say_single();
  timer_.expires_after(tick_period);
  timer_.async_wait([this](const boost::system::error_code& error) {
    // A timer that had run out before cancel() still calls back, without an error.
    if (!error && engine_) tick();
  });
}

// The engine shows it by the size of its frames.
void DataPath::say_single() {
  const Bytes payload = links_->report.load().payload_per_frame;
  if (account_.facts.fragments != api::Fragments::on || !account_.is_sending() ||
      payload.count == 0 || payload > Bytes{wire::datagram_bytes_max / 2})
    return;
  account_.facts.fragments = api::Fragments::given_up;
  events_.warn(
      "--fragment: the path loses 0.1 % of its frames or more; from here on each frame is a "
      "datagram of its own");
}

// --- the link below a session: what is read of it, and what happens when the path gets another one

Result<Limits> DataPath::limits_on(int ifindex) const {
  Limits limits;
  if (auto link = read_interface(ifindex);
      has_kernel_link() && link.has_value() && !is_software(link.value()))
    limits.link_rate = read_link_rate(link.value().name);
  if (!settings_.rate_max.empty()) {
    ONEHOP_TRY(made, parse_rate(settings_.rate_max));
    limits.rate_max = std::move(made);
  }
  return limits;
}

Result<void> DataPath::open_link_sources(const PathUpdate& path) {
  const PortKind* const kind = port_kind(account_.facts.io_used);
  link::LinkOptions link_options{.ifindex = path.ifindex,
                                 .peer = std::nullopt,
                                 .has_qdisc = kind != nullptr && kind->has_own_qdisc,
                                 .model_path = settings_.link_model};
  // The peer's link address stands first in the header template, where the neighbour is known.
  const auto target = std::span{path.header}.first<6>();
  if (path.has_neighbour) std::ranges::copy(target, link_options.peer.emplace().begin());
  auto watch = link::LinkWatch::open(link_options);
  if (!watch.has_value() && !settings_.link_model.empty()) return watch.error();
  if (watch.has_value())
    link_.watch = std::move(watch).value();
  else
    events_.say("no facts of the link: " + watch.error().message());
  account_.facts.link_source = link_.watch ? std::string{link_.watch->name()} : "none";
  if (!link_.drops) link_.drops.emplace();
  if (auto followed = link_.drops->follow(path.ifindex); !followed.has_value())
    events_.say(followed.error().message());
  return success();
}

Result<void> DataPath::follow_path(const std::string& interface, const PathUpdate& path) {
  if (path.ifindex == link_.ifindex || !has_kernel_link()) return success();
  if (auto moved = port_->move_to(interface); !moved.has_value()) {
    if (moved.error().code != ExitCode::privilege_missing) return moved.error();
    return Error{ExitCode::privilege_missing,
                 "use the " + account_.facts.io_used + " port on " + interface,
                 account_.facts.interface +
                     " is gone, and what opens the port anew was given up with root's privileges",
                 "Run the same command again to go on"};
  }
  ONEHOP_TRY(limits, limits_on(path.ifindex));
  links_->limits.store(limits);
  link_.ifindex = path.ifindex;
  account_.facts.interface = interface;
  path_ = path;
  return reopen_link_sources(path);
}

Result<void> DataPath::fall_back() {
  ONEHOP_TRY(port, port_->local_port());
  const onehop::Endpoint local{*opened_for_.address, port};
  const std::string interface = account_.facts.interface;
  ONEHOP_TRYV(port_->fall_back(
      {.settings = settings_, .interface = interface, .local = local, .role = account_.facts.role},
      peer_, engine_ != nullptr));
  tell_port(interface);
  events_.warn("--io auto: " + account_.facts.io_reason + "; goes on over UDP");
  return reopen_link_sources(path_);
}

/// The law goes on with what it has learnt; only who reads the link is another one.
Result<void> DataPath::reopen_link_sources(const PathUpdate& path) {
  if (!rate_thread_.joinable()) return success();
  rate_thread_.request_stop();
  rate_thread_.join();
  // Facts of the old link would be a lie, and the model's socket takes one reader.
  rate_->set_source(nullptr);
  link_.watch.reset();
  ONEHOP_TRYV(open_link_sources(path));
  rate_->set_source(link_.watch ? &*link_.watch : nullptr);
  ONEHOP_TRY(started, rate::start_rate_thread(*rate_));
  rate_thread_ = std::move(started);
  return success();
}

void DataPath::note_drops() noexcept {
  if (!link_.drops) return;
  auto& known = account_.facts.interface_drops;
  known.reset();
  if (auto dropped = link_.drops->since_followed(); dropped.has_value())
    known = std::move(dropped).value();
}

session::SessionEnd DataPath::end(const session::SessionEnd& end) {
  if (trace_)
    if (auto closed = trace_->close(); !closed.has_value()) events_.warn(closed.error().message());
  trace_.reset();
  return account_.end(end);
}

}  // namespace onehop::transfer
