// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Sender: names files, finds the way to the peer, opens the port, and runs one session.
#include <boost/asio/ip/tcp.hpp>

#include "control/link/emulated_source.hpp"
#include "control/session/send_session.hpp"
#include "engine/file/source.hpp"
#include "engine/file/tree_scan.hpp"
#include "transfer/noack_keeper.hpp"
#include "transfer/noack_record.hpp"
#include "transfer/sender_token.hpp"
#include "transfer/side.hpp"

namespace onehop::host {

namespace {

/// The way to the peer, of whose addresses there may be several: for what has to be opened while
/// the privileges are there.
Result<session::RouteInfo> find_route_early(const Endpoint& to, const std::string& interface) {
  boost::asio::io_context io;
  boost::asio::ip::tcp::resolver resolver{io};
  boost::system::error_code error;
  const auto found = resolver.resolve(to.host, std::to_string(to.port), error);
  if (error || found.empty())
    return Error{ExitCode::peer_unreachable, "find " + to.host, error.message(),
                 "Give a numeric address"};
  const auto address = session::Endpoint::from_sockaddr(
      found.begin()->endpoint().data(), static_cast<socklen_t>(found.begin()->endpoint().size()));
  return session::find_route(address->address, interface);
}

class Sender final : public Side, public session::SendHost {
 public:
  Sender(api::SendOptions options, api::Handler handler)
      : Side{options.common, std::move(handler), "send"}, options_{std::move(options)} {
    settings_.rate_memory = options_.rate_memory_file;
    if (options_.has_mac_noack) settings_.tid = noack_tid_of(settings_.priority == "background");
  }

 private:
  // --- Side
  Result<void> check_own() const override;
  Result<void> open_own() override;
  Result<session::SessionEnd> run_own() override;
  void interrupt_own() override {
    events_.say(path_.account().has_data() ? "interrupted: the peer keeps what arrived"
                                           : "interrupted before anything was sent");
    session_->interrupt();
  }

  // --- session::SendHost
  const file::Manifest& manifest() override { return names_.manifest; }
  Result<void> offer_again(const std::vector<bool>& is_settled) override;
  Result<session::DataOpened> open_data(const session::PeerLink& link) override;
  void on_accepted(const session::Accepted& accepted) override;
  Result<session::EngineRings> start_data(const session::DataPlan& plan) override;
  void stop_data() noexcept override;
  Result<void> on_path(const std::string& interface, const PathUpdate& path) override {
    return path_.follow_path(interface, path);
  }
  void on_phase(session::Phase phase) override { path_.on_phase(phase); }
  void on_event(const Event& event) override;
  void on_file_done(const session::FileDone& done) override {
    path_.account().on_file_done(names_.manifest.files[done.file], done);
  }
  void on_notice(const std::string& text) override { events_.say(text); }

  Result<void> start_noack_keeper(const session::RouteInfo& route);
  Result<void> set_noack(const session::DataPlan& plan);
  Result<void> open_files();
  Result<void> take_files(file::SourceFiles files);
  void note_problems(std::span<const file::ScanProblem> problems);
  /// What was left out is a failure of a run that else succeeded.
  void end_with_failure(session::SessionEnd& end) const;
  Result<session::SendOptions> session_options();

