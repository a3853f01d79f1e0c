// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// onehop send: names files, finds the way to the peer, opens the port, and runs one session.
#include <fmt/format.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

#include "control/link/emulated_source.hpp"
#include "control/plane/path_follower.hpp"
#include "control/plane/send_session.hpp"
#include "engine/file/source.hpp"
#include "engine/file/source_files.hpp"
#include "tools/onehop/commands.hpp"
#include "tools/onehop/job.hpp"
#include "tools/onehop/noack_keeper.hpp"
#include "tools/onehop/noack_record.hpp"
#include "tools/onehop/preflight.hpp"
#include "tools/onehop/privilege.hpp"
#include "tools/onehop/sender_token.hpp"
#include "tools/onehop/set_up.hpp"
#include "tools/onehop/signals.hpp"

namespace onehop::tool {

namespace {

class SendJob final : public plane::SendHost {
 public:
  SendJob(const SendOptions& options, Reporter& reporter, file::SourceFiles files, Job& job, std::optional<NoAckKeeper>& noack)
      : options_{options}, reporter_{reporter}, paths_{options.paths}, manifest_{files.manifest},
        files_{std::move(files)}, job_{job}, noack_{noack} {
    job_.set_bytes_expected(file::total_bytes(manifest_));
  }

  const file::Manifest& manifest() override { return manifest_; }
  Result<void> offer_again(const std::vector<bool>& is_settled) override {
    std::vector<std::string> paths;
    for (std::size_t i = 0; i < paths_.size(); ++i)
      if (!is_settled[i]) paths.push_back(paths_[i]);
    ONEHOP_TRY(files, file::open_source_files(paths));
    paths_ = std::move(paths);
    manifest_ = files.manifest;
    files_ = std::move(files);
    source_options_ = {};
    has_restarted_ = true;
    job_.set_bytes_expected(file::total_bytes(manifest_));
    return success();
  }

  Result<plane::DataOpened> open_data(const plane::PeerLink& link) override {
    peer_ = link.peer.address.text();
    ONEHOP_TRY(route, plane::find_route(link.peer.address, options_.common.interface));
    ONEHOP_TRYV(job_.open_port(route.link.name, link.local.address, 0, options_.has_fragments));
    return job_.opened(route);
  }

  void on_accepted(const plane::Accepted& accepted) override {
    source_options_.claims = accepted.claims;
    source_options_.is_wanted.assign(manifest_.files.size(), true);
    source_options_.is_compared.assign(manifest_.files.size(), false);
    for (std::size_t i = 0; i < accepted.actions.size(); ++i) {
      source_options_.is_wanted[i] = plane::has_digests(accepted.actions[i]);
      source_options_.is_compared[i] = accepted.actions[i] == plane::FileAction::compare;
    }
    job_.set_place(peer_, accepted.folder);
  }

  Result<plane::EngineRings> start_data(const plane::DataPlan& plan) override {
    ONEHOP_TRY(kind, file_io_kind(options_.common));
    ONEHOP_TRY(io, file::make_file_io(kind));
    source_options_.digest_kind = plan.digest;
    ONEHOP_TRYV(set_noack(plan));
    return job_.start_sending(plan, std::make_unique<file::Source>(std::move(files_), std::move(source_options_), std::move(io)));
  }

  void stop_data() noexcept override {
    job_.stop();
    if (!noack_) return;
    if (const auto undone = noack_->clear(); !undone) reporter_.warn(undone.error().message());
  }
  Result<void> on_path(const std::string& interface, const PathUpdate& path) override { return job_.follow_path(interface, path); }
  void on_phase(plane::Phase phase) override { job_.on_phase(phase); }
  void on_event(const Event& event) override {
    if (event.kind == EventKind::first_data) job_.on_first_data(event.at);
    if (event.kind == EventKind::all_arrived) job_.on_all_arrived(event.at);
    if (event.kind == EventKind::file_message && event.block.kind == BlockKind::skipped && !has_restarted_) job_.add_bytes_skipped(event.block.length);
  }
  void on_file_done(const plane::FileDone& done) override { job_.on_file_done(manifest_.files[done.file], done); }
  void on_notice(const std::string& text) override { reporter_.say(text); }

 private:
  Result<void> set_noack(const plane::DataPlan& plan) {
    if (!noack_) return success();
    // Not without the map: on its TID the frames after those of an earlier run may be dropped (noack_keeper.hpp).
    if (!plan.is_repair_lazy)
      return Error{ExitCode::refused_by_peer, "send without the MAC's acknowledgements (--mac-noack)", "the peer keeps to eager repair",
                   "Leave --mac-noack out, or start the receiver without --repair eager"};
    if (plan.path.ifindex != noack_->ifindex())
      return Error{ExitCode::io_unavailable, "set the no-ack map (--mac-noack)", "the way to the peer leads through another interface than when this run began",
                   "Run the same command again"};
    return noack_->set();
  }

