// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// onehop recv: listens, shows how the other side reaches it, and takes sessions one after the other.
#include <fmt/format.h>

#include <boost/asio/io_context.hpp>

#include <cstdlib>
#include <filesystem>
#include <stop_token>
#include <thread>
#include <unordered_map>

#include "control/plane/path_follower.hpp"
#include "control/plane/listener.hpp"
#include "engine/base/memory.hpp"
#include "engine/base/thread.hpp"
#include "engine/base/time.hpp"
#include "engine/file/sink.hpp"
#include "tools/onehop/commands.hpp"
#include "tools/onehop/conflicts.hpp"
#include "tools/onehop/job.hpp"
#include "tools/onehop/local_address.hpp"
#include "tools/onehop/preflight.hpp"
#include "tools/onehop/privilege.hpp"
#include "tools/onehop/set_up.hpp"
#include "tools/onehop/signals.hpp"
#include "tools/onehop/stranger_log.hpp"
#include "tools/onehop/terminal.hpp"

namespace onehop::tool {

namespace {

file::OnExist on_exist_of(const RecvOptions& options) {
  if (options.on_exist == "resume") return file::OnExist::resume;
  if (options.on_exist == "skip") return file::OnExist::skip;
  if (options.on_exist == "rename") return file::OnExist::rename;
  if (options.on_exist == "overwrite") return file::OnExist::overwrite;
  return file::OnExist::ask;
}

/// make_shown_code makes a code and tells it, with the command for the other machine. `interface`: the only way in; empty: any.
Result<plane::PairingCode> make_shown_code(const RecvOptions& options, Reporter& reporter, const Endpoint& listen, const std::string& interface) {
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

class RecvJob final : public plane::RecvHost {
 public:
  RecvJob(const RecvOptions& options, Reporter& reporter, Job& job, std::string fixed_interface, const Endpoint& listen)
      : options_{options}, reporter_{reporter}, job_{job}, fixed_interface_{std::move(fixed_interface)}, listen_{listen} {}
  ~RecvJob() override { withdraw(); }

  void on_listening(const plane::Endpoint& local) override {
    reporter_.event("start", {{"role", "recv"}, {"listen", local.text()}, {"directory", options_.directory}, {"version", ONEHOP_VERSION}});
    reporter_.say("listening on " + local.text() + ", receiving into " + options_.directory);
  }

  Result<plane::DataOpened> open_data(const plane::PeerLink& link) override {
    ONEHOP_TRY(route, plane::find_route(link.peer.address, options_.common.interface));
    const std::string& interface = fixed_interface_.empty() ? route.link.name : fixed_interface_;
    ONEHOP_TRYV(job_.open_port(interface, link.local.address, listen_.port, offer_->has_fragments));
    job_.set_place(link.peer.address.text(), folder_);
    return job_.opened(route);
  }

  void consider(std::shared_ptr<const plane::OfferInfo> offer, plane::Decide decide) override {
    withdraw();
    offer_ = offer;
    if (!options_.is_hidden_allowed)
      if (auto visible = file::check_visible(offer->manifest); !visible.has_value()) return decide(visible.error());
    // Sockets and rings first, while the privileges are there; then the user's own rights, then the folder.
    if (auto opened = open_and_drop(offer->peer.address); !opened.has_value()) return decide(opened.error());
    auto started = start_thread<std::jthread>("preparing", [this, offer, decide](const std::stop_token& stop) {
      try {
        decide(prepare(offer, stop));
      } catch (const std::bad_alloc& refused) {
        decide(memory_error("prepare to receive", refused));
      }
    });
    if (!started.has_value()) return decide(started.error());
    preparer_ = std::move(started).value();
  }

  Result<plane::EngineRings> start_data(const plane::DataPlan& plan) override {
    preparer_ = {};
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
    withdraw();
    job_.stop();
  }
  Result<void> on_path(const std::string& interface, const PathUpdate& path) override { return job_.follow_path(interface, path); }
  void on_phase(plane::Phase phase) override { job_.on_phase(phase); }
  void on_event(const Event& event) override {
    if (event.kind == EventKind::first_data) job_.on_first_data(event.at);
  }
  void on_file_done(const plane::FileDone& done) override { job_.on_file_done(offer_->manifest.files[done.file], done); }
  void on_skipped(std::uint64_t bytes) override {
    if (offer_->is_changed.empty()) job_.add_bytes_skipped(bytes);  // else they came in this session
  }
  void on_notice(const std::string& text) override { reporter_.say(text); }
  plane::Arrival arrival() const override { return job_.arrival(); }
  Result<plane::PairingKey> renew_code(const Error& why) override {
    reporter_.error(why);
    ONEHOP_TRY(code, make_shown_code(options_, reporter_, listen_, fixed_interface_));
    return plane::stretch(code);
  }
  void on_rejected(const plane::Endpoint& peer, const Error& why) override {
    const auto unsaid = strangers_.note(peer.address, monotonic_now());
    if (!unsaid) return;
    const std::string more = *unsaid == 0 ? "" : fmt::format(" ({} more without a line of their own)", *unsaid);
    reporter_.warn(peer.text() + ": " + why.message() + more);
  }
  void on_session_end(const plane::SessionEnd& end) override {
    withdraw();
    if (end.is_replaced) {
      reporter_.say(end.error.message() + ": its transfer goes on there");
      job_.forget_session();
    } else {
      job_.end(end);
    }
    offer_.reset();
  }
  [[nodiscard]] bool has_offer() const { return offer_ != nullptr; }

 private:
  Result<void> open_and_drop(const plane::IpAddress& peer) {
    ONEHOP_TRY(route, plane::find_route(peer, options_.common.interface));
    const std::string& interface = fixed_interface_.empty() ? route.link.name : fixed_interface_;
    ONEHOP_TRYV(job_.open_port(interface, route.source, listen_.port, offer_->has_fragments));
    ONEHOP_TRY(has_become, become_sudo_user());
    if (has_become) job_.keep_port();
    job_.let_watch();
    return success();
  }

  /// prepare runs on a thread of its own: it may hash what an earlier session left, or ask a person. `stop` ends either.
  Result<plane::Decision> prepare(const std::shared_ptr<const plane::OfferInfo>& shared_offer, const std::stop_token& stop) {
    const plane::OfferInfo& offer = *shared_offer;
    if (offer.is_changed.empty()) answers_.clear();
    ONEHOP_TRY(sink, prepare_sink_or_ask(shared_offer, stop));
    sink_ = std::move(sink);
    plane::Decision decision;
    std::error_code error;
    const std::filesystem::path folder = std::filesystem::canonical(options_.directory, error);
    decision.folder = folder_ = error ? options_.directory : folder.string();
    for (std::uint32_t i = 0; i < offer.manifest.files.size(); ++i) {
      decision.actions.push_back(action_of(i));
      if (decision.actions.back() != plane::FileAction::resume) continue;
      decision.claims.resize(offer.manifest.files.size());
      decision.claims[i] = sink_->claims()[i];
    }
    return decision;
  }

  plane::FileAction action_of(std::uint32_t file) const {
    switch (sink_->existing()[file]) {
      case file::Existing::other: return plane::FileAction::keep;
      case file::Existing::unread: return plane::FileAction::keep_unread;
      case file::Existing::compared: return plane::FileAction::compare;
      case file::Existing::none:
      case file::Existing::expected: break;
    }
    return sink_->claims()[file].empty() ? plane::FileAction::send : plane::FileAction::resume;
  }

  /// An answer holds for the names that were shown with its question, and for no other: one that comes up later is asked about,
  /// or refused.
  Result<std::unique_ptr<file::Sink>> prepare_sink_or_ask(const std::shared_ptr<const plane::OfferInfo>& shared_offer,
                                                          const std::stop_token& stop) {
    const plane::OfferInfo& offer = *shared_offer;
    const bool can_ask = options_.on_exist == "ask" && Terminal::is_there();
    for (;;) {
      std::vector<file::Conflict> conflicts;
      auto sink = prepare_sink(shared_offer, can_ask ? &conflicts : nullptr, stop);
      if (sink.has_value() || conflicts.empty()) return sink;
      const std::string headline =
          fmt::format("{} offers {} files into {}; names that exist there: {}", offer.peer.address.text(), offer.manifest.files.size(),
                      file::display_name(options_.directory), conflicts.size());
      const auto answer = ask_about(Terminal{stop}, headline, offer.manifest, conflicts);
      if (stop.stop_requested()) Terminal::print("\n");
      if (!answer) return sink;
      for (const file::Conflict& conflict : conflicts) answers_[offer.manifest.files[conflict.file].name] = *answer;
    }
  }

  Result<std::unique_ptr<file::Sink>> prepare_sink(const std::shared_ptr<const plane::OfferInfo>& shared_offer,
                                                   std::vector<file::Conflict>* conflicts, const std::stop_token& stop) {
    const plane::OfferInfo& offer = *shared_offer;
    ONEHOP_TRY(kind, file_io_kind(options_.common));
    ONEHOP_TRY(io, file::make_file_io(kind));
    file::SinkOptions sink_options;
    sink_options.folder = options_.directory;
    sink_options.approved = offer.manifest_hash;
    sink_options.on_exist = on_exist_of(options_);
    if (!answers_.empty())
      for (const file::ManifestEntry& entry : offer.manifest.files) {
        const auto answer = answers_.find(entry.name);
        sink_options.on_exist_of.push_back(answer == answers_.end() ? sink_options.on_exist : answer->second);
      }
    sink_options.conflicts = conflicts;
    sink_options.withdrawn = stop;
    sink_options.is_changed = offer.is_changed;
    sink_options.digest_kind = offer.digest;
    return file::Sink::prepare(std::shared_ptr<const file::Manifest>{shared_offer, &offer.manifest}, std::move(sink_options), std::move(io));
  }

  /// withdraw ends what prepares a session that is over, a question to a person too, and lets go of what it holds.
  void withdraw() {
    preparer_ = {};  // asks it to stop, and joins
    sink_.reset();
  }

  const RecvOptions& options_;
  Reporter& reporter_;
  Job& job_;
  const std::string fixed_interface_;
  const Endpoint listen_;
  StrangerLog strangers_;
  std::shared_ptr<const plane::OfferInfo> offer_;
  std::unique_ptr<file::Sink> sink_;
  std::unordered_map<std::string, file::OnExist> answers_;  // by name, of this session; the preparer's
  std::string folder_;  // the preparer's, until it has decided
  std::jthread preparer_;
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

/// code_of takes the code that was given, or makes one. `interface`: the only way in; empty: any.
Result<plane::PairingCode> code_of(const RecvOptions& options, Reporter& reporter, const Endpoint& listen, const std::string& interface) {
  const bool is_given = !options.common.code_file.empty() || std::getenv("ONEHOP_CODE") != nullptr;
  if (is_given) return plane::read_code({.file = options.common.code_file, .is_prompt_allowed = false});
  return make_shown_code(options, reporter, listen, interface);
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
  RecvJob host{options, reporter, job, std::move(interface), listen};
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
