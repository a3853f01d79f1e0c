// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Receiver: listens, and takes sessions one after the other.
#include <fmt/format.h>

#include <boost/asio/post.hpp>

#include "control/session/channel/listener.hpp"
#include "control/transfer/port/local_address.hpp"
#include "control/transfer/side.hpp"
#include "control/transfer/stranger_log.hpp"
#include "control/transfer/volume_preparer.hpp"
#include "engine/base/memory.hpp"
#include "engine/base/system/rights.hpp"
#include "engine/base/system/thread.hpp"
#include "engine/base/time.hpp"
#include "engine/sink/sink.hpp"

namespace onehop::transfer {

namespace {

class Receiver final : public Side, public session::RecvHost {
 public:
  Receiver(api::ReceiveOptions options, api::Handler handler)
      : Side{options.common, std::move(handler), "recv"}, options_{std::move(options)} {}
  void answer(std::uint64_t offer, api::Answer answer) override { preparer_.answer(offer, answer); }

 private:
  // --- Side
  Result<void> check_own() const override {
    ONEHOP_TRYV(parse_endpoint(options_.listen));
    ONEHOP_TRYV(check_word("--durability", options_.durability));
    ONEHOP_TRYV(check_word("recv --symlinks", options_.symlinks));
    return check_word("--on-exist", options_.on_exist);
  }
  Result<void> open_own() override;
  Result<session::SessionEnd> run_own() override;
  void interrupt_own() override;

  // --- session::RecvHost
  void on_listening(const onehop::Endpoint& local) override;
  void consider(std::shared_ptr<const session::OfferedVolume> offer, const crypto::CompareKey& key,
                session::Decide decide) override;
  Result<session::DataOpened> open_data(const session::PeerLink& link) override;
  Result<session::EngineRings> start_data(const session::DataPlan& plan) override;
  Result<Command> take_volume(const session::OfferedVolume& offer) override;
  void stop_data() noexcept override {
    preparer_.end();
    file_side_ = nullptr;
    path_.stop();
  }
  Result<void> fall_back() override { return path_.fall_back(); }
  Result<void> on_path(const std::string& interface, const PathUpdate& path) override {
    return path_.follow_path(interface, path);
  }
  void on_fact(const session::SessionFact& fact) override { path_.on_fact(fact); }
  session::Arrival arrival() const override { return path_.arrival(); }
  Result<session::PairingCode> renew_code(const Error& why) override {
    events_.emit(to_api(why));
    return make_code();
  }
  void on_rejected(const onehop::Endpoint& peer, const Error& why) override;
  Result<void> on_introduced(const pair::Peer& device) override { return keep(device); }
  void on_session_begin(const pair::Peer* device) override {
    path_.account().signer = device == nullptr ? nullptr : &device_->key;
    preparer_.begin_session(device);
    if (device != nullptr) events_.say("a paired device: " + device->name);
  }
  void on_session_end(const session::SessionEnd& end) override;

  std::vector<api::Started::Way> ways() const;
  Result<session::PairingCode> make_code();
  void open_and_prepare(std::shared_ptr<const session::OfferedVolume> offer,
                        const crypto::CompareKey& key, session::Decide decide, Instant since);
  Result<void> open_before_files(const IpAddress& peer);
  [[nodiscard]] bool is_small() const;
  /// A port that is opened for a small offer alone is opened anew for a later session, for which
  /// the privileges must still be had then.
  [[nodiscard]] bool can_open_again() const {
    return !options_.before_files || kept_rights() != nullptr;
  }
  void expect(const session::OfferedVolume& offer, bool is_stream);
  void begin_session(bool is_again);

  const std::string& interface_of(const session::RouteInfo& route) const {
    return fixed_interface_.empty() ? route.link.name : fixed_interface_;
  }

