// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/session/channel/listener.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <algorithm>
#include <utility>

#include "control/session/channel/admission.hpp"
#include "control/session/channel/device_watch.hpp"
#include "control/session/channel/listening_socket.hpp"
#include "control/session/channel/tcp_socket.hpp"
#include "control/session/channel/turns.hpp"
#include "control/session/introduction.hpp"
#include "engine/base/display_name.hpp"
#include "engine/base/system/descriptors.hpp"
#include "engine/base/time.hpp"

namespace onehop::session {

namespace {

using asio::ip::tcp;

constexpr Nanos accept_pause = 100ms;         // when file descriptors run out
constexpr std::size_t renew_pauses_max = 60;  // from a burnt code to the next one, in guess_pause

class Listener final : public RecvServer, public std::enable_shared_from_this<Listener> {
 public:
  Listener(asio::io_context& io, RecvOptions options, const PairingCode& code, RecvHost& host)
      : io_{io},
        options_{std::move(options)},
        host_{host},
        acceptor_{io},
        port_{options_.port},
        tls_{TlsContext::make({.role = Role::receiver,
                               .device = options_.certified(),
                               .prefers_chacha20 = options_.prefers_chacha20},
                              code)},
        admission_{options_.limits.guess_pause},
        renew_timer_{io} {}

  Result<void> start(std::function<void(const SessionEnd&)> on_end) override {
    if (!tls_) return tls_.error();
    if (!options_.interface.empty()) {
      ONEHOP_TRY(device, DeviceWatch::open(io_, options_.interface));
      device_ = std::move(device);
    }
    ONEHOP_TRYV(listen());
    on_end_ = std::move(on_end);
    boost::system::error_code ignored;
    const Endpoint local = endpoint_of(acceptor_.local_endpoint(ignored));
    port_ = local.port;
    host_.on_listening(local);
    spawn([](std::shared_ptr<Listener> self) { return self->accept_loop(); });
    if (device_) spawn([](std::shared_ptr<Listener> self) { return self->follow_device(); });
    return success();
  }

  void interrupt() override {
    asio::post(io_, [self = shared_from_this()] {
      if (!self->turns_.sessions.empty()) {
        self->is_interrupted_ = true;
        self->close_door();  // else who waits takes the first place that becomes free
        for (const auto& session : self->turns_.sessions) session->interrupt();
      } else if (self->has_success_ && !self->options_.is_once) {
        self->stop({});
      } else {
        self->give_up({ExitCode::interrupted, "wait for a sender", "interrupted", ""});
      }
    });
  }

 private:
  struct HalfOpen {
    std::shared_ptr<Channel> channel;
    asio::steady_timer turn;  // until it may try its code
    bool has_given_way = false;
    void give_way() {
      has_given_way = true;
      turn.cancel();
      channel->abort();
    }
  };

  template <class Start>
  void spawn(Start start) {
    asio::co_spawn(
        io_, [self = shared_from_this(), start] { return start(self); },
        [self = shared_from_this()](const std::exception_ptr& thrown) {
          if (thrown)
            self->give_up({ExitCode::io_unavailable, "serve a connection", "out of memory",
                           "Raise the limit on memory (ulimit -v), or end other programs"});
        });
  }

  Result<void> listen() {
    ONEHOP_TRYV(open_listening(acceptor_, {.address = options_.address,
                                           .port = port_,
                                           .interface = options_.interface,
                                           .is_anew = on_end_ != nullptr}));
    boost::system::error_code ignored;
    protocol_ = acceptor_.local_endpoint(ignored).protocol();
    return success();
  }

  Task<void> follow_device() {
    while (!is_stopped_ && co_await device_->wait_anew() && !is_stopped_)
      if (const auto listens = listen(); !listens) co_return give_up(listens.error());
  }

  /// A process without free descriptors serves no connection until one is free: reported once.
  void note_accept_error(const boost::system::error_code& error) {
    if (!has_run_out(error.value()) || std::exchange(is_exhaustion_told_, true)) return;
    host_.on_fact(Notice{ran_out("accept a connection", error.value()).message()});
  }

