// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/plane/send_session.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <sys/random.h>

#include <set>
#include <utility>

#include "control/plane/connect.hpp"
#include "control/plane/poll_pause.hpp"
#include "control/plane/session_base.hpp"

namespace onehop::plane {

namespace {

// A part of the manifest is sent when it reaches this; the bound of a message is four times as high.
constexpr std::size_t manifest_part_bytes = message_body_bytes_max / 4;
// What may wait unsent on the control connection before we wait for the peer to read.
constexpr std::size_t unsent_bytes_max = 4U << 20;

}  // namespace

class SendSession::Impl final : public SessionBase, public std::enable_shared_from_this<Impl> {
 public:
  Impl(asio::io_context& io, SendOptions options, const PairingKey& key, SendHost& host)
      : SessionBase{io, host, options.limits, Role::sender},
        send_host_{host},
        options_{std::move(options)},
        tls_{TlsContext::make({.role = Role::sender}, key)} {
    peer_name_ = options_.host;
  }

  void start(std::function<void(const SessionEnd&)> on_end) {
    asio::co_spawn(
        io_, [self = shared_from_this()] { return self->run(); },
        [self = shared_from_this(), on_end = std::move(on_end)](const std::exception_ptr& thrown, SessionEnd end) {
          if (thrown) end = {ExitCode::internal_error, {ExitCode::internal_error, "end the session", "out of memory", ""}};
          on_end(end);
        });
  }
  void interrupt_any_thread() {
    asio::post(io_, [self = shared_from_this()] {
      self->interrupt();
      self->connect_state_.interrupt();
    });
  }

 private:
  Task<Result<void>> converse() override {
    if (!tls_) co_return tls_.error();
    manifest_ = &send_host_.manifest();
    ONEHOP_CO_TRYV(file::validate(*manifest_));
    const auto deadline = Clock::now() + limits_.connect;
    ONEHOP_CO_TRY(channel_taken, co_await connect_and_authenticate(io_, tls_.value(), options_, host_, connect_state_));
    channel_ = std::move(channel_taken);
    const std::string address = channel_->peer().address.text();
    if (address != options_.host) peer_name_ += " (" + address + ")";  // a name, of which there may be several addresses
    channel_->start();
    ONEHOP_CO_TRYV(co_await greet(deadline));
    for (;;) {
      ONEHOP_CO_TRYV(co_await send_offered());
      if (!changed_file_) co_return co_await complete();
      ONEHOP_CO_TRYV(co_await restart());
    }
  }

  // Until the peer has time for us, or the wait is over.
  Task<Result<void>> greet(Clock::time_point deadline) {
    const std::string step = "greet the peer";
    channel_->send(Hello{options_.token});
    ONEHOP_CO_TRY(answer, co_await receive(limits_.step, step));
    if (std::holds_alternative<Busy>(answer)) {
      const Error busy{ExitCode::refused_by_peer, "be served by " + peer_name_, "it is busy with another sender",
                       "Try again later, or wait longer for it with --wait SECONDS"};
      const Nanos left = deadline - Clock::now();
      if (left <= 0ns) co_return busy;
      host_.on_notice(peer_name_ + " is busy with another sender: waiting for it, " + std::to_string((left + 1s - 1ns) / 1s) + " s at most (--wait)");
      auto later = co_await receive(left, step);
      if (!later && Clock::now() >= deadline && later.error().code == ExitCode::timed_out) co_return busy;
      ONEHOP_CO_TRY(welcome, std::move(later));
      answer = std::move(welcome);
    }
    const auto* welcome = std::get_if<Welcome>(&answer);
    if (welcome == nullptr) co_return violation("the peer sent " + std::string{name_of(type_of(answer))} + " out of turn", step);
    const std::string alpn = channel_->alpn();
    if (welcome->version == protocol_version && alpn == alpn_name) co_return success();
    co_return Error{ExitCode::refused_by_peer, "agree on a version",
                    "this end speaks " + std::string{alpn_name} + ", the peer " + std::string{alpn_prefix} +
                        std::to_string(welcome->version), "Run the same version on both ends"};
  }

