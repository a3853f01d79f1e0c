// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// onehop recv: listens, shows how the other side reaches it, and takes sessions one after the other.
#include <fmt/format.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>

#include <cstdlib>
#include <iostream>
#include <stop_token>
#include <thread>

#include "control/plane/path_follower.hpp"
#include "control/plane/listener.hpp"
#include "engine/file/sink.hpp"
#include "tools/onehop/commands.hpp"
#include "tools/onehop/job.hpp"
#include "tools/onehop/local_address.hpp"
#include "tools/onehop/preflight.hpp"
#include "tools/onehop/privilege.hpp"
#include "tools/onehop/set_up.hpp"
#include "tools/onehop/signals.hpp"

namespace onehop::tool {

namespace {

file::OnExist on_exist_of(const RecvOptions& options) {
  if (options.on_exist == "resume") return file::OnExist::resume;
  if (options.on_exist == "skip") return file::OnExist::skip;
  if (options.on_exist == "rename") return file::OnExist::rename;
  if (options.on_exist == "overwrite") return file::OnExist::overwrite;
  return file::OnExist::ask;
}

class RecvJob final : public plane::RecvHost {
 public:
  RecvJob(const RecvOptions& options, Reporter& reporter, Job& job, std::string fixed_interface, std::uint16_t listen_port)
      : options_{options}, reporter_{reporter}, job_{job}, fixed_interface_{std::move(fixed_interface)},
        listen_port_{listen_port} {}
  ~RecvJob() override { withdraw(); }

  void on_listening(const plane::Endpoint& local) override {
    reporter_.event("start", {{"role", "recv"}, {"listen", local.text()}, {"directory", options_.directory}, {"version", ONEHOP_VERSION}});
    reporter_.say("listening on " + local.text() + ", receiving into " + options_.directory);
  }

  Result<plane::DataOpened> open_data(const plane::PeerLink& link) override {
    ONEHOP_TRY(route, plane::find_route(link.peer.address, options_.common.interface));
    const std::string& interface = fixed_interface_.empty() ? route.link.name : fixed_interface_;
    ONEHOP_TRYV(job_.open_port(interface, link.local.address, listen_port_, offer_->has_fragments));
    return job_.opened(route);
  }

  void consider(std::shared_ptr<const plane::OfferInfo> offer, plane::Decide decide) override {
    offer_ = offer;
    withdraw();
    withdrawal_ = {};
    // Sockets and rings first, while the privileges are there; then the user's own rights, then the folder.
    if (auto opened = open_and_drop(offer->peer.address); !opened.has_value()) return decide(opened.error());
    preparer_ = std::thread{[this, offer, decide = std::move(decide)] { decide(prepare(*offer)); }};
  }

  Result<plane::EngineRings> start_data(const plane::DataPlan& plan) override {
    join_preparer();
    std::vector<std::uint64_t> sizes;
    std::uint64_t expected = 0;
    for (std::size_t i = 0; i < offer_->manifest.files.size(); ++i) {
      sizes.push_back(offer_->manifest.files[i].size);
      if (sink_->is_wanted()[i]) expected += sizes.back();
    }
    job_.set_bytes_expected(expected);
    return job_.start_receiving(plan, std::move(sink_), std::move(sizes));
  }

  void stop_data() noexcept override {
    join_preparer();
    job_.stop();
    sink_.reset();
  }
  void on_phase(plane::Phase phase) override { job_.on_phase(phase); }
  void on_event(const Event& event) override {
    if (event.kind == EventKind::first_data) job_.on_first_data(event.at);
  }
  void on_file_done(std::uint32_t file, const Digest& root) override {
    const file::ManifestEntry& entry = offer_->manifest.files[file];
    bytes_done_ += entry.size;
    ++files_done_;
    job_.on_file_done(file::display_name(entry.name), entry.size, root);
  }
  void on_skipped(std::uint64_t bytes) override {
    if (offer_->is_changed.empty()) job_.add_bytes_skipped(bytes);  // else they came in this session
  }
  void on_notice(const std::string& text) override { reporter_.say(text); }
  void on_rejected(const plane::Endpoint& peer, const Error& why) override {
    reporter_.warn(peer.text() + ": " + why.message());
  }
  void on_session_end(const plane::SessionEnd& end) override {
    job_.end(end, bytes_done_, files_done_);
    bytes_done_ = files_done_ = 0;
    withdraw();
    offer_.reset();
  }
  [[nodiscard]] bool has_offer() const { return offer_ != nullptr; }

