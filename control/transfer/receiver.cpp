// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Receiver: listens, and takes sessions: one after the other, or as a service several at once.
#include <fmt/format.h>
#include <malloc.h>

#include <boost/asio/post.hpp>

#include <map>

#include "control/rate/link_shares.hpp"
#include "control/session/channel/listener.hpp"
#include "control/transfer/port/local_address.hpp"
#include "control/transfer/receive_session.hpp"
#include "control/transfer/side.hpp"
#include "control/transfer/stranger_log.hpp"
#include "engine/base/time.hpp"

namespace onehop::transfer {

namespace {

class Receiver final : public Side, public ReceiveSession {
 public:
  Receiver(api::ReceiveOptions options, api::Handler handler)
      : Side{options.common, tagged(handler, 0), api::Role::receiving},
        ReceiveSession{std::move(options),
                       {Side::io_, Side::settings_, Side::events_, Side::path_,
                        std::make_shared<sink::TakenRoom>()}},
        handler_{std::move(handler)} {}
  void answer(std::uint64_t offer, api::Answer answer) override {
    if (!options_.is_service) return ReceiveSession::answer(offer, answer);
    boost::asio::post(io_, [this, offer, answer] {  // the thread that may add others
      ReceiveSession::answer(offer, answer);
      for (const auto& other : others_)
        if (other != nullptr) other->host.answer(offer, answer);
    });
  }

 private:
  using Side::events_;
  using Side::io_;
  using Side::path_;
  using Side::settings_;
  /// Another: the host of a session beside the first one, which goes with it.
  struct Another {
    class Host final : public ReceiveSession {
     public:
      Host(Receiver& receiver, std::size_t place, Shared shared)
          : ReceiveSession{receiver.options_, std::move(shared)},
            receiver_{receiver},
            place_{place} {}
      void on_session_end(const session::SessionEnd& end) override {
        ReceiveSession::on_session_end(end);
        receiver_.release(place_);
      }

     private:
      Receiver& receiver_;
      const std::size_t place_;
    };
    Another(Receiver& receiver, std::size_t place);
    const Events events;
    DataPath path;
    Host host;
  };

  // --- Side
  Result<void> check_own() const override {
    ONEHOP_TRYV(parse_endpoint(options_.listen));
    ONEHOP_TRYV(check_word("--durability", options_.durability));
    ONEHOP_TRYV(check_word("recv --symlinks", options_.symlinks));
    const PortKind* const kind = port_kind(options_.common.io);
    if (options_.sessions_max > 1 && kind != nullptr && kind->is_bound)
      return Error{ExitCode::usage, "take several sessions at once",
                   "--io " + options_.common.io + " has one port for all of them",
                   "Add --sessions 1, or leave --io to auto"};
    return check_word("--on-exist", options_.on_exist);
  }
  Result<void> open_own() override;
  Result<session::SessionEnd> run_own() override;
  void interrupt_own() override;

  // --- session::RecvHost, of the server
  void on_listening(const onehop::Endpoint& local) override;
  Result<session::PairingCode> renew_code(const Error& why) override {
    events_.emit(to_api(why));
    auto code = make_code();
    if (code) show(code.value());
    return code;
  }
  void on_rejected(const onehop::Endpoint& peer, const Error& why) override;
  Result<void> on_introduced(const pair::Peer& device) override { return keep(device); }
  void refresh_devices() override { Side::refresh_devices(); }
  session::RecvHost& begin_session(const pair::KnownPeer& device) override;

  /// release lets go of the host at that place, once what its timers have queued is over.
  void release(std::size_t place);
  std::vector<api::Started::Way> ways() const;
  Result<session::PairingCode> make_code() const;
  void show(const session::PairingCode& code) const;
  /// tagged adds to a handler the session that each event is of, if there may be several.
  api::Handler tagged(api::Handler handler, std::size_t place);
  void beat();
  /// share divides each link among the sessions over it, for as long as there are several.
  void share();