  // One offer and what follows from it: until every file of it is done, or changed_file_ tells which one changed.
  Task<Result<void>> send_offered() {
    ONEHOP_CO_TRYV(open_data());
    ONEHOP_CO_TRYV(co_await offer());
    set_phase(Phase::waiting_for_accept);
    ONEHOP_CO_TRYV(co_await take_accept());
    if (files_left_ == 0) co_return success();
    ONEHOP_CO_TRYV(start_data(context_, {.port = accept_.data_port, .frame_body_max_bytes = accept_.frame_body_max_bytes, .is_repair_lazy = accept_.is_repair_lazy,
                                          .has_fragments = options_.has_fragments, .peer_io = accept_.io},
                              options_.interface, options_.dscp));
    channel_->send(DataReady{});
    ONEHOP_CO_TRYV(co_await prove());
    co_return co_await transfer();
  }

  // Stops the data path at both ends in order, and renews the manifest. What the receiver finished until then it says
  // before it answers, so that no file is offered that it has.
  Task<Result<void>> restart() {
    const std::string step = "start the changed file again";
    const std::string& name = manifest_->files[*changed_file_].name;
    host_.on_notice(file::display_name(name) + " changed while it was being sent: it is sent again as it is now");
    restarted_names_.insert(name);
    channel_->send(Restart{});
    engine_->push(CommandKind::checkpoint);
    engine_->push(CommandKind::finish);
    const auto deadline = Clock::now() + limits_.checkpoint + limits_.step;
    bool is_answered = false;
    while (!is_answered || !engine_->is_closed()) {
      if (is_interrupted_) co_return Error{ExitCode::interrupted, step, "interrupted", ""};
      engine_->flush();
      Event event;
      while (engine_->pop(event)) host_.on_event(event);
      while (const auto message = channel_->pop()) {
        is_answered = is_answered || std::holds_alternative<Restarted>(*message);
        if (!is_answered) {
          ONEHOP_CO_TRYV(take_message(*message));
        }
      }
      if (channel_->end() != ChannelEnd::open) co_return ended(step);
      if (Clock::now() >= deadline) co_return Error{ExitCode::timed_out, step, peer_name_ + " did not answer in time", ""};
      co_await channel_->wait_activity(limits_.poll_short);
    }
    drop_data();
    std::vector<bool> is_settled = is_done_;
    for (std::size_t i = 0; i < is_settled.size(); ++i)
      if (!has_digests(accepted_.actions[i])) is_settled[i] = true;
    ONEHOP_CO_TRYV(send_host_.offer_again(is_settled));
    ONEHOP_CO_TRYV(file::validate(*manifest_));
    changed_file_.reset();
    accepted_ = {};
    co_return success();
  }

  Task<Result<void>> offer() {
    if (::getrandom(context_.session_id.data(), context_.session_id.size(), 0) !=
        static_cast<ssize_t>(context_.session_id.size()))
      co_return errno_error(ExitCode::internal_error, "draw a session id");
    context_.digest = options_.digest;
    context_.key_interval = options_.key_interval;
    Offer offer;
    offer.software = "onehop " ONEHOP_VERSION;
    offer.session_id = context_.session_id;
    offer.digest = context_.digest;
    offer.key_interval = context_.key_interval;
    offer.queue_count = context_.queue_count;
    offer.frame_body_max_bytes = data_->frame_body_max_bytes;
    offer.data_port = data_->data_port;
    offer.file_count = static_cast<std::uint32_t>(manifest_->files.size());
    offer.total_bytes = file::total_bytes(*manifest_);
    offer.is_repair_lazy = options_.is_repair_lazy;
    offer.has_fragments = options_.has_fragments;
    channel_->send(offer);
    ManifestPart part;
    std::size_t part_bytes = 0;
    for (const auto& entry : manifest_->files) {
      part.entries.push_back(entry);
      part_bytes += entry.name.size() + sizeof(file::ManifestEntry);
      if (part_bytes < manifest_part_bytes && part.entries.size() < manifest_entries_per_part_max) continue;
      channel_->send(part);
      part = {};
      part_bytes = 0;
      co_await channel_->wait_sent(unsent_bytes_max);
      if (channel_->has_message()) co_return success();  // it refuses what it has read so far
    }
    if (!part.entries.empty()) channel_->send(part);
    channel_->send(OfferEnd{file::manifest_hash(*manifest_)});
    co_return success();
  }

