// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/plane/listener.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <cerrno>
#include <map>
#include <set>
#include <utility>

#include "control/plane/recv_session.hpp"

namespace onehop::plane {

namespace {

using asio::ip::tcp;

// The kernel completes handshakes before we accept; what waits there costs the kernel little and us nothing.
constexpr int backlog_connections = 16;
constexpr Nanos accept_pause = 100ms;  // when file descriptors run out

std::optional<Error> rejection_of(HandshakeFailure failure) {
  const std::string attempt = "authenticate a sender";
  switch (failure) {
    case HandshakeFailure::none: return std::nullopt;
    case HandshakeFailure::wrong_code:
      return Error{ExitCode::authentication_failed, attempt, "it does not have the same code",
                   "Give both ends the same code"};
    case HandshakeFailure::wrong_role:
      return Error{ExitCode::authentication_failed, attempt, "it does not present itself as a sender", ""};
    case HandshakeFailure::not_onehop:
      return Error{ExitCode::authentication_failed, attempt, "it does not speak onehop", ""};
    case HandshakeFailure::timed_out:
      return Error{ExitCode::timed_out, attempt, "it did not finish the handshake in time", ""};
    case HandshakeFailure::vanished: break;
  }
  return Error{ExitCode::interrupted, attempt, "it closed the connection during the handshake", ""};
}

Error listen_error(const Endpoint& endpoint, const boost::system::error_code& error) {
  const bool is_denied = error == asio::error::access_denied;
  const char* hint = "Choose another address or port with --listen ADDR:PORT";
  if (is_denied) hint = "Choose a port from 1024 on with --listen ADDR:PORT";
  if (error == asio::error::address_in_use) hint = "Is another receiver running? Choose another port with --listen ADDR:PORT";
  if (error.value() == EADDRNOTAVAIL)
    hint = "Name an address of this machine: `ip address` lists them. One that it marks 'tentative' serves a second or two later";
  return errno_error(is_denied ? ExitCode::privilege_missing : ExitCode::io_unavailable, "listen on " + endpoint.text(), hint, error.value());
}

}  // namespace

class RecvServer::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(asio::io_context& io, RecvOptions options, const PairingKey& key, RecvHost& host)
      : io_{io}, options_{std::move(options)}, host_{host}, acceptor_{io},
        tls_{TlsContext::make({.role = Role::receiver}, key)} {}

  Result<void> start(std::function<void(const SessionEnd&)> on_end) {
    if (!tls_) return tls_.error();
    ONEHOP_TRYV(listen());
    on_end_ = std::move(on_end);
    boost::system::error_code ignored;
    host_.on_listening(endpoint_of(acceptor_.local_endpoint(ignored)));
    spawn([](std::shared_ptr<Impl> self) { return self->accept_loop(); });
    return success();
  }

  void interrupt_any_thread() {
    asio::post(io_, [self = shared_from_this()] {
      if (self->session_) {
        self->is_interrupted_ = true;
        self->session_->interrupt();
      } else {
        const bool is_fine = self->has_success_ && !self->options_.is_once;
        const ExitCode code = is_fine ? ExitCode::done : ExitCode::interrupted;
        self->stop({code, {code, "wait for a sender", "interrupted", ""}});
      }
    });
  }

 private:
  template <class Start>
  void spawn(Start start) {
    asio::co_spawn(
        io_, [self = shared_from_this(), start] { return start(self); },
        [self = shared_from_this()](const std::exception_ptr& thrown) {
          if (thrown)
            self->stop({ExitCode::internal_error,
                        {ExitCode::internal_error, "serve a connection", "out of memory or descriptors", ""}});
        });
  }

  Result<void> listen() {
    const auto parsed = IpAddress::parse(options_.address);
    if (!options_.address.empty() && !parsed)
      return Error{ExitCode::usage, "listen on " + options_.address, "it is not a numeric address",
                   "Name an address of this machine: `ip address` lists them"};
    if (parsed) return listen_on({*parsed, options_.port}, false);
    Endpoint any{{}, options_.port};
    any.address.is_v6 = true;
    if (listen_on(any, true)) return success();
    any.address.is_v6 = false;  // a machine without IPv6
    return listen_on(any, false);
  }

  Result<void> listen_on(const Endpoint& endpoint, bool is_dual) {
    sockaddr_storage storage;
    const socklen_t bytes = endpoint.to_sockaddr(storage);
    tcp::endpoint target;
    target.resize(bytes);
    std::memcpy(target.data(), &storage, bytes);
    boost::system::error_code error;
    acceptor_.close(error);
    acceptor_.open(target.protocol(), error);
    if (!error) acceptor_.set_option(tcp::acceptor::reuse_address{true}, error);
    if (!error && endpoint.address.is_v6) acceptor_.set_option(asio::ip::v6_only{!is_dual}, error);
    if (!error) acceptor_.bind(target, error);
    if (!error) acceptor_.listen(backlog_connections, error);
    if (!error) return success();
    return listen_error(endpoint, error);
  }