 private:
  Result<void> open_and_drop(const plane::IpAddress& peer) {
    ONEHOP_TRY(route, plane::find_route(peer, options_.common.interface));
    const std::string& interface = fixed_interface_.empty() ? route.link.name : fixed_interface_;
    ONEHOP_TRYV(job_.open_port(interface, route.source, listen_port_, offer_->has_fragments));
    ONEHOP_TRY(has_become, become_sudo_user());
    if (has_become) job_.keep_port();
    job_.let_watch();
    return success();
  }

  /// prepare runs on a thread of its own: it may hash what an earlier session left, or ask a person.
  Result<plane::Decision> prepare(const plane::OfferInfo& offer) {
    const bool is_again = !offer.is_changed.empty();
    if (!is_again) on_exist_ = on_exist_of(options_);
    auto sink = prepare_sink(offer, on_exist_);
    if (!sink.has_value() && on_exist_ == file::OnExist::ask && sink.error().errno_value == EEXIST) {
      ONEHOP_TRY(answer, ask(sink.error()));
      on_exist_ = answer;  // for the whole session
      sink = prepare_sink(offer, on_exist_);
    }
    ONEHOP_TRYV(sink);
    sink_ = std::move(sink).value();
    plane::Decision decision;
    for (std::uint32_t i = 0; i < offer.manifest.files.size(); ++i) {
      const auto& claims = sink_->claims()[i];
      const bool is_wanted = sink_->is_wanted()[i];
      decision.actions.push_back(!is_wanted ? plane::FileAction::skip
                                            : claims.empty() ? plane::FileAction::send : plane::FileAction::resume);
    }
    decision.claims = sink_->claims();
    return decision;
  }

  Result<std::unique_ptr<file::Sink>> prepare_sink(const plane::OfferInfo& offer, file::OnExist on_exist) {
    ONEHOP_TRY(kind, file_io_kind(options_.common));
    ONEHOP_TRY(io, file::make_file_io(kind));
    file::SinkOptions sink_options;
    sink_options.folder = options_.directory;
    sink_options.approved = offer.manifest_hash;
    sink_options.on_exist = on_exist;
    sink_options.is_changed = offer.is_changed;
    sink_options.digest_kind = offer.digest;
    sink_options.withdrawn = withdrawal_.get_token();
    return file::Sink::prepare(offer.manifest, std::move(sink_options), std::move(io));
  }

  /// ask is for a person at a terminal; elsewhere the answer is the error itself.
  Result<file::OnExist> ask(const Error& why) {
    if (::isatty(STDIN_FILENO) == 0 || ::isatty(STDERR_FILENO) == 0) return why;
    fmt::print(stderr, "{}: {}\n[r]esume, [s]kip, re[n]ame, [o]verwrite, anything else refuses: ", why.attempt, why.cause);
    std::string answer;
    std::getline(std::cin, answer);
    if (answer == "r") return file::OnExist::resume;
    if (answer == "s") return file::OnExist::skip;
    if (answer == "n") return file::OnExist::rename;
    if (answer == "o") return file::OnExist::overwrite;
    return why;
  }

  void join_preparer() {
    if (preparer_.joinable()) preparer_.join();
  }

  /// withdraw ends what a session that is over has left: a preparation that still reads, a Sink that holds locks on parts.
  void withdraw() {
    withdrawal_.request_stop();
    join_preparer();
    sink_.reset();
  }