  Task<Result<void>> take_accept() {
    const std::string step = "offer the files";
    ONEHOP_CO_TRY(accept_taken, co_await expect<Accept>(limits_.consider, step));
    accept_ = std::move(accept_taken);
    if (accept_.actions.size() != manifest_->files.size() || accept_.manifest_hash != file::manifest_hash(*manifest_) ||
        accept_.frame_body_max_bytes > data_->frame_body_max_bytes ||
        (accept_.is_repair_lazy && !options_.is_repair_lazy))
      co_return violation("the peer accepted something else than what was offered", step);
    if (options_.is_repair_lazy && !accept_.is_repair_lazy) host_.on_notice("the peer keeps to eager repair: --repair lazy has no effect");
    accepted_.actions = accept_.actions;
    accepted_.peer_io = file::display_name(accept_.io);
    accepted_.folder = accept_.folder;
    for (bool is_last = !accept_.has_claims; !is_last;) {
      ONEHOP_CO_TRY(part, co_await expect<ClaimPart>(limits_.step, step));
      ONEHOP_CO_TRYV(take_claims(part));
      is_last = part.is_last;
    }
    files_left_ = static_cast<std::size_t>(std::ranges::count_if(accepted_.actions, has_digests));
    roots_.assign(manifest_->files.size(), std::nullopt);
    is_done_.assign(manifest_->files.size(), false);
    send_host_.on_accepted(accepted_);
    for (std::uint32_t file = 0; file < accepted_.actions.size(); ++file)
      if (!has_digests(accepted_.actions[file])) report_done(kept_by(accepted_.actions[file], file), *manifest_);
    co_return success();
  }

  // A claim is bounded by our own manifest: each block of each file at most once, in ascending order.
  Result<void> take_claims(const ClaimPart& part) {
    const Error bad = violation("the peer claims blocks that the offer does not have", "offer the files");
    if (part.digests.empty()) return part.is_last ? Result<void>{success()} : Result<void>{bad};
    if (part.file >= manifest_->files.size() || accepted_.actions[part.file] != FileAction::resume) return bad;
    accepted_.claims.resize(manifest_->files.size());
    auto& blocks = accepted_.claims[part.file];
    if (!blocks.empty() && part.first_block <= blocks.back().block) return bad;
    if (part.first_block + part.digests.size() > file::blocks_of(manifest_->files[part.file].size)) return bad;
    for (std::size_t i = 0; i < part.digests.size(); ++i) blocks.push_back({part.first_block + i, part.digests[i]});
    return success();
  }

  Task<Result<void>> transfer() {
    set_phase(Phase::transferring);
    PollPause pause{limits_};
    bytes_total_ = bytes_done_ = 0;
    for (std::size_t i = 0; i < roots_.size(); ++i)
      if (has_digests(accepted_.actions[i])) bytes_total_ += manifest_->files[i].size;
    while (files_left_ > 0) {
      if (is_interrupted_) {
        ONEHOP_CO_TRYV(take_events());  // the peer can keep only blocks whose digests it has
        co_return Error{ExitCode::interrupted, "transfer files", "interrupted", "Run the same command again to go on"};
      }
      engine_->flush();
      ONEHOP_CO_TRYV(follow_path());
      ONEHOP_CO_TRYV(take_events());
      if (changed_file_) co_return success();
      while (auto message = channel_->pop()) {
        ONEHOP_CO_TRYV(take_message(*message));
      }
      if (files_left_ == 0) break;
      if (channel_->end() != ChannelEnd::open) co_return ended("transfer files");
      if (bytes_done_ >= bytes_total_) channel_->nudge();  // our last digests and roots, until the FileDones come
      co_await channel_->wait_activity(pause_for(pause.next(Clock::now().time_since_epoch(), bytes_done_, bytes_total_)));
    }
    co_return success();
  }