  const SendOptions& options_;
  Reporter& reporter_;
  std::vector<std::string> paths_;  // by manifest index
  file::Manifest manifest_;
  file::SourceFiles files_;
  file::SourceOptions source_options_;
  std::string peer_;
  bool has_restarted_ = false;  // blocks that are skipped since then came in this session
  Job& job_;
  std::optional<NoAckKeeper>& noack_;
};

/// The way to the peer, of whose addresses there may be several: for what has to be opened while the privileges are there.
Result<plane::RouteInfo> find_route_early(const SendOptions& options, const Endpoint& to) {
  boost::asio::io_context io;
  boost::asio::ip::tcp::resolver resolver{io};
  boost::system::error_code error;
  const auto found = resolver.resolve(to.host, std::to_string(to.port), error);
  if (error || found.empty())
    return Error{ExitCode::peer_unreachable, "find " + to.host, error.message(), "Give a numeric address"};
  const auto address = plane::Endpoint::from_sockaddr(found.begin()->endpoint().data(), static_cast<socklen_t>(found.begin()->endpoint().size()));
  return plane::find_route(address->address, options.common.interface);
}

/// The keeper is made before the code is read (noack_keeper.hpp).
Result<void> start_noack_keeper(const SendOptions& options, const plane::RouteInfo& route, Reporter& reporter, std::optional<NoAckKeeper>& keeper) {
  if (!options.has_mac_noack) return success();
  const NoAckKeeper::Config config{.ifindex = route.link.ifindex, .interface = route.link.name,
                                   .tid = *options.common.tid, .record_folder = noack_record_folder};
  ONEHOP_TRY(made, NoAckKeeper::start(config));
  reporter.warn(noack_warning(config));
  keeper.emplace(std::move(made));
  return success();
}

Result<void> check_noack(const SendOptions& options) {
  if (!options.has_mac_noack || options.common.repair == "lazy") return success();
  return Error{ExitCode::usage, "use --mac-noack", "without the MAC's acknowledgements each loss on the air is a lost frame, which eager repair would take for congestion",
               "Add --repair lazy"};
}

Result<void> check_fragments(const SendOptions& options) {
  if (!options.has_fragments || options.common.frame_bytes == 0) return success();
  return Error{ExitCode::usage, "use --fragment with --frame-size", "a datagram in fragments is as large as UDP allows", "Leave one of them out"};
}

/// check_files sees now what would end the transfer later: a file that cannot be sent, a trace that cannot be written.
Result<void> check_files(const SendOptions& options) {
  ONEHOP_TRYV(file::open_source_files(options.paths));
  return check_trace_file(options.common.trace_file);
}

Result<plane::SessionEnd> run(const SendOptions& options, Reporter& reporter) {
  ONEHOP_TRY(to, parse_endpoint(options.to));
  if (to.host.empty()) return Error{ExitCode::usage, "read --to", "it names no host", "Write --to HOST or --to HOST:PORT"};
  ONEHOP_TRYV(check_options(options.common));
  ONEHOP_TRYV(check_fragments(options));
  ONEHOP_TRYV(check_noack(options));
  // Before anybody is asked for a code. What sudo started looks at files as its user, later.
  if (!becomes_sudo_user()) { ONEHOP_TRYV(check_files(options)); }
  ONEHOP_TRY(route, find_route_early(options, to));
  std::optional<NoAckKeeper> noack;
  ONEHOP_TRYV(start_noack_keeper(options, route, reporter, noack));
  ONEHOP_TRY(code, plane::read_code({.file = options.common.code_file}));
  ONEHOP_TRY(key, plane::stretch(code));

  boost::asio::io_context io;
  Job job{io, options.common, reporter, "send"};
  ONEHOP_TRYV(job.open_port(route.link.name, route.source, 0, options.has_fragments));
  ONEHOP_TRY(has_become, become_sudo_user());
  if (has_become) { ONEHOP_TRYV(check_files(options)); }
  job.let_watch();
  if (!options.common.link_model.empty()) {
    // Now, and not when the peer has accepted.
    ONEHOP_TRYV(link::EmulatedSource::open(options.common.link_model));
  }
  ONEHOP_TRY(files, file::open_source_files(options.paths));

  plane::SendOptions session_options;
  session_options.host = to.host;
  session_options.port = to.port;
  session_options.limits.connect = Nanos{static_cast<Nanos::rep>(options.wait_seconds * 1e9)};
  ONEHOP_TRY(made, digest_kind(options.common));
  session_options.digest = std::move(made);
  session_options.key_interval = options.common.key_interval_packets;
  session_options.is_repair_lazy = options.common.repair == "lazy";
  session_options.has_fragments = options.has_fragments;
  session_options.dscp = dscp_of(options.common);
  session_options.interface = options.common.interface;
  if (auto token = sender_token(key, file::manifest_hash(files.manifest)); token.has_value())
    session_options.token = token.value();
  else
    reporter.say(token.error().message() + ": should the link die, the receiver takes the next run for another sender's");
  SendJob host{options, reporter, std::move(files), job, noack};
  plane::SendSession session{io, session_options, key, host};
  Interrupts interrupts{io, [&] {
    if (job.has_data())
      reporter.say("interrupted: the peer keeps what arrived");
    else
      reporter.say("interrupted before anything was sent");
    session.interrupt();
  }};
  plane::SessionEnd end;
  if (options.has_fragments)
    reporter.warn("--fragment is an experiment: datagrams of 64 KB leave in IP fragments. One lost frame is a lost datagram, and what is left of "
                  "40 of them fills the receiver's reassembly memory for 30 s, for every program on it");
  reporter.event("start", {{"role", "send"}, {"to", options.to}, {"files", host.manifest().files.size()},
                           {"bytes_total", file::total_bytes(host.manifest())}, {"version", ONEHOP_VERSION}});
  session.start([&](const plane::SessionEnd& ended) {
    end = ended;
    interrupts.stop();
    job.end_watch();
  });
  io.run();
  job.end(end);
  return end;
}

}  // namespace

ExitCode send_command(SendOptions options) {
  if (options.has_mac_noack) options.common.tid = noack_tid_of(options.common.priority == "background");
  Reporter reporter{options.common, "send"};
  auto end = run(options, reporter);
  if (end.has_value()) return end.value().code;
  reporter.error(end.error());
  return end.error().code;
}

}  // namespace onehop::tool