  const api::Handler handler_;
  Endpoint listen_;
  StrangerLog strangers_;
  std::shared_ptr<session::RecvServer> server_;
  std::vector<std::unique_ptr<Another>> others_;  // null: nobody has that place
  std::vector<std::uint64_t> numbers_;  // of the sessions, by the place of their host; 0: none
  std::uint64_t sessions_total_ = 0, told_ = 0;  // of which one the newest event was
  boost::asio::steady_timer beat_timer_{io_}, share_timer_{io_};
  std::map<int, rate::LinkShares> shares_;  // by the interface
  bool is_sharing_ = false, is_code_shown_ = false;
};

/// A port that needs its interface opens it now, while the privileges are there and an error can
/// still be seen.
Result<void> Receiver::open_own() {
  ONEHOP_TRY(listen, parse_endpoint(options_.listen));
  listen_ = std::move(listen);
  set_place({}, listen_.port);
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
  set_place(candidates.front().interface, listen_.port);
  return path_.open_port(fixed_interface(), candidates.front().address, listen_.port, false);
}

std::vector<api::Started::Way> Receiver::ways() const {
  std::vector<api::Started::Way> ways;
  for (const LocalAddress& way :
       reachable(local_addresses(), listen_,
                 fixed_interface().empty() ? settings_.interface : fixed_interface()))
    ways.push_back({way.interface, to_text(way.address, listen_.port)});
  return ways;
}

Result<session::PairingCode> Receiver::make_code() const {
  return options_.is_code_long || options_.is_service ? session::make_code()
                                                      : session::make_words();
}

void Receiver::show(const session::PairingCode& code) const {
  events_.emit(api::Code{std::string{code.text()}, ways()});
}

Result<session::SessionEnd> Receiver::run_own() {
  session::RecvOptions options;
  options.is_code_own = !code_;
  if (!code_) {
    ONEHOP_TRY(code, make_code());
    code_ = std::move(code);
    is_code_shown_ = !options_.is_service;
  }
  options.address = listen_.host;
  options.port = listen_.port;
  options.is_once = options_.is_once;
  options.sessions_max = options_.sessions_max;
  options.is_lazy_allowed = settings_.repair != "eager";
  options.is_sha256_required = digest_kind(settings_) == crypto::DigestKind::sha256;
  options.dscp = dscp_of(settings_);
  options.prefers_chacha20 = prefers_chacha20(settings_);
  options.interface = settings_.interface;
  use_devices(options, options_.is_pairing);
  server_ = session::make_recv_server(io_, std::move(options), *code_, *this);
  session::SessionEnd end;
  ONEHOP_TRYV(server_->start([&](const session::SessionEnd& ended) {
    end = ended;
    beat_timer_.cancel();
  }));
  if (options_.beat_seconds > 0 && handler_) beat();
  io_.run();
  return options_.is_once && end.code == ExitCode::done ? ended_ : end;
}

void Receiver::interrupt_own() {
  events_.say(what_is_kept());
  server_->interrupt();
}

void Receiver::on_listening(const onehop::Endpoint& local) {
  if (is_code_shown_) show(*code_);  // not before: a port that is taken ends it without one
  api::Started started;
  started.role = api::Role::receiving;
  started.listen = local.text();
  started.ways = ways();
  started.directory = options_.directory;
  started.version = ONEHOP_VERSION;
  events_.emit(started);
  path_.emit_progress();
}

void Receiver::on_rejected(const onehop::Endpoint& peer, const Error& why) {
  const auto unsaid = strangers_.note(peer.address, monotonic_now());
  if (!unsaid) return;
  const std::string more =
      *unsaid == 0 ? "" : fmt::format(" ({} more without a line of their own)", *unsaid);
  events_.warn(peer.text() + ": " + why.message() + more);
}

Receiver::Another::Another(Receiver& receiver, std::size_t place)
    : events{receiver.tagged(receiver.handler_, place)},
      path{receiver.io_, receiver.settings_, events, api::Role::receiving},
      host{receiver,
           place,
           {receiver.io_, receiver.settings_, events, path, receiver.taken_room()}} {
  const std::size_t port = receiver.listen_.port + place;
  host.set_place(
      {}, receiver.listen_.port == 0 || port > 0xffff ? 0 : static_cast<std::uint16_t>(port));
}

session::RecvHost& Receiver::begin_session(const pair::KnownPeer& device) {
  std::size_t place = 0;
  ReceiveSession* host = this;
  while (host->is_busy()) {
    if (place == others_.size()) others_.emplace_back();
    auto& other = others_[place++];
    if (other == nullptr) other = std::make_unique<Another>(*this, place);
    host = &other->host;
  }
  numbers_.resize(others_.size() + 1);
  numbers_[place] = ++sessions_total_;
  host->begin(device, device_ == nullptr ? nullptr : &device_->key);
  if (!std::exchange(is_sharing_, true)) share();
  return *host;
}

void Receiver::share() {
  std::map<int, std::vector<rate::LinkShares::Arrived>> arrived;
  std::vector<std::pair<int, DataPath*>> paths;
  std::size_t busy = 0;
  const auto add = [&](ReceiveSession& host, std::size_t place) {
    if (!host.is_busy()) return;
    ++busy;
    const auto total = host.path().arrived();
    if (!total) return;
    paths.emplace_back(host.path().ifindex(), &host.path());
    arrived[host.path().ifindex()].push_back({numbers_[place], *total});
  };
  add(*this, 0);
  for (std::size_t i = 0; i < others_.size(); ++i)
    if (others_[i] != nullptr) add(others_[i]->host, i + 1);
  const Instant now = monotonic_now();
  std::map<int, BytesPerSecond> levels;
  for (const auto& [ifindex, sessions] : arrived)
    levels[ifindex] = shares_[ifindex].step(now, sessions);
  for (const auto& [ifindex, path] : paths) path->offer(levels[ifindex]);
  is_sharing_ = busy > 1;
  if (!is_sharing_) return shares_.clear();
  share_timer_.expires_after(rate::LinkShares::period);
  share_timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error) share();
  });
}

void Receiver::release(std::size_t place) {
  boost::asio::post(io_, [this, place] {
    auto& other = others_[place - 1];
    if (other == nullptr || other->host.is_busy()) return;
    other.reset();
    (void)::malloc_trim(0);
  });
}

api::Handler Receiver::tagged(api::Handler handler, std::size_t place) {
  if (!handler) return {};
  return [this, handler = std::move(handler), place](const api::Event& event) {
    if (!options_.is_service) return handler(event);
    const bool is_listener = place == 0 && !is_busy();
    const std::uint64_t number = is_listener ? 0 : numbers_[place];
    if (std::exchange(told_, number) != number) handler(api::InSession{number});
    if (const auto* progress = std::get_if<api::Progress>(&event)) {
      api::Progress numbered = *progress;
      numbered.session = number;
      return handler(numbered);
    }
    handler(event);
  };
}

/// beat shows who watches us that this thread lives.
void Receiver::beat() {
  handler_(api::Beat{});
  beat_timer_.expires_after(
      std::chrono::duration_cast<Nanos>(std::chrono::duration<double>(options_.beat_seconds)));
  beat_timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error) beat();
  });
}

}  // namespace

std::unique_ptr<Side> make_receiver(api::ReceiveOptions options, api::Handler handler) {
  return std::make_unique<Receiver>(std::move(options), std::move(handler));
}

}  // namespace onehop::transfer