  Result<void> take_events() {
    BlockDigests batch;
    const auto send_batch = [&](bool is_skipped) {
      if (!batch.digests.empty()) channel_->send(batch);
      batch.digests.clear();
      batch.is_skipped = is_skipped;
    };
    Event event;
    // While the peer does not read its control connection, the event ring fills and the engine waits for us.
    while (channel_->unsent_bytes() < unsent_bytes_max && engine_->pop(event)) {
      if (may_restart(event)) {
        changed_file_ = event.block.file;
        host_.on_event(event);
        break;
      }
      auto fault = fault_of(event, *manifest_);
      // A block that the peer has already is announced as well: that is how the peer learns that its copy is right.
      const bool is_skipped = event.kind == EventKind::file_message && event.block.kind == BlockKind::skipped;
      if (event.kind == EventKind::block_sent || is_skipped) {
        if (batch.is_skipped != is_skipped || batch.digests.size() == digests_per_message_max) send_batch(is_skipped);
        batch.digests.push_back({event.block.file, event.block.offset / block_bytes, event.block.digest});
        bytes_done_ += event.block.length;
      } else if (event.kind == EventKind::file_message && event.block.kind == BlockKind::root &&
                 event.block.file < roots_.size()) {
        send_batch(false);  // a file's root follows its last digest
        roots_[event.block.file] = event.block.digest;
        channel_->send(FileRoot{event.block.file, event.block.digest});
      } else if (event.kind == EventKind::all_arrived) {
        set_phase(Phase::verifying);
      }
      host_.on_event(event);
      if (fault) return std::move(*fault);
    }
    send_batch(false);
    return success();
  }

  // A source that changes gets one more chance: somebody saved it, say. One that changes again is being written to.
  [[nodiscard]] bool may_restart(const Event& event) const {
    if (event.kind != EventKind::file_message || event.block.kind != BlockKind::failed) return false;
    const FileFailure failure = event.block.failure;
    return (failure == FileFailure::source_changed || failure == FileFailure::source_vanished) &&
           event.block.file < manifest_->files.size() &&
           !restarted_names_.contains(manifest_->files[event.block.file].name);
  }

  Result<void> take_message(const Message& message) {
    const std::string step = "transfer files";
    if (auto verdict = verdict_of(message, step)) return std::move(*verdict);
    const auto* done = std::get_if<FileDone>(&message);
    if (done == nullptr) return violation("the peer sent a message out of turn", step);
    if (done->file >= roots_.size() || is_done_[done->file] || !roots_[done->file] || !can_come_to(*done))
      return violation("the peer reports a file as done that cannot be", step);
    if (*roots_[done->file] != done->root)
      return Error{ExitCode::verification_failed, "verify " + file::display_name(manifest_->files[done->file].name),
                   "the peer's digest of the file differs from ours", "Send it again"};
    is_done_[done->file] = true;
    --files_left_;
    report_done(*done, *manifest_);
    return success();
  }

  // A comparison writes nothing, and only it can find that something else was kept.
  [[nodiscard]] bool can_come_to(const FileDone& done) const {
    const FileAction action = accepted_.actions[done.file];
    if (!has_digests(action)) return false;
    if (action == FileAction::compare) return done.outcome == FileOutcome::there || done.outcome == FileOutcome::kept;
    return done.outcome == FileOutcome::received || done.outcome == FileOutcome::there;
  }

  // Every file is verified at the peer: nothing that happens now can change the outcome.
  Task<Result<void>> complete() {
    channel_->send(Complete{});
    const auto deadline = Clock::now() + limits_.step;
    while (channel_->end() == ChannelEnd::open && Clock::now() < deadline) {
      if (const auto message = channel_->pop(); message && std::holds_alternative<Bye>(*message)) break;
      channel_->nudge();  // both ends' times run until the Complete is there
      co_await channel_->wait_activity(std::min<Nanos>(limits_.poll_short, deadline - Clock::now()));
    }
    co_return success();
  }

  SendHost& send_host_;
  const SendOptions options_;
  Result<std::shared_ptr<const TlsContext>> tls_;
  ConnectState connect_state_;
  const file::Manifest* manifest_ = nullptr;
  crypto::ExporterContext context_;
  Accept accept_;
  Accepted accepted_;
  std::vector<std::optional<Digest>> roots_;
  std::vector<bool> is_done_;
  std::set<std::string> restarted_names_;  // each of them at most once
  std::optional<std::uint32_t> changed_file_;
  std::size_t files_left_ = 0;
  std::uint64_t bytes_total_ = 0, bytes_done_ = 0;  // to announce in all; announced
};

SendSession::SendSession(asio::io_context& io, SendOptions options, const PairingKey& key, SendHost& host)
    : impl_{std::make_shared<Impl>(io, std::move(options), key, host)} {}
SendSession::~SendSession() = default;
void SendSession::start(std::function<void(const SessionEnd&)> on_end) { impl_->start(std::move(on_end)); }
void SendSession::interrupt() { impl_->interrupt_any_thread(); }

}  // namespace onehop::plane
