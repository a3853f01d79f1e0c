// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Sender: names files, finds the way to the peer, opens the port, and runs one session.
#include <boost/asio/post.hpp>

#include <deque>

#include "control/link/emulated_source.hpp"
#include "control/session/channel/connect.hpp"
#include "control/session/send_session.hpp"
#include "control/session/volume.hpp"
#include "control/transfer/left_out_failures.hpp"
#include "control/transfer/patience.hpp"
#include "control/transfer/port/noack_keeper.hpp"
#include "control/transfer/port/noack_record.hpp"
#include "control/transfer/sender_token.hpp"
#include "control/transfer/side.hpp"
#include "engine/base/system/descriptors.hpp"
#include "engine/list/scan_thread.hpp"
#include "engine/source/source.hpp"

namespace onehop::transfer {
namespace {

class Sender final : public Side, public session::SendHost {
 public:
  Sender(api::SendOptions options, api::Handler handler)
      : Side{options.common, std::move(handler), api::Role::sending}, options_{std::move(options)} {
    settings_.rate_memory = options_.rate_memory_file;
    if (options_.has_mac_noack) settings_.tid = noack_tid_of(settings_.priority == "background");
  }

 private:
  // --- Side
  Result<void> check_own() const override;
  Result<void> open_own() override;
  Result<session::SessionEnd> run_own() override;
  void interrupt_own() override {
    events_.say(!path_.account().has_data() ? "interrupted before anything was sent"
                : path_.account().is_stream ? "interrupted: nothing of the stream is kept"
                                            : "interrupted: the peer keeps what arrived");
    session_->interrupt();
  }

  // --- session::SendHost
  void next_volume(session::TakeVolume take) override {
    is_list_used_ = true;
    take_ = std::move(take);
    give_volume();
  }
  session::KnownTree known() override {
    const list::ScanKnown known = scan_->known();
    return {known.files, known.bytes, known.is_complete};
  }
  Result<std::shared_ptr<const list::Manifest>> offer_again(
      const std::vector<session::Unsettled>& volumes) override;
  Result<session::DataOpened> open_data(const session::PeerLink& link) override;
  void on_accepted(const session::Accepted& accepted) override;
  Result<session::SessionRings> start_data(const session::DataPlan& plan) override;
  void stop_data() noexcept override;
  Result<void> fall_back() override { return path_.fall_back(); }
  Result<void> on_path(const std::string& interface, const PathUpdate& path) override {
    return path_.follow_path(interface, path);
  }
  void on_fact(const session::SessionFact& fact) override {
    path_.on_fact(fact);
    if (const auto* over = std::get_if<session::VolumeOver>(&fact))
      std::erase(offered_, find_offered(*over->manifest));
  }
  Result<void> on_introduced(const pair::Peer& device) override { return keep(device); }
  Result<void> start_noack_keeper(const session::RouteInfo& route);
  Result<void> set_noack(const session::DataPlan& plan);
  Result<void> open_files();
  void give_volume();
  std::optional<list::Volume> take_scanned(list::ScanVolume volume);
  void note_known();
  [[nodiscard]] std::shared_ptr<list::SourceFiles> find_offered(
      const list::Manifest& manifest) const;
  void note_problems(std::span<const list::ScanProblem> problems);
  Result<session::SendOptions> session_options();
  [[nodiscard]] Result<void> begin_again();