  Task<void> accept_loop() {
    while (!is_stopped_) {
      tcp::socket socket{io_};
      boost::system::error_code error;
      co_await acceptor_.async_accept(socket, asio::redirect_error(asio::use_awaitable, error));
      if (is_stopped_) co_return;
      if (error) {
        asio::steady_timer pause{io_};
        pause.expires_after(accept_pause);
        co_await pause.async_wait(asio::redirect_error(asio::use_awaitable, error));
        continue;
      }
      const Endpoint peer = endpoint_of(socket.remote_endpoint(error));
      if (error || is_burnt()) continue;
      // Too many strangers at once: the newest is turned away before it costs anything. A sender tries again.
      std::uint32_t& from_address = half_open_by_address_[peer.address];
      if (half_open_.size() >= options_.half_open_max || from_address >= options_.half_open_per_address_max) {
        if (from_address == 0) half_open_by_address_.erase(peer.address);
        continue;
      }
      ++from_address;
      auto channel = std::make_shared<Channel>(
          std::move(socket), tls_.value(),
          ChannelLimits{.silent = options_.limits.silent, .keep_alive = options_.limits.keep_alive});
      half_open_.insert(channel);
      spawn([channel](std::shared_ptr<Impl> self) { return self->admit(channel); });
    }
  }

  Task<void> admit(std::shared_ptr<Channel> channel) {
    co_await wait_for_turn();
    HandshakeFailure failure = HandshakeFailure::vanished;
    if (!is_stopped_ && !is_burnt()) failure = co_await channel->handshake(Role::receiver, options_.limits.handshake);
    half_open_.erase(channel);
    const auto counted = half_open_by_address_.find(channel->peer().address);
    if (counted != half_open_by_address_.end() && --counted->second == 0) half_open_by_address_.erase(counted);
    if (is_stopped_) co_return;
    if (const auto rejection = rejection_of(failure)) {
      host_.on_rejected(channel->peer(), *rejection);
      if (failure == HandshakeFailure::wrong_code || failure == HandshakeFailure::wrong_role) count_failure();
      co_return;
    }
    channel->start();
    if (is_burnt()) co_return co_await refuse(channel, "too many attempts with a wrong code");
    const std::string alpn = channel->alpn();
    if (alpn != alpn_name) {
      co_await refuse(channel,
                      "this end speaks " + std::string{alpn_name} + ", the other one " + file::display_name(alpn));
    } else if (session_) {
      co_await refuse(channel, "busy with another sender");
    } else {
      co_await serve(channel);
    }
  }

  // An attempt begins at once while no code was wrong, else in its turn, guess_pause after the one before.
  Task<void> wait_for_turn() {
    if (failures_ == 0) co_return;
    asio::steady_timer turn{io_};
    attempt_at_ = std::max(attempt_at_, Clock::now());
    turn.expires_at(attempt_at_);
    attempt_at_ += options_.limits.guess_pause;
    turns_.insert(&turn);
    boost::system::error_code ignored;
    co_await turn.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
    turns_.erase(&turn);
  }

  // The common part of all versions: Welcome tells ours, Refuse says why not.
  Task<void> refuse(std::shared_ptr<Channel> channel, std::string why) {
    host_.on_rejected(channel->peer(), {ExitCode::refused_by_peer, "serve a sender", why, ""});
    channel->send(Refuse{ExitCode::refused_by_peer, why});
    co_await channel->close();
  }

  Task<void> serve(std::shared_ptr<Channel> channel) {
    failures_ = 0;  // whoever typed it wrong before knows it now
    session_ = std::make_shared<RecvSession>(io_, options_, host_, channel);
    const auto session = session_;
    const SessionEnd end = co_await session->run();
    session_.reset();
    has_success_ = has_success_ || end.code == ExitCode::done;
    host_.on_session_end(end);
    const bool is_over = options_.is_once && session->has_offer();
    if (is_over || is_interrupted_) stop(end);
    else if (is_burnt()) stop(burnt());
  }

  [[nodiscard]] bool is_burnt() const { return failures_ >= options_.authentication_failures_max; }
  void count_failure() {
    ++failures_;
    attempt_at_ = std::max(attempt_at_, Clock::now() + options_.limits.guess_pause);
    // A running session belongs to someone who knew the code: it may finish first.
    if (is_burnt() && !session_) stop(burnt());
  }
  [[nodiscard]] SessionEnd burnt() const {
    return {ExitCode::authentication_failed,
            {ExitCode::authentication_failed, "authenticate a sender",
             std::to_string(failures_) + " attempts with a wrong code", "start again with a new code"}};
  }

  void stop(const SessionEnd& end) {
    if (is_stopped_) return;
    is_stopped_ = true;
    boost::system::error_code ignored;
    acceptor_.close(ignored);
    const auto half_open = std::exchange(half_open_, {});
    for (const auto& channel : half_open) channel->abort();
    for (asio::steady_timer* turn : turns_) turn->cancel();
    if (on_end_) std::exchange(on_end_, nullptr)(end);
  }

  asio::io_context& io_;
  const RecvOptions options_;
  RecvHost& host_;
  tcp::acceptor acceptor_;
  Result<TlsContext> tls_;
  std::function<void(const SessionEnd&)> on_end_;
  std::set<std::shared_ptr<Channel>> half_open_;
  std::map<IpAddress, std::uint32_t> half_open_by_address_;
  std::shared_ptr<RecvSession> session_;
  unsigned failures_ = 0;
  Clock::time_point attempt_at_{};           // of the next attempt, once one failed
  std::set<asio::steady_timer*> turns_;      // of those that wait for theirs
  bool is_stopped_ = false, is_interrupted_ = false, has_success_ = false;
};

RecvServer::RecvServer(asio::io_context& io, RecvOptions options, const PairingKey& key, RecvHost& host)
    : impl_{std::make_shared<Impl>(io, std::move(options), key, host)} {}
RecvServer::~RecvServer() = default;
Result<void> RecvServer::start(std::function<void(const SessionEnd&)> on_end) {
  return impl_->start(std::move(on_end));
}
void RecvServer::interrupt() { impl_->interrupt_any_thread(); }

}  // namespace onehop::plane
