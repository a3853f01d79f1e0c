// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Receiver: listens, and takes sessions one after the other.
#include <fmt/format.h>

#include <boost/asio/post.hpp>

#include <filesystem>
#include <stop_token>
#include <thread>
#include <unordered_map>

#include "control/session/listener.hpp"
#include "engine/base/memory.hpp"
#include "engine/base/thread.hpp"
#include "engine/base/time.hpp"
#include "engine/file/sink.hpp"
#include "transfer/local_address.hpp"
#include "transfer/question.hpp"
#include "transfer/side.hpp"
#include "transfer/stranger_log.hpp"

namespace onehop::host {

namespace {

file::OnExist on_exist_of(const std::string& word) {
  if (word == "resume") return file::OnExist::resume;
  if (word == "skip") return file::OnExist::skip;
  if (word == "rename") return file::OnExist::rename;
  if (word == "overwrite") return file::OnExist::overwrite;
  return file::OnExist::ask;
}

file::OnExist on_exist_of(api::Answer answer) {
  switch (answer) {
    case api::Answer::resume: return file::OnExist::resume;
    case api::Answer::skip: return file::OnExist::skip;
    case api::Answer::rename: return file::OnExist::rename;
    case api::Answer::overwrite: return file::OnExist::overwrite;
    case api::Answer::refuse:
    case api::Answer::accept: break;
  }
  return file::OnExist::ask;
}

session::FileAction action_of(const file::SinkChapter& chapter, std::uint32_t entry) {
  switch (chapter.existing()[entry]) {
    case file::Existing::other: return session::FileAction::keep;
    case file::Existing::unread: return session::FileAction::keep_unread;
    case file::Existing::compared: return session::FileAction::compare;
    case file::Existing::none:
    case file::Existing::expected: break;
  }
  const bool has_some =
      chapter.pack().contains(entry) ? chapter.is_there(entry) : !chapter.claims()[entry].empty();
  return has_some ? session::FileAction::resume : session::FileAction::send;
}

class Receiver final : public Side, public session::RecvHost {
 public:
  Receiver(api::ReceiveOptions options, api::Handler handler)
      : Side{options.common, std::move(handler), "recv"}, options_{std::move(options)} {}
  ~Receiver() override { withdraw(); }
  void answer(std::uint64_t offer, api::Answer answer) override { question_.answer(offer, answer); }

 private:
  // --- Side
  Result<void> check_own() const override {
    ONEHOP_TRYV(parse_endpoint(options_.listen));
    ONEHOP_TRYV(check_word("--durability", options_.durability));
    return check_word("--on-exist", options_.on_exist);
  }
  Result<void> open_own() override;
  Result<session::SessionEnd> run_own() override;
  void interrupt_own() override;

  // --- session::RecvHost
  void on_listening(const session::Endpoint& local) override;
  void consider(std::shared_ptr<const session::OfferInfo> offer, session::Decide decide) override;
  Result<session::DataOpened> open_data(const session::PeerLink& link) override;
  Result<session::EngineRings> start_data(const session::DataPlan& plan) override;
  Result<Command> take_chapter(const session::OfferInfo& offer) override;
  void stop_data() noexcept override {
    withdraw();
    file_side_ = nullptr;
    path_.stop();
  }
  Result<void> on_path(const std::string& interface, const PathUpdate& path) override {
    return path_.follow_path(interface, path);
  }
  void on_phase(session::Phase phase) override { path_.on_phase(phase); }
  void on_event(const Event& event) override {
    if (event.kind == EventKind::first_data) path_.account().on_first_data(event.at);
  }
  void on_file_done(const session::FileDone& done, const file::ManifestEntry& entry) override {
    path_.account().on_file_done(entry, done);
  }
  void on_skipped(std::uint64_t bytes) override {
    if (!path_.account().has_restarted)
      path_.account().facts.bytes_skipped_total += bytes;  // else they came in this session
  }
  void on_notice(const std::string& text) override { events_.say(text); }
  session::Arrival arrival() const override { return path_.arrival(); }
  Result<session::PairingKey> renew_code(const Error& why) override {
    events_.emit(to_api(why));
    return make_code();
  }
  void on_rejected(const session::Endpoint& peer, const Error& why) override;
  void on_session_end(const session::SessionEnd& end) override;