  Task<void> accept_loop() {
    while (!is_stopped_) {
      tcp::socket socket{io_};
      tcp::endpoint from;
      boost::system::error_code error;
      co_await acceptor_.async_wait(tcp::acceptor::wait_read,
                                    asio::redirect_error(asio::use_awaitable, error));
      if (is_stopped_) co_return;
      if (!error) accept_tcp(acceptor_, protocol_, socket, from, error);
      if (error) {
        note_accept_error(error);
        asio::steady_timer pause{io_};
        co_await wait_for(pause, accept_pause);
        continue;
      }
      if (is_burnt() && !has_devices()) continue;
      const Endpoint peer = endpoint_of(from);
      const auto half_open = std::make_shared<HalfOpen>(
          HalfOpen{std::make_shared<Channel>(std::move(socket), tls(), options_.limits, peer),
                   asio::steady_timer{io_}});
      const auto ticket = admission_.enter(peer.address, [half_open] { half_open->give_way(); });
      spawn([half_open, ticket](std::shared_ptr<Listener> self) {
        return self->admit(half_open, ticket);
      });
    }
  }

  Task<void> admit(std::shared_ptr<HalfOpen> half_open, Admission::Ticket ticket) {
    const std::shared_ptr<Channel> channel = half_open->channel;
    const auto hello = co_await authenticate(*half_open, ticket);
    admission_.leave(ticket);
    if (!hello || is_stopped_) co_return;
    if (options_.introduction == Introduction::only)
      co_return co_await refuse(channel, "it pairs devices, and takes no files now");
    if (const std::string why = objection_to(*channel); !why.empty())
      co_return co_await refuse(channel, why);
    if (!co_await wait_until_free(channel, hello->sender)) co_return;
    // Its user may have changed his mind while it waited.
    if (const std::string why = objection_to(*channel); !why.empty()) {
      turns_.wake();
      co_return co_await refuse(channel, why);
    }
    co_await serve(channel, hello->sender);
  }

  // Why a paired device is not served; empty: it is.
  std::string objection_to(const Channel& channel) {
    if (channel.device() == nullptr) return {};
    host_.refresh_devices();
    const pair::KnownPeer known = known_of(channel);
    if (known == nullptr ||
        !std::ranges::equal(known->secret.bytes(), channel.device()->secret.bytes()))
      return "it has forgotten this device: onehop pair at both pairs them again";
    return known->rule == pair::Rule::refuse ? "it takes no files of this device" : "";
  }
  // What is known now of the device at the other end.
  pair::KnownPeer known_of(const Channel& channel) const {
    return channel.device() == nullptr ? nullptr : options_.device->find(channel.device()->key);
  }

  // The connection is half open until the sender's Hello.
  Task<std::optional<Hello>> authenticate(HalfOpen& half_open, Admission::Ticket ticket) {
    Channel& channel = *half_open.channel;
    const IpAddress address = channel.peer().address;
    while (const auto next = admission_.begin_attempt(address, monotonic_now())) {
      co_await wait_for(half_open.turn, *next - monotonic_now());
      if (is_stopped_ || half_open.has_given_way) co_return reject(half_open, {});
    }
    on_exchange(channel.ssl(), [this, ticket] { admission_.rise(ticket, Standing::engaged); });
    on_binder(channel.ssl(), [this, ticket] { admission_.rise(ticket, Standing::proven); });
    host_.refresh_devices();
    const HandshakeFailure failure =
        co_await channel.handshake(Role::receiver, options_.limits.handshake);
    if (const auto rejection = rejection_of(failure)) {
      reject(half_open, *rejection);
      const bool is_guess =
          failure == HandshakeFailure::wrong_code || failure == HandshakeFailure::wrong_role;
      if (is_guess && !is_stopped_) note_wrong_code(address);
      // It had us work for nothing: the next one of its address comes a pause later.
      if (!is_guess && (failure == HandshakeFailure::unknown_device || owes_proof(channel.ssl())))
        admission_.note_refused(address, monotonic_now());
      co_return std::nullopt;
    }
    if (channel.device() == nullptr) admission_.note_right_code(address);
    channel.start();
    if (const std::string alpn = channel.alpn(); alpn != alpn_name) {
      co_await refuse(half_open.channel, "this end speaks " + std::string{alpn_name} +
                                             ", the other one " + display_name(alpn));
      co_return std::nullopt;
    }
    bool is_paired = false;
    const auto message = co_await first_message(half_open.channel, options_, host_, is_paired);
    if (is_paired && options_.introduction == Introduction::only) stop({});
    if (is_paired && !message) co_return std::nullopt;  // that was all it wanted
    if (const auto* hello = message ? std::get_if<Hello>(&*message) : nullptr) co_return *hello;
    channel.abort();
    co_return reject(half_open, {ExitCode::timed_out, "greet a sender",
                                 "it knows the code, and did not say hello", ""});
  }