  const RecvOptions& options_;
  Reporter& reporter_;
  Job& job_;
  const std::string fixed_interface_;
  const std::uint16_t listen_port_;
  std::shared_ptr<const plane::OfferInfo> offer_;
  std::unique_ptr<file::Sink> sink_;
  file::OnExist on_exist_ = file::OnExist::ask;  // the preparer's
  std::stop_source withdrawal_;  // of the offer that is considered
  std::thread preparer_;
  std::uint64_t bytes_done_ = 0, files_done_ = 0;
};

/// A named AF_XDP or DPDK needs its interface now, while the privileges are there and an error can still be seen.
Result<std::string> open_port_early(const RecvOptions& options, const Endpoint& listen, Job& job) {
  if (options.common.io != "afxdp" && options.common.io != "dpdk") return std::string{};
  std::string wanted = options.common.interface;
  if (options.common.io == "dpdk") {
    ONEHOP_TRY(interface, kernel_interface_of(options.common));
    if (interface.empty()) {  // a link without a kernel has no address of its own
      ONEHOP_TRYV(job.open_dpdk({}));
      return std::string{};
    }
    wanted = std::move(interface);
  }
  std::vector<LocalAddress> candidates;
  for (const LocalAddress& local : local_addresses()) {
    if (!wanted.empty() && local.interface != wanted) continue;
    if (!listens_on_all(listen) && plane::IpAddress::parse(listen.host) != local.address) continue;
    if (listens_on_all(listen) && local.address.is_v6) continue;  // one address is bound now; IPv4 unless asked otherwise
    candidates.push_back(local);
  }
  if (candidates.size() != 1)
    return Error{ExitCode::usage, "choose the interface for --io " + options.common.io,
                 candidates.empty() ? "no interface that is up has a matching address" : "several interfaces have an address",
                 "Name it with --iface IF or its address with --listen ADDR"};
  ONEHOP_TRYV(job.open_port(candidates.front().interface, candidates.front().address, listen.port, false));
  return candidates.front().interface;
}

/// code_of also tells a code that it made, with the command for the other machine. `interface`: the only way in; empty: any.
Result<plane::PairingCode> code_of(const RecvOptions& options, Reporter& reporter, const Endpoint& listen, const std::string& interface) {
  const bool is_given = !options.common.code_file.empty() || std::getenv("ONEHOP_CODE") != nullptr;
  if (is_given) return plane::read_code({.file = options.common.code_file, .is_prompt_allowed = false});
  ONEHOP_TRY(code, plane::make_code());
  const auto ways = reachable(local_addresses(), listen, interface.empty() ? options.common.interface : interface);
  const std::string where = ways.empty() ? "THIS-HOST" : to_text(ways.front().address, listen.port);
  // Shown even when quiet: without it nobody can connect.
  fmt::print(stderr, "On the other machine:\n\n  ONEHOP_CODE={} onehop send FILE --to {}\n\n", code.text(), where);
  if (where.find("%IF") != std::string::npos) fmt::print(stderr, "IF: the other machine's interface, as `ip link` there has it\n");
  if (ways.size() > 1) fmt::print(stderr, "That leads to {}; another way in:\n", ways.front().interface);
  for (std::size_t i = 1; i < ways.size(); ++i)
    fmt::print(stderr, "  --to {:<24} {}\n", to_text(ways[i].address, listen.port), ways[i].interface);
  reporter.event("code", {{"code", code.text()}});
  return code;
}

/// check_machine sees now what each sender would find out.
Result<void> check_machine(const RecvOptions& options, const Endpoint& listen) {
  ONEHOP_TRYV(check_folder(options.directory));
  ONEHOP_TRYV(check_trace_file(options.common.trace_file));
  ONEHOP_TRYV(check_interface(options.common.interface));
  return options.common.io == "dpdk" ? success() : check_udp_port(listen);
}

Result<ExitCode> run(const RecvOptions& options, Reporter& reporter) {
  ONEHOP_TRY(listen, parse_endpoint(options.listen));
  ONEHOP_TRYV(check_options(options.common));
  ONEHOP_TRYV(check_machine(options, listen));
  boost::asio::io_context io;
  Job job{io, options.common, reporter, "recv"};
  ONEHOP_TRY(interface, open_port_early(options, listen, job));
  ONEHOP_TRY(code, code_of(options, reporter, listen, interface));
  ONEHOP_TRY(key, plane::stretch(code));

  plane::RecvOptions server_options;
  server_options.address = listen.host;
  server_options.port = listen.port;
  server_options.is_once = options.is_once;
  server_options.is_lazy_allowed = options.common.repair != "eager";
  server_options.dscp = dscp_of(options.common);
  server_options.interface = options.common.interface;
  RecvJob host{options, reporter, job, std::move(interface), listen.port};
  plane::RecvServer server{io, server_options, key, host};
  Interrupts interrupts{io, [&] {
    if (job.has_data()) reporter.say("interrupted: what arrived is kept");
    else if (host.has_offer()) reporter.say("interrupted before anything arrived");
    else reporter.say("interrupted: nothing was under way");
    server.interrupt();
  }};
  if (!becomes_sudo_user()) job.let_watch();  // else at the first offer, as that user
  plane::SessionEnd end;
  ONEHOP_TRYV(server.start([&](const plane::SessionEnd& ended) {
    end = ended;
    interrupts.stop();
    job.end_watch();
  }));
  io.run();
  return end.code;
}

}  // namespace

ExitCode recv_command(const RecvOptions& options) {
  Reporter reporter{options.common, "recv"};
  auto end = run(options, reporter);
  if (end.has_value()) return end.value();
  reporter.error(end.error());
  return end.error().code;
}

}  // namespace onehop::tool