  Result<session::PairingKey> make_code();
  Result<void> open_before_files(const session::IpAddress& peer);
  Result<session::Decision> prepare(const std::shared_ptr<const session::OfferInfo>& offer,
                                    const std::stop_token& stop);
  using PreparedChapter = Result<std::unique_ptr<file::SinkChapter>>;
  Result<void> open_destination(const session::OfferInfo& offer);
  PreparedChapter prepare_chapter_or_ask(const std::shared_ptr<const session::OfferInfo>& offer,
                                         const std::stop_token& stop);
  PreparedChapter prepare_chapter(const std::shared_ptr<const session::OfferInfo>& offer,
                                  std::vector<file::Conflict>* conflicts,
                                  const std::stop_token& stop);
  void expect(const session::OfferInfo& offer);
  api::Answer ask(const session::OfferInfo& offer, const std::vector<file::Conflict>& conflicts,
                  const std::stop_token& stop);
  void withdraw();
  void begin_session(const session::OfferInfo& offer);

  const std::string& interface_of(const session::RouteInfo& route) const {
    return fixed_interface_.empty() ? route.link.name : fixed_interface_;
  }

  const api::ReceiveOptions options_;
  std::string fixed_interface_;  // the only way in; empty: any
  Endpoint listen_;
  StrangerLog strangers_;
  std::optional<session::RecvServer> server_;
  std::shared_ptr<const session::OfferInfo> offer_;  // the newest chapter
  std::uint64_t bytes_offered_ = 0;
  file::Sink* file_side_ = nullptr;  // the data path's, while it runs
  // The preparing thread's, until it has decided. Answers are by name, of the chapter.
  std::shared_ptr<file::Destination> destination_;
  std::unique_ptr<file::SinkChapter> chapter_;
  std::unordered_map<std::string, file::OnExist> answers_;
  bool is_approved_ = false;  // somebody has answered, in this session
  std::string folder_;
  Question question_;
  std::jthread preparer_;
};

/// A port that needs its interface opens it now, while the privileges are there and an error can
/// still be seen.
Result<void> Receiver::open_own() {
  ONEHOP_TRY(listen, parse_endpoint(options_.listen));
  listen_ = std::move(listen);
  const PortKind* const kind = port_kind(settings_.io);
  if (kind == nullptr || !kind->is_bound) return success();
  std::string wanted = settings_.interface;
  if (settings_.io == "dpdk") {
    ONEHOP_TRY(interface, kernel_interface_of(settings_));
    if (interface.empty()) return path_.open_dpdk({});  // such a link has no address of its own
    wanted = std::move(interface);
  }
  std::vector<LocalAddress> candidates;
  for (const LocalAddress& local : local_addresses()) {
    if (!wanted.empty() && local.interface != wanted) continue;
    if (!listens_on_all(listen_) && session::IpAddress::parse(listen_.host) != local.address)
      continue;
    if (listens_on_all(listen_) && local.address.is_v6)
      continue;  // one address is bound now; IPv4 unless asked otherwise
    candidates.push_back(local);
  }
  if (candidates.size() != 1)
    return Error{ExitCode::usage, "choose the interface for --io " + settings_.io,
                 candidates.empty() ? "no interface that is up has a matching address"
                                    : "several interfaces have an address",
                 "Name it with --iface IF or its address with --listen ADDR"};
  fixed_interface_ = candidates.front().interface;
  return path_.open_port(fixed_interface_, candidates.front().address, listen_.port, false);
}

Result<session::PairingKey> Receiver::make_code() {
  ONEHOP_TRY(code, session::make_code());
  api::Code event;
  event.code = code.text();
  for (const LocalAddress& way :
       reachable(local_addresses(), listen_,
                 fixed_interface_.empty() ? settings_.interface : fixed_interface_))
    event.ways.push_back({way.interface, to_text(way.address, listen_.port)});
  events_.emit(event);
  return session::stretch(code);
}

Result<session::SessionEnd> Receiver::run_own() {
  if (!key_) {
    ONEHOP_TRY(key, make_code());
    key_ = std::move(key);
  }
  session::RecvOptions options;
  options.address = listen_.host;
  options.port = listen_.port;
  options.is_once = options_.is_once;
  options.is_lazy_allowed = settings_.repair != "eager";
  options.dscp = dscp_of(settings_);
  options.interface = settings_.interface;
  server_.emplace(io_, std::move(options), *key_, *this);
  session::SessionEnd end;
  ONEHOP_TRYV(server_->start([&](const session::SessionEnd& ended) { end = ended; }));
  io_.run();
  return end;
}

void Receiver::interrupt_own() {
  events_.say(path_.account().has_data() ? "interrupted: what arrived is kept"
              : offer_ != nullptr        ? "interrupted before anything arrived"
                                         : "interrupted: nothing was under way");
  server_->interrupt();
}

void Receiver::on_listening(const session::Endpoint& local) {
  api::Started started;
  started.role = "recv";
  started.listen = local.text();
  started.directory = options_.directory;
  started.version = ONEHOP_VERSION;
  events_.emit(started);
  path_.emit_progress();
}

void Receiver::consider(std::shared_ptr<const session::OfferInfo> offer, session::Decide decide) {
  withdraw();
  offer_ = offer;
  const bool is_first = offer->first_file == 0;
  if (is_first) begin_session(*offer);
  if (!options_.is_hidden_allowed)
    if (auto visible = file::check_visible(offer->manifest); !visible.has_value())
      return decide(visible.error());
  if (is_first)
    if (auto opened = open_before_files(offer->peer.address); !opened.has_value())
      return decide(opened.error());
  auto started =
      start_thread<std::jthread>("preparing", [this, offer, decide](const std::stop_token& stop) {
        try {
          decide(prepare(offer, stop));
        } catch (const std::bad_alloc& refused) {
          decide(memory_error("prepare to receive", refused));
        }
      });
  if (!started.has_value()) return decide(started.error());
  preparer_ = std::move(started).value();
}

/// Sockets and rings first, while the privileges are there; then the user's own rights, then the
/// folder.
Result<void> Receiver::open_before_files(const session::IpAddress& peer) {
  ONEHOP_TRY(route, session::find_route(peer, settings_.interface));
  ONEHOP_TRYV(
      path_.open_port(interface_of(route), route.source, listen_.port, offer_->has_fragments));
  if (!options_.before_files) return success();
  if (const api::Error refused = options_.before_files()) return from_api(refused);
  return success();
}

Result<session::DataOpened> Receiver::open_data(const session::PeerLink& link) {
  ONEHOP_TRY(route, session::find_route(link.peer.address, settings_.interface));
  ONEHOP_TRYV(path_.open_port(interface_of(route), link.local.address, listen_.port,
                              offer_->has_fragments));
  path_.account().set_place(link.peer.address.text(), folder_);
  return path_.opened(route);
}

Result<session::EngineRings> Receiver::start_data(const session::DataPlan& plan) {
  preparer_ = {};
  ONEHOP_TRY(io, file::make_file_io(settings_.file_io));
  expect(*offer_);
  std::vector<std::uint64_t> sizes = chapter_->block_sizes();
  auto sink = std::make_unique<file::Sink>(destination_, std::move(io), file::SinkOptions{});
  sink->add(std::move(chapter_), offer_->is_last);
  file_side_ = sink.get();
  return path_.start_receiving(plan, std::move(sink), std::move(sizes));
}

Result<Command> Receiver::take_chapter(const session::OfferInfo& offer) {
  preparer_ = {};
  expect(offer);
  const std::vector<std::uint64_t> sizes = chapter_->block_sizes();
  file_side_->add(std::move(chapter_), offer.is_last);
  return path_.add_files(offer.first_file, sizes);
}

/// What is wanted of the chapters so far, and all that is said to come.
void Receiver::expect(const session::OfferInfo& offer) {
  Account& account = path_.account();
  for (std::size_t i = 0; i < offer.manifest.files.size(); ++i) {
    bytes_offered_ += offer.manifest.files[i].size;
    if (chapter_->is_wanted()[i]) account.bytes_asked += offer.manifest.files[i].size;
  }
  const std::uint64_t to_come =
      offer.is_last || offer.known.bytes < bytes_offered_ ? 0 : offer.known.bytes - bytes_offered_;
  account.bytes_expected = account.bytes_asked + to_come;
}

/// begin_session forgets what the session before left, or this one before a source changed.
void Receiver::begin_session(const session::OfferInfo& offer) {
  path_.account().has_restarted = !offer.is_changed.empty();
  if (!path_.account().has_restarted) is_approved_ = !options_.is_approved;
  bytes_offered_ = path_.account().bytes_asked = 0;
  destination_.reset();
}

void Receiver::on_rejected(const session::Endpoint& peer, const Error& why) {
  const auto unsaid = strangers_.note(peer.address, monotonic_now());
  if (!unsaid) return;
  const std::string more =
      *unsaid == 0 ? "" : fmt::format(" ({} more without a line of their own)", *unsaid);
  events_.warn(peer.text() + ": " + why.message() + more);
}

void Receiver::on_session_end(const session::SessionEnd& end) {
  withdraw();
  if (end.is_replaced) {
    events_.say(end.error.message() + ": its transfer goes on there");
    path_.account().forget_session();
  } else {
    path_.end(end);
  }
  offer_.reset();
}

/// prepare runs on a thread of its own: it may hash what an earlier session left, or wait for an
/// answer. `stop` ends either.
Result<session::Decision> Receiver::prepare(const std::shared_ptr<const session::OfferInfo>& offer,
                                            const std::stop_token& stop) {
  if (!destination_) {
    ONEHOP_TRYV(open_destination(*offer));
  }
  if (offer->is_changed.empty()) answers_.clear();
  ONEHOP_TRY(chapter, prepare_chapter_or_ask(offer, stop));
  chapter_ = std::move(chapter);
  session::Decision decision;
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::canonical(options_.directory, error);
  decision.folder = folder_ = error ? options_.directory : folder.string();
  for (std::uint32_t i = 0; i < offer->manifest.files.size(); ++i) {
    decision.actions.push_back(action_of(*chapter_, i));
    if (decision.actions.back() != session::FileAction::resume) continue;
    decision.claims.resize(offer->manifest.files.size());
    decision.claims[i] = chapter_->claims()[i];
  }
  return decision;
}

/// An answer holds for the names that were shown with its question, and for no other: one that
/// comes up later is asked about, or refused.
Receiver::PreparedChapter Receiver::prepare_chapter_or_ask(
    const std::shared_ptr<const session::OfferInfo>& offer, const std::stop_token& stop) {
  for (;;) {
    std::vector<file::Conflict> conflicts;
    auto chapter = prepare_chapter(offer, options_.on_exist == "ask" ? &conflicts : nullptr, stop);
    if (conflicts.empty() && (is_approved_ || chapter.has_error())) return chapter;
    const api::Answer answer = ask(*offer, conflicts, stop);
    if (conflicts.empty() && answer == api::Answer::refuse)
      return Error{ExitCode::refused_by_peer, "receive from " + offer->peer.address.text(),
                   "the offer was refused here", "Ask who runs the receiver"};
    if (!conflicts.empty() && on_exist_of(answer) == file::OnExist::ask) return chapter;
    is_approved_ = true;
    if (conflicts.empty()) return chapter;
    for (const file::Conflict& conflict : conflicts)
      answers_[offer->manifest.files[conflict.file].name] = on_exist_of(answer);
  }
}

api::Answer Receiver::ask(const session::OfferInfo& offer,
                          const std::vector<file::Conflict>& conflicts,
                          const std::stop_token& stop) {
  api::Offer event;
  event.id = question_.begin();
  event.peer = offer.peer.address.text();
  event.directory = file::display_name(options_.directory);
  event.conflicts = conflicts.size();
  event.is_part = !offer.is_last;
  for (const file::ManifestEntry& entry : offer.manifest.files)
    event.files.push_back({.name = file::display_name(entry.name), .bytes = entry.size});
  for (const file::Conflict& conflict : conflicts) {
    api::Offer::File& file = event.files[conflict.file];
    file.conflict = conflict.cause;
    file.is_regular = conflict.is_regular;
    file.existing = conflict.size;
  }
  const std::uint64_t id = event.id;
  boost::asio::post(io_, [this, event = std::move(event)] { events_.emit(event); });
  const auto answer = question_.wait_answer(stop);
  boost::asio::post(io_, [this, id] { events_.emit(api::OfferGone{id}); });
  return answer.value_or(api::Answer::refuse);
}

Result<void> Receiver::open_destination(const session::OfferInfo& offer) {
  file::DestinationOptions options;
  options.folder = options_.directory;
  options.digest_kind = offer.digest;
  options.durability = options_.durability == "none"   ? file::Durability::none
                       : options_.durability == "file" ? file::Durability::file
                                                       : file::Durability::batch;
  options.is_again = !offer.is_changed.empty();
  ONEHOP_TRY(opened, file::Destination::open(std::move(options)));
  destination_ = std::move(opened);
  return success();
}

Receiver::PreparedChapter Receiver::prepare_chapter(
    const std::shared_ptr<const session::OfferInfo>& offer, std::vector<file::Conflict>* conflicts,
    const std::stop_token& stop) {
  file::SinkChapterOptions options;
  options.first_file = offer->first_file;
  options.approved = offer->manifest_hash;
  options.on_exist = on_exist_of(options_.on_exist);
  if (!answers_.empty())
    for (const file::ManifestEntry& entry : offer->manifest.files) {
      const auto answer = answers_.find(entry.name);
      options.on_exist_of.push_back(answer == answers_.end() ? options.on_exist : answer->second);
    }
  options.conflicts = conflicts;
  options.withdrawn = stop;
  options.is_changed = offer->is_changed;
  return file::SinkChapter::prepare(destination_,
                                    std::shared_ptr<const file::Manifest>{offer, &offer->manifest},
                                    std::move(options));
}

/// withdraw ends what prepares a session that is over, a question too, and lets go of what it
/// holds.
void Receiver::withdraw() {
  preparer_ = {};  // asks it to stop, and joins
  chapter_.reset();
  if (file_side_ == nullptr) destination_.reset();
}

}  // namespace

std::unique_ptr<Side> make_receiver(api::ReceiveOptions options, api::Handler handler) {
  return std::make_unique<Receiver>(std::move(options), std::move(handler));
}

}  // namespace onehop::host