  std::nullopt_t reject(const HalfOpen& half_open, const Error& why) {
    const Error gave_way{ExitCode::interrupted, "authenticate a sender",
                         "it gave way to newer connections before it had said who it is", ""};
    if (!is_stopped_)
      host_.on_rejected(half_open.channel->peer(), half_open.has_given_way ? gave_way : why);
    return std::nullopt;
  }

  [[nodiscard]] static Error refusal(std::string why) {
    return {ExitCode::refused_by_peer, "serve a sender", std::move(why), ""};
  }
  // The common part of all versions: Welcome tells ours, Refuse says why not.
  Task<void> refuse(std::shared_ptr<Channel> channel, std::string why) {
    host_.on_rejected(channel->peer(), refusal(why));
    channel->send(Refuse{ExitCode::refused_by_peer, why});
    co_await channel->close();
  }

  // So many sessions at a time: the others wait in their order, but for a sender that was here
  // before. It takes the place of its old connection as soon as that one is known to be dead. A
  // second run of the same waits until the first is over. False: it went away, or too many wait.
  Task<bool> wait_until_free(std::shared_ptr<Channel> channel, SenderToken sender) {
    if (turns_.waiting.empty() && turns_.has_room_for(sender)) co_return true;
    if (turns_.waiting.size() >= options_.waiting_max) {
      co_await refuse(channel, "busy with another sender, and " +
                                   std::to_string(turns_.waiting.size()) + " others wait");
      co_return false;
    }
    channel->send(Busy{});
    host_.on_rejected(channel->peer(), refusal("busy with another sender: it waits"));
    const bool is_back = turns_.session_of(sender) != nullptr;
    turns_.waiting.insert(is_back ? turns_.waiting.begin() : turns_.waiting.end(),
                          {channel, sender});
    bool is_there = true;
    while (is_there && turns_.next() != channel) {
      if (const auto session = turns_.session_of(sender)) {
        const bool is_alive = co_await session->is_alive();
        if (!is_alive && turns_.is_running(session)) session->replace();
      }
      if (turns_.next() == channel) break;
      // A session that is alive now may be dead in a while.
      co_await channel->wait_activity(is_back ? options_.limits.answer : options_.limits.silent);
      is_there = !is_stopped_ && channel->end() == ChannelEnd::open &&
                 !channel->has_message();  // its Bye: interrupted
    }
    // It may have died while it waited, and an interrupt may come while it is asked.
    is_there = is_there && !is_stopped_ && co_await channel->answers(options_.limits.answer) &&
               !is_stopped_;
    std::erase_if(turns_.waiting,
                  [&](const Turns::Waiting& one) { return one.channel == channel; });
    if (!is_there || options_.sessions_max > 1) turns_.wake();  // there may be room for two
    if (!is_there && !is_stopped_) co_await channel->close();
    co_return is_there;
  }

  Task<void> serve(std::shared_ptr<Channel> channel, SenderToken sender) {
    if (channel->device() == nullptr)
      tls()->proofs().forgive(
          static_cast<unsigned>(std::erase(mistyped_, channel->peer().address)));
    RecvHost& host = host_.begin_session(known_of(*channel));
    const auto session = std::make_shared<RecvSession>(io_, options_, host, channel, sender);
    turns_.sessions.push_back(session);
    spawn([session](std::shared_ptr<Listener> self) {
      return watch_progress(session, self->turns_, self->options_);
    });
    SessionEnd end = co_await session->run();
    // Each such refusal tells one bit of what is here: they come as slowly as guesses of a code.
    if (session->machine().has_refused_unsaid())
      admission_.note_refused(channel->peer().address, monotonic_now());
    end.is_replaced = session->is_replaced();
    std::erase(turns_.sessions, session);
    session->progress_timer().cancel();
    has_success_ = has_success_ || end.code == ExitCode::done;
    host.on_session_end(end);
    const bool is_over =
        options_.is_once && session->machine().has_offer() && !session->is_replaced();
    if (is_over || (is_interrupted_ && turns_.sessions.empty()))
      stop(end);
    else if (is_burnt() && !is_renewing_)
      give_up(burnt());
    turns_.wake();
  }