  const api::SendOptions options_;
  std::unique_ptr<list::ScanThread> scan_;
  std::optional<list::Volume> first_;  // until the session asks for it
  session::TakeVolume take_;           // the session waits for a volume
  // What the session has, in the order in which it was given.
  std::deque<std::shared_ptr<list::SourceFiles>> offered_;
  std::deque<source::SourceVolume> accepted_;  // until the data path starts
  source::Source* source_ = nullptr;           // the data path's, while it runs
  api::Started started_;
  bool is_found_told_ = false;
  LeftOutFailures failures_;
  std::string peer_;
  std::string to_ = options_.to;  // where the receiver was last
  Patience patience_{options_};
  bool is_list_used_ = false;  // the session asked for what scan_ has
  std::optional<NoAckKeeper> noack_;
  std::shared_ptr<session::SendSession> session_;
};

Result<void> Sender::check_own() const {
  ONEHOP_TRY(to, parse_peer(options_.to, settings_.interface));
  if (to.host.empty())
    return Error{ExitCode::usage, "read --to", "it names no host",
                 "Write --to HOST or --to HOST:PORT"};
  if (options_.is_pairing) return success();
  return check_send_options(options_);
}

Result<void> Sender::open_own() {
  if (options_.is_pairing) return success();
  ONEHOP_TRY(to, parse_peer(options_.to, settings_.interface));
  const auto route = session::find_route_to(to.host, settings_.interface);
  // A name or a route that is not there yet may come while the session tries to connect.
  if (!route) {
    const PortKind* const kind = port_kind(settings_.io);
    const bool can_wait = (kind == nullptr || !kind->is_bound) && !options_.has_mac_noack &&
                          route.error().code == ExitCode::peer_unreachable;
    if (can_wait) return success();
    return route.error();
  }
  ONEHOP_TRYV(start_noack_keeper(route.value()));
  return path_.open_port(route.value().link.name, route.value().source, 0, options_.has_fragments);
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

/// The scan goes on beside the transfer; what the command line names is checked here.
Result<void> Sender::open_files() {
  ONEHOP_TRYV(path_.account().begin_receipt());
  const auto on_ready = [this] { boost::asio::post(io_, [this] { give_volume(); }); };
  ONEHOP_TRY(scan,
             options_.stream_fd >= 0
                 ? list::ScanThread::start_stream(
                       {.fd = options_.stream_fd, .name = options_.stream_name}, on_ready)
                 : list::ScanThread::start(options_.paths, scan_options(options_), {}, on_ready));
  scan_ = std::move(scan);
  while (!first_) {
    ONEHOP_TRY(first, scan_->wait_next());
    first_ = take_scanned(std::move(first));
  }
  return success();
}

void Sender::give_volume() {
  if (!take_) return;
  auto offered = std::exchange(first_, std::nullopt);
  while (!offered) {
    auto next = scan_->try_next();
    if (!next) return;
    if (next->has_error()) return std::exchange(take_, nullptr)(next->error());
    offered = take_scanned(std::move(*next).value());
  }
  std::exchange(take_, nullptr)(*std::move(offered));
}

/// Nothing: the volume has problems alone, and another one follows it.
std::optional<list::Volume> Sender::take_scanned(list::ScanVolume volume) {
  note_problems(volume.problems);
  started_.found = {.files = volume.counts.files,
                    .folders = volume.counts.folders,
                    .bytes_total = volume.counts.bytes,
                    .hard_links = volume.counts.hard_links,
                    .has_more_hard_links = volume.counts.has_more_hard_links};
  started_.is_all_found = volume.is_last;
  note_known();
  if (volume.source.files.empty() && !volume.is_last) return std::nullopt;
  offered_.push_back(std::make_shared<list::SourceFiles>(std::move(volume.source)));
  return list::Volume{{offered_.back(), &offered_.back()->manifest}, volume.is_last};
}

/// The scan runs ahead of what is offered, and so does what is expected.
void Sender::note_known() {
  const list::ScanKnown known = scan_->known();
  path_.account().bytes_expected = known.bytes;
  path_.account().files_expected = known.files;
  path_.account().is_all_known = known.is_complete;
  if (!started_.is_all_found || started_.version.empty() || is_found_told_) return;
  is_found_told_ = true;
  events_.emit(started_.found);
}

void Sender::note_problems(std::span<const list::ScanProblem> problems) {
  if (problems.empty()) return;
  events_.emit(left_out_of(problems));
  failures_.note(problems);
}

Result<session::SendOptions> Sender::session_options() {
  ONEHOP_TRY(to, parse_peer(to_, settings_.interface));
  session::SendOptions options;
  options.host = to.host;
  options.port = to.port;
  options.limits.connect = Nanos{static_cast<Nanos::rep>(options_.wait_seconds * 1e9)};
  options.digest = digest_kind(settings_);
  options.key_interval = settings_.key_interval_packets;
  options.is_repair_lazy = settings_.repair == "lazy";
  options.has_fragments = options_.has_fragments;
  options.dscp = dscp_of(settings_);
  options.prefers_chacha20 = prefers_chacha20(settings_);
  options.interface = settings_.interface;
  options.peer = peer_name_;
  use_devices(options, options_.is_pairing);
  if (auto token = sender_token(*code_, options_.paths, options_.stream_name); token.has_value())
    options.token = token.value();
  else
    events_.say(token.error().message() +
                ": should the link die, the receiver takes the next run for another sender's");
  return options;
}

Result<session::SessionEnd> Sender::run_own() {
  if (!code_)
    return Error{ExitCode::usage, "send without a code", "both ends need the same",
                 "Take the receiver's"};
  if (!settings_.link_model.empty()) {
    // Now, and not when the peer has accepted.
    ONEHOP_TRYV(link::EmulatedSource::open(settings_.link_model));
  }
  path_.account().is_stream = options_.stream_fd >= 0;
  if (!peer_name_.empty()) {
    path_.account().signer = &device_->key;
    patience_.set_device();
  }
  if (!options_.is_pairing) {
    ONEHOP_TRYV(open_files());
  }
  ONEHOP_TRY(options, session_options());
  if (options_.has_fragments)
    events_.warn(
        "--fragment is an experiment: one lost frame is a lost datagram of 64 KB, and what is left "
        "of 40 of them fills the receiver's reassembly memory for 30 s, for every program on it");
  started_.to = options_.to;
  started_.version = ONEHOP_VERSION;
  is_found_told_ = started_.is_all_found;
  events_.emit(started_);
  session::SessionEnd end;
  for (;;) {
    session_ = std::make_shared<session::SendSession>(io_, options, *code_, *this);
    session_->start([&](const session::SessionEnd& ended) { end = ended; });
    io_.run();
    if (is_interrupted() || !patience_.lasts(end, path_.account().last_state.path)) break;
    if (patience_.is_news())
      events_.say(patience_.text(end, peer_name_.empty() ? to_ : peer_name_));
    ONEHOP_TRYV(begin_again());
    const auto found = patience_.find_again();
    if (found) to_ = *found;
    ONEHOP_TRY(next, session_options());
    options = std::move(next);
    options.unproven = session_->unproven();
    options.busy = std::max<Nanos>(patience_.left(), 1s);
    // Who is looked for as well is not tried for long where he was.
    options.limits.connect = found || !options_.find_again ? options.busy : 1s;
    io_.restart();
  }
  if (options_.is_pairing) return told(end);
  failures_.end_with(end);
  return path_.end(end);
}

/// All is offered again: the receiver knows what it has.
Result<void> Sender::begin_again() {
  path_.account().forget_session();
  if (!std::exchange(is_list_used_, false)) return success();
  take_ = nullptr;
  first_.reset();
  offered_.clear();
  accepted_.clear();
  failures_ = {};
  return open_files();
}

/// One volume of all that is left of those that the session had; what it has not begun to offer
/// stays behind it. What was named itself is not left out.
Result<std::shared_ptr<const list::Manifest>> Sender::offer_again(
    const std::vector<session::Unsettled>& volumes) {
  path_.account().on_restart();
  list::SourceNames left;
  std::vector<list::ScanProblem> problems;
  for (const session::Unsettled& volume : volumes) {
    const std::shared_ptr<list::SourceFiles> offered = find_offered(*volume.manifest);
    std::erase(offered_, offered);
    const list::SourceFiles& files = *offered;
    left.roots = files.roots;
    if (volume.unsent) {
      const auto& [entry, why] = *volume.unsent;
      if (!files.root_of(entry).is_folder || has_run_out(why.errno_value)) return why;
      path_.account().on_left_out(files.manifest.files[entry]);
      problems.push_back({.path = files.path_of(entry),
                          .kind = why.errno_value != 0 ? list::ScanProblemKind::unreadable
                                                       : list::ScanProblemKind::changed,
                          .cause = why.cause});
    }
    for (std::size_t i = 0; i < files.places.size(); ++i) {
      if (volume.is_settled[i]) continue;
      left.manifest.files.push_back(files.manifest.files[i]);
      left.places.push_back(files.places[i]);
    }
  }
  const std::vector<list::ManifestEntry> asked = left.manifest.files;
  auto again = list::look_again(std::move(left), problems);
  note_problems(problems);
  if (again.has_error()) return again.error();
  const auto& offered = again.value().manifest.files;
  for (std::size_t i = 0, at = 0; i < asked.size(); ++i)
    if (at < offered.size() && offered[at].name == asked[i].name)
      ++at;
    else
      path_.account().on_left_out(asked[i]);
  offered_.push_front(std::make_shared<list::SourceFiles>(std::move(again).value()));
  return std::shared_ptr<const list::Manifest>{offered_.front(), &offered_.front()->manifest};
}

std::shared_ptr<list::SourceFiles> Sender::find_offered(const list::Manifest& manifest) const {
  const auto at = std::ranges::find(offered_, &manifest, [](auto& it) { return &it->manifest; });
  ONEHOP_CHECK(at != offered_.end());
  return *at;
}

Result<session::DataOpened> Sender::open_data(const session::PeerLink& link) {
  peer_ = link.peer.address.text();
  ONEHOP_TRY(route, session::find_route(link.peer.address, settings_.interface));
  ONEHOP_TRYV(path_.open_port(route.link.name, link.local.address, 0, options_.has_fragments));
  ONEHOP_TRY(opened, path_.opened(route));
  opened.is_stream = options_.stream_fd >= 0;
  return std::move(opened);
}

void Sender::on_accepted(const session::Accepted& accepted) {
  source::SourceVolume volume{.first_file = accepted.volume.first_file,
                              .files = find_offered(*accepted.volume.manifest),
                              .answer = accepted.answer,
                              .is_last = accepted.volume.is_last};
  path_.account().set_place(peer_, accepted.answer->folder);
  if (source_ != nullptr)
    source_->add(std::move(volume));
  else
    accepted_.push_back(std::move(volume));
}

Result<session::SessionRings> Sender::start_data(const session::DataPlan& plan) {
  ONEHOP_TRY(io, disk::make_file_io(settings_.file_io));
  ONEHOP_TRYV(set_noack(plan));
  auto source = std::make_unique<source::Source>(path_.source_options(plan), std::move(io));
  for (source::SourceVolume& volume : accepted_) source->add(std::move(volume));
  accepted_.clear();
  source_ = source.get();
  return path_.start_sending(plan, std::move(source));
}

void Sender::stop_data() noexcept {
  source_ = nullptr;
  accepted_.clear();
  path_.stop();
  if (!noack_) return;
  if (const auto undone = noack_->clear(); !undone) events_.warn(undone.error().message());
}

Result<void> Sender::set_noack(const session::DataPlan& plan) {
  if (!noack_) return success();
  ONEHOP_TRYV(check_noack(plan.is_repair_lazy, plan.path.ifindex == noack_->ifindex()));
  return noack_->set();
}

}  // namespace

std::unique_ptr<Side> make_sender(api::SendOptions options, api::Handler handler) {
  return std::make_unique<Sender>(std::move(options), std::move(handler));
}

}  // namespace onehop::transfer