  const api::ReceiveOptions options_;
  std::string fixed_interface_;  // the only way in; empty: any
  Endpoint listen_;
  StrangerLog strangers_;
  std::shared_ptr<session::RecvServer> server_;
  std::shared_ptr<const session::OfferedVolume> offer_;  // the newest volume
  std::uint64_t files_offered_ = 0;
  session::SessionEnd ended_;        // the newest session, as it was told
  sink::Sink* file_side_ = nullptr;  // the data path's, while it runs
  VolumePreparer preparer_{options_, events_, io_};
  boost::asio::steady_timer way_timer_{io_};
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
    if (!listens_on_all(listen_) && IpAddress::parse(listen_.host) != local.address) continue;
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

std::vector<api::Started::Way> Receiver::ways() const {
  std::vector<api::Started::Way> ways;
  for (const LocalAddress& way :
       reachable(local_addresses(), listen_,
                 fixed_interface_.empty() ? settings_.interface : fixed_interface_))
    ways.push_back({way.interface, to_text(way.address, listen_.port)});
  return ways;
}

Result<session::PairingCode> Receiver::make_code() {
  ONEHOP_TRY(code, options_.is_code_long ? session::make_code() : session::make_words());
  events_.emit(api::Code{std::string{code.text()}, ways()});
  return code;
}

Result<session::SessionEnd> Receiver::run_own() {
  session::RecvOptions options;
  options.is_code_own = !code_;
  if (!code_) {
    ONEHOP_TRY(code, make_code());
    code_ = std::move(code);
  }
  options.address = listen_.host;
  options.port = listen_.port;
  options.is_once = options_.is_once;
  options.is_lazy_allowed = settings_.repair != "eager";
  options.is_sha256_required = digest_kind(settings_) == crypto::DigestKind::sha256;
  options.dscp = dscp_of(settings_);
  options.interface = settings_.interface;
  use_devices(options, options_.is_pairing);
  server_ = session::make_recv_server(io_, std::move(options), *code_, *this);
  session::SessionEnd end;
  ONEHOP_TRYV(server_->start([&](const session::SessionEnd& ended) { end = ended; }));
  io_.run();
  return options_.is_once && end.code == ExitCode::done ? ended_ : end;
}

void Receiver::interrupt_own() {
  events_.say(path_.account().is_stream    ? "interrupted: nothing of the stream is kept"
              : path_.account().has_data() ? "interrupted: what arrived is kept"
              : offer_ != nullptr          ? "interrupted before anything arrived"
                                           : "interrupted: nothing was under way");
  server_->interrupt();
}

void Receiver::on_listening(const onehop::Endpoint& local) {
  api::Started started;
  started.role = "recv";
  started.listen = local.text();
  started.ways = ways();
  started.directory = options_.directory;
  started.version = ONEHOP_VERSION;
  events_.emit(started);
  path_.emit_progress();
}

void Receiver::consider(std::shared_ptr<const session::OfferedVolume> offer,
                        const crypto::CompareKey& key, session::Decide decide) {
  const bool is_first = offer->first_file == 0, is_again = is_first && offer_ != nullptr;
  offer_ = offer;
  if (is_first) begin_session(is_again);
  if (!options_.is_hidden_allowed)
    if (auto visible = list::check_visible(*offer->manifest); !visible.has_value())
      return decide(visible.error());
  open_and_prepare(std::move(offer), key, std::move(decide), monotonic_now());
}

/// Where the way back is gone for now, as it may be while data flows, it is looked for again. A
/// session that has ended meanwhile has another offer, or none.
void Receiver::open_and_prepare(std::shared_ptr<const session::OfferedVolume> offer,
                                const crypto::CompareKey& key, session::Decide decide,
                                Instant since) {
  if (offer->first_file == 0) {
    if (auto opened = open_before_files(offer->peer.address); !opened.has_value()) {
      const bool is_late = monotonic_now() - since > session::SessionLimits{}.silent;
      if (is_late || !session::is_way_missing(opened.error())) return decide(opened.error());
      way_timer_.expires_after(session::way_retry_pause);
      return way_timer_.async_wait([this, offer, key, decide = std::move(decide),
                                    since](const boost::system::error_code& error) {
        if (!error && offer == offer_) open_and_prepare(offer, key, decide, since);
      });
    }
    if (auto begun = path_.account().begin_receipt(); !begun.has_value())
      return decide(begun.error());
  }
  preparer_.start(std::move(offer), key, std::move(decide));
}

/// Sockets and rings first, while the privileges are there; then the user's own rights, then the
/// folder.
Result<void> Receiver::open_before_files(const IpAddress& peer) {
  ONEHOP_TRY(route, session::find_route(peer, settings_.interface));
  ONEHOP_TRYV(path_.open_port(interface_of(route), route.source, listen_.port,
                              offer_->has_fragments, can_open_again() && is_small()));
  if (!options_.before_files) return success();
  if (const api::Error refused = options_.before_files()) return from_api(refused);
  return success();
}

Result<session::DataOpened> Receiver::open_data(const session::PeerLink& link) {
  ONEHOP_TRY(route, session::find_route(link.peer.address, settings_.interface));
  ONEHOP_TRYV(path_.open_port(interface_of(route), link.local.address, listen_.port,
                              offer_->has_fragments, can_open_again() && is_small()));
  path_.account().set_place(link.peer.address.text(), preparer_.folder());
  ONEHOP_TRY(opened, path_.opened(route));
  const auto& files = offer_->manifest->files;  // none is left where the only one has vanished
  opened.is_stream = options_.stream_fd >= 0 || (!files.empty() && files.front().is_piece());
  return std::move(opened);
}

Result<session::EngineRings> Receiver::start_data(const session::DataPlan& plan) {
  ONEHOP_TRY(io, disk::make_file_io(settings_.file_io));
  std::unique_ptr<sink::SinkVolume> volume = preparer_.take();
  expect(*offer_, volume->is_stream());
  std::vector<std::uint64_t> sizes = volume->block_sizes();
  sink::SinkOptions wanted;
  wanted.pages = path_.pages();
  auto sink = std::make_unique<sink::Sink>(preparer_.destination(), std::move(io), wanted);
  sink->add(std::move(volume), offer_->is_last);
  file_side_ = sink.get();
  return path_.start_receiving(plan, std::move(sink), std::move(sizes));
}

Result<Command> Receiver::take_volume(const session::OfferedVolume& offer) {
  std::unique_ptr<sink::SinkVolume> volume = preparer_.take();
  expect(offer, volume->is_stream());
  const std::vector<std::uint64_t> sizes = volume->block_sizes();
  file_side_->add(std::move(volume), offer.is_last);
  return path_.add_files(offer.first_file, sizes);
}

/// The offer says that all of it is small.
bool Receiver::is_small() const {
  if (!offer_->is_last) return offer_->known.is_all && offer_->known.bytes <= small_bytes_max;
  std::uint64_t left = small_bytes_max;
  for (const list::ManifestEntry& entry : offer_->manifest->files) {
    if (entry.is_piece() || entry.size > left) return false;
    left -= entry.size;
  }
  return true;
}

/// What was offered so far, and all that is said to come.
void Receiver::expect(const session::OfferedVolume& offer, bool is_stream) {
  Account& account = path_.account();
  account.is_stream = is_stream;
  for (const list::ManifestEntry& entry : offer.manifest->files) {
    account.bytes_offered += entry.size;
    // One that is offered again was counted, and so was the stream of a later piece.
    const bool is_counted = offer.is_again || (entry.is_piece() && offer.first_file > 0);
    files_offered_ += entry.is_folder() || is_counted ? 0 : 1;
  }
  account.bytes_expected =
      offer.is_last ? account.bytes_offered : std::max(account.bytes_offered, offer.known.bytes);
  account.is_all_known = offer.is_last || offer.known.is_all;
  account.files_expected =
      offer.is_last ? files_offered_ : std::max(files_offered_, offer.known.files);
}

/// begin_session forgets what the session before left, or this one (`is_again`) before a source
/// changed.
void Receiver::begin_session(bool is_again) {
  if (is_again)
    path_.account().on_restart();
  else
    files_offered_ = 0;
}

void Receiver::on_rejected(const onehop::Endpoint& peer, const Error& why) {
  const auto unsaid = strangers_.note(peer.address, monotonic_now());
  if (!unsaid) return;
  const std::string more =
      *unsaid == 0 ? "" : fmt::format(" ({} more without a line of their own)", *unsaid);
  events_.warn(peer.text() + ": " + why.message() + more);
}

void Receiver::on_session_end(const session::SessionEnd& end) {
  preparer_.end();
  way_timer_.cancel();
  if (end.is_replaced) {
    events_.say(end.error.message() + ": its transfer goes on there");
    path_.account().forget_session();
  } else {
    ended_ = path_.end(end);
  }
  offer_.reset();
  path_.account().signer = nullptr;
  if (!options_.is_once) path_.on_fact(session::Phase::connecting);  // it listens again
}

}  // namespace

std::unique_ptr<Side> make_receiver(api::ReceiveOptions options, api::Handler handler) {
  return std::make_unique<Receiver>(std::move(options), std::move(handler));
}

}  // namespace onehop::transfer