  const api::SendOptions options_;
  file::SourceNames names_;  // of files_, which the Source takes
  file::SourceFiles files_;
  api::Started started_;
  std::uint64_t failures_ = 0;  // of what was left out; the first:
  Error first_failure_;
  file::SourceChapter chapter_;
  std::string peer_;
  bool has_restarted_ = false;  // blocks that are skipped since then came in this session
  std::optional<NoAckKeeper> noack_;
  std::optional<session::SendSession> session_;
};

Result<void> Sender::check_own() const {
  ONEHOP_TRY(to, parse_endpoint(options_.to));
  if (to.host.empty())
    return Error{ExitCode::usage, "read --to", "it names no host",
                 "Write --to HOST or --to HOST:PORT"};
  ONEHOP_TRYV(check_word("--symlinks", options_.symlinks));
  if (options_.has_fragments && settings_.frame_bytes != 0)
    return Error{ExitCode::usage, "use --fragment with --frame-size",
                 "a datagram in fragments is as large as UDP allows", "Leave one of them out"};
  if (options_.has_mac_noack && settings_.repair != "lazy")
    return Error{ExitCode::usage, "use --mac-noack",
                 "without the MAC's acknowledgements each loss on the air is a lost frame, which "
                 "eager repair would take for congestion",
                 "Add --repair lazy"};
  return success();
}

Result<void> Sender::open_own() {
  ONEHOP_TRY(to, parse_endpoint(options_.to));
  ONEHOP_TRY(route, find_route_early(to, settings_.interface));
  ONEHOP_TRYV(start_noack_keeper(route));
  return path_.open_port(route.link.name, route.source, 0, options_.has_fragments);
}

/// The keeper is made before there are threads and before the code is known (noack_keeper.hpp).
Result<void> Sender::start_noack_keeper(const session::RouteInfo& route) {
  if (!options_.has_mac_noack) return success();
  const NoAckKeeper::Config config{.ifindex = route.link.ifindex,
                                   .interface = route.link.name,
                                   .tid = *settings_.tid,
                                   .record_folder = noack_record_folder};
  ONEHOP_TRY(made, NoAckKeeper::start(config));
  events_.warn(noack_warning(config));
  noack_.emplace(std::move(made));
  return success();
}

Result<void> Sender::open_files() {
  ONEHOP_TRY(found, file::scan(options_.paths, scan_options(options_)));
  started_.files = found.files;
  started_.folders = found.folders;
  started_.hard_links = found.hard_links;
  note_problems(found.problems);
  return take_files(std::move(found.source));
}

Result<void> Sender::take_files(file::SourceFiles files) {
  if (files.files.empty())
    return Error{ExitCode::local_file_error, "offer the files", "there is none", {}, 0};
  names_ = files;
  files_ = std::move(files);
  path_.account().bytes_expected = file::total_bytes(names_.manifest);
  return success();
}

void Sender::note_problems(std::span<const file::ScanProblem> problems) {
  if (problems.empty()) return;
  events_.emit(left_out_of(problems));
  for (const file::ScanProblem& problem : problems) {
    if (!file::is_failure(problem) || failures_++ > 0) continue;
    first_failure_ = {ExitCode::local_file_error, "send " + file::display_name(problem.path),
                      problem.cause, "All else was sent. --report FILE lists what was left out", 0};
  }
}

void Sender::end_with_failure(session::SessionEnd& end) const {
  if (end.code != ExitCode::done || failures_ == 0) return;
  end.code = ExitCode::local_file_error;
  end.error = first_failure_;
  if (failures_ > 1)
    end.error.cause += " (and " + std::to_string(failures_ - 1) + " more were left out)";
}

Result<session::SendOptions> Sender::session_options() {
  ONEHOP_TRY(to, parse_endpoint(options_.to));
  session::SendOptions options;
  options.host = to.host;
  options.port = to.port;
  options.limits.connect = Nanos{static_cast<Nanos::rep>(options_.wait_seconds * 1e9)};
  options.digest = digest_kind(settings_);
  options.key_interval = settings_.key_interval_packets;
  options.is_repair_lazy = settings_.repair == "lazy";
  options.has_fragments = options_.has_fragments;
  options.dscp = dscp_of(settings_);
  options.interface = settings_.interface;
  if (auto token = sender_token(*key_, file::manifest_hash(names_.manifest)); token.has_value())
    options.token = token.value();
  else
    events_.say(token.error().message() +
                ": should the link die, the receiver takes the next run for another sender's");
  return options;
}

Result<session::SessionEnd> Sender::run_own() {
  if (!key_)
    return Error{ExitCode::usage, "send without a code", "both ends need the same",
                 "Take the receiver's"};
  if (!settings_.link_model.empty()) {
    // Now, and not when the peer has accepted.
    ONEHOP_TRYV(link::EmulatedSource::open(settings_.link_model));
  }
  ONEHOP_TRYV(open_files());
  ONEHOP_TRY(options, session_options());
  session_.emplace(io_, std::move(options), *key_, *this);
  if (options_.has_fragments)
    events_.warn(
        "--fragment is an experiment: datagrams of 64 KB leave in IP fragments. One lost frame is "
        "a lost datagram, and what is left of "
        "40 of them fills the receiver's reassembly memory for 30 s, for every program on it");
  started_.role = "send";
  started_.to = options_.to;
  started_.bytes_total = path_.account().bytes_expected;
  started_.version = ONEHOP_VERSION;
  events_.emit(started_);
  session::SessionEnd end;
  session_->start([&](const session::SessionEnd& ended) { end = ended; });
  io_.run();
  end_with_failure(end);
  path_.end(end);
  return end;
}

Result<void> Sender::offer_again(const std::vector<bool>& is_settled) {
  file::SourceFiles unsettled;
  static_cast<file::SourceNames&>(unsettled) = std::move(names_);
  unsettled.files.resize(unsettled.manifest.files.size());
  unsettled.erase_if([&](std::size_t i) { return is_settled[i]; });
  chapter_ = {};
  has_restarted_ = true;
  std::vector<file::ScanProblem> problems;
  auto again = file::look_again(std::move(unsettled), problems);
  note_problems(problems);
  if (again.has_error()) return again.error();
  return take_files(std::move(again).value());
}

Result<session::DataOpened> Sender::open_data(const session::PeerLink& link) {
  peer_ = link.peer.address.text();
  ONEHOP_TRY(route, session::find_route(link.peer.address, settings_.interface));
  ONEHOP_TRYV(path_.open_port(route.link.name, link.local.address, 0, options_.has_fragments));
  return path_.opened(route);
}

void Sender::on_accepted(const session::Accepted& accepted) {
  chapter_.claims = accepted.claims;
  chapter_.pack = accepted.pack;
  chapter_.is_wanted.assign(names_.manifest.files.size(), true);
  chapter_.is_compared.assign(names_.manifest.files.size(), false);
  for (std::size_t i = 0; i < accepted.actions.size(); ++i) {
    chapter_.is_wanted[i] = session::has_digests(accepted.actions[i]);
    chapter_.is_compared[i] = accepted.actions[i] == session::FileAction::compare;
  }
  path_.account().set_place(peer_, accepted.folder);
}

Result<session::EngineRings> Sender::start_data(const session::DataPlan& plan) {
  ONEHOP_TRY(io, file::make_file_io(settings_.file_io));
  ONEHOP_TRYV(set_noack(plan));
  auto source = std::make_unique<file::Source>(
      file::SourceOptions{.digest_kind = plan.context.digest}, std::move(io));
  chapter_.files = std::move(files_);
  chapter_.is_last = true;
  source->add(std::move(chapter_));
  return path_.start_sending(plan, std::move(source));
}

void Sender::stop_data() noexcept {
  path_.stop();
  if (!noack_) return;
  if (const auto undone = noack_->clear(); !undone) events_.warn(undone.error().message());
}

void Sender::on_event(const Event& event) {
  Account& account = path_.account();
  if (event.kind == EventKind::first_data) account.on_first_data(event.at);
  if (event.kind == EventKind::all_arrived) account.all_arrived_at = event.at;
  if (event.kind == EventKind::file_message && event.block.kind == FileMessageKind::skipped &&
      !has_restarted_)
    account.facts.bytes_skipped_total += event.block.length;
}

Result<void> Sender::set_noack(const session::DataPlan& plan) {
  if (!noack_) return success();
  // Not without the map: on its TID the frames after those of an earlier run may be dropped
  // (noack_keeper.hpp).
  if (!plan.is_repair_lazy)
    return Error{ExitCode::refused_by_peer, "send without the MAC's acknowledgements (--mac-noack)",
                 "the peer keeps to eager repair",
                 "Leave --mac-noack out, or start the receiver without --repair eager"};
  if (plan.path.ifindex != noack_->ifindex())
    return Error{ExitCode::io_unavailable, "set the no-ack map (--mac-noack)",
                 "the way to the peer leads through another interface than when this run began",
                 "Run the same command again"};
  return noack_->set();
}

}  // namespace

std::unique_ptr<Side> make_sender(api::SendOptions options, api::Handler handler) {
  return std::make_unique<Sender>(std::move(options), std::move(handler));
}

}  // namespace onehop::host