  [[nodiscard]] const std::shared_ptr<TlsContext>& tls() const { return tls_.value(); }
  [[nodiscard]] bool is_burnt() const { return tls()->proofs().is_burnt(); }
  [[nodiscard]] bool has_devices() const {
    return tls()->device() != nullptr && !tls()->device()->peers.empty();
  }
  [[nodiscard]] Error burnt(const char* hint = "Start again with a new code") const {
    return burnt_error(tls()->proofs().failures(), hint);
  }

  // It was counted when it was tried; here is what follows.
  void note_wrong_code(const IpAddress& address) {
    admission_.note_wrong_code(address, monotonic_now());
    if (!tls()->proofs().can_guess()) {
      if (!std::exchange(has_noticed_guessing_, true))
        host_.on_fact(Notice{
            "somebody tries wrong codes: each address may try one a second, and this code is too "
            "long to be guessed"});
      return;
    }
    if (!is_burnt()) return mistyped_.push_back(address);
    // A running session belongs to someone who knew the code: it may finish first.
    if (!options_.is_once || options_.is_code_own) {
      if (!std::exchange(is_renewing_, true))
        spawn([](std::shared_ptr<Listener> self) { return self->renew_code(); });
    } else if (turns_.sessions.empty()) {
      give_up(burnt());
    }
  }

  // Not at once: an attacker with many addresses would have as many new codes to guess at, and fill
  // the screen. Until then the burnt code stays, and admits no sender.
  Task<void> renew_code() {
    const auto times = std::min(tls()->proofs().burnt_before() + 1, renew_pauses_max);
    co_await wait_for(renew_timer_, options_.limits.guess_pause * static_cast<int>(times));
    is_renewing_ = false;
    if (is_stopped_) co_return;
    const auto code = host_.renew_code(
        burnt("Give the new code to the sender; wrong ones never burn that of 'recv --long'"));
    if (!code) co_return give_up(code.error());
    tls()->renew(code.value());
    mistyped_.clear();
  }

  // An end without a session to blame is reported as a session's end.
  void give_up(const Error& why) {
    if (is_stopped_) return;
    const SessionEnd end{why.code, why};
    if (turns_.sessions.empty()) host_.on_session_end(end);
    stop(end);
  }

  void stop(const SessionEnd& end) {
    close_door();
    if (on_end_) std::exchange(on_end_, nullptr)(end);
  }

  void close_door() {  // nobody else is served; sessions that run go on
    if (is_stopped_) return;
    is_stopped_ = true;
    boost::system::error_code ignored;
    acceptor_.close(ignored);
    if (device_) device_->close();
    admission_.clear();
    renew_timer_.cancel();
    for (const auto& [channel, sender] : turns_.waiting) {
      channel->send(
          Refuse{ExitCode::refused_by_peer, "the receiver ended after the session before"});
      spawn([ended = channel](std::shared_ptr<Listener>) { return ended->close(); });
    }
  }

  asio::io_context& io_;
  const RecvOptions options_;
  RecvHost& host_;
  tcp::acceptor acceptor_;
  tcp protocol_ = tcp::v6();  // of acceptor_
  bool is_exhaustion_told_ = false;
  std::unique_ptr<DeviceWatch> device_;  // of --iface
  std::uint16_t port_;                   // from the first listen() on the one in use
  const Result<std::shared_ptr<TlsContext>> tls_;
  Admission admission_;
  asio::steady_timer renew_timer_;
  std::vector<IpAddress> mistyped_;  // whose failures of the present code count; fewer than burn it
  std::function<void(const SessionEnd&)> on_end_;
  Turns turns_{options_.sessions_max};
  bool is_stopped_ = false, is_interrupted_ = false, has_success_ = false,
       has_noticed_guessing_ = false, is_renewing_ = false;
};

}  // namespace

std::shared_ptr<RecvServer> make_recv_server(asio::io_context& io, RecvOptions options,
                                             const PairingCode& code, RecvHost& host) {
  return std::make_shared<Listener>(io, std::move(options), code, host);
}

}  // namespace onehop::session
