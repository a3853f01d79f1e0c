// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Channel: one control connection (TCP + TLS) that carries messages. The only file pair that
// touches Asio's TLS stream.
//
//   send() ─▶ [ pending bytes ] ─▶ write loop ─▶ TLS ─▶ peer
//   pop()  ◀─ [ bounded inbox ] ◀─ read loop  ◀─ TLS ◀─ peer
//
// It owns the socket and its loops, all on the session thread. The read loop runs for the
// connection's whole life, so it notices a vanished peer in every phase. It stops reading while the
// inbox is full, and TCP then holds the peer back. It sends and takes KeepAlives itself, and does
// not interpret other messages.
#pragma once

#include <utility>  // Boost 1.74: awaitable.hpp uses std::exchange and does not include it

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/error.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/steady_timer.hpp>

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "control/session/channel/tls.hpp"
#include "control/session/liveness.hpp"
#include "control/session/message.hpp"
#include "control/session/session.hpp"
#include "engine/base/system/address.hpp"
#include "engine/base/time.hpp"

namespace onehop::session {

namespace asio = boost::asio;
template <class T>
using Task = asio::awaitable<T>;

class Channel : public std::enable_shared_from_this<Channel> {
 public:
  /// `peer` is the accepted or connected address: a socket that was reset does not know it any
  /// more. The channel keeps `tls`.
  Channel(asio::ip::tcp::socket socket, std::shared_ptr<const TlsContext> tls,
          const SessionLimits& limits, const Endpoint& peer);
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  /// handshake exchanges the code and authenticates within `limit`. On failure the socket is
  /// closed.
  [[nodiscard]] Task<HandshakeFailure> handshake(Role role, Nanos limit);
  /// start runs both loops; call it once, after handshake().
  void start();

  /// send queues a message; nothing is sent after the end.
  void send(const Message& message);
  /// hold(true) queues what is sent until hold(false). Meanwhile TCP only retransmits
  /// unacknowledged data.
  void hold(bool is_held);
  /// follow_device binds the connection to `interface` again after that was created anew, before
  /// the peer's next segment finds no socket. Error: 10 without CAP_NET_RAW.
  [[nodiscard]] Result<void> follow_device(const std::string& interface);
  /// send_keepalive sends a KeepAlive if nothing was sent for a while
  /// (Liveness::is_early_keepalive_due()).
  void send_keepalive();
  /// note_life restarts the time of silence: the peer was heard on the data path. On a link that
  /// comes and goes TCP's retransmissions may all fall into the gaps while the data path goes on.
  void note_life() { liveness_.note_received(monotonic_now()); }
  [[nodiscard]] Instant last_received_at() const noexcept { return liveness_.last_received_at(); }
  /// answers asks the peer for a sign of life; false: none came within `limit`, or the channel
  /// ended.
  [[nodiscard]] Task<bool> answers(Nanos limit);
  [[nodiscard]] std::size_t unsent_bytes() const noexcept {
    return outbox_.pending.size() + outbox_.writing.size();
  }
  /// wait_sent returns when at most `bytes_max` are left unsent, woken, at the end, or after the
  /// silent limit.
  [[nodiscard]] Task<void> wait_sent(std::size_t bytes_max);

  [[nodiscard]] std::optional<Message> pop();
  [[nodiscard]] bool has_message() const noexcept { return !inbox_.empty(); }
  /// wait_activity returns when a message is there (or comes), at the end, when woken, or after
  /// `limit`.
  [[nodiscard]] Task<void> wait_activity(Nanos limit);
  /// wait_turn is wait_activity that ignores messages, for a caller that cannot take one now.
  [[nodiscard]] Task<void> wait_turn(Nanos limit);
  /// wake ends the wait under way, or the next one.
  void wake();

  [[nodiscard]] ChannelEnd end() const noexcept { return end_; }
  [[nodiscard]] const std::string& end_cause() const noexcept { return end_cause_; }

  /// close sends what is pending and lets the peer read it all before the socket closes, without a
  /// close_notify of TLS.
  [[nodiscard]] Task<void> close();
  /// abort closes the socket at once.
  void abort();

  [[nodiscard]] const Endpoint& local() const noexcept { return local_; }
  [[nodiscard]] const Endpoint& peer() const noexcept { return peer_; }
  [[nodiscard]] std::string alpn();
  [[nodiscard]] SSL* ssl() { return stream_.native_handle(); }
  /// peer_burnt: how many codes a receiver claims to have burnt, from handshake() on. The number is
  /// not authenticated.
  [[nodiscard]] std::size_t peer_burnt() const noexcept { return peer_burnt_; }
  /// device is the paired device at the other end, proven once handshake() succeeded; null: the
  /// code was proven.
  [[nodiscard]] const pair::KnownPeer& device() const noexcept { return device_; }

 private:
  using Timer = asio::steady_timer;
  Task<HandshakeFailure> exchange_code(Role role, boost::system::error_code& error);
  Task<HandshakeFailure> greet_device(Role role, const CodeExchange& exchange,
                                      boost::system::error_code& error);
  Task<void> confirm_device(Role role, boost::system::error_code& error);
  Task<void> read_loop();
  Task<bool> read_message();
  Task<void> write_loop();
  Task<void> watch_loop();
  void finish(ChannelEnd end, std::string cause);
  void finish(const boost::system::error_code& error);

  const SessionLimits limits_;
  const std::shared_ptr<const TlsContext> tls_;  // the handshake asks it for the key
  asio::ssl::context context_;
  asio::ssl::stream<asio::ip::tcp::socket> stream_;
  struct Timers {
    explicit Timers(const asio::any_io_executor& io)
        : inbox{io}, room{io}, write{io}, sent{io}, watch{io} {}
    void cancel() {
      for (Timer* const timer : {&inbox, &room, &write, &sent, &watch}) timer->cancel();
    }
    Timer inbox, room, write, sent, watch;
  } timers_;
  Endpoint local_, peer_;
  std::deque<Message> inbox_;
  std::vector<std::byte> body_;
  struct {
    std::vector<std::byte> pending, writing;
    bool is_held = false;
  } outbox_;
  Liveness liveness_;
  unsigned bound_ifindex_ = 0;
  std::size_t peer_burnt_ = 0;
  pair::KnownPeer device_;
  bool is_reading_ = false;  // false while we hold the peer back: its silence then means nothing
  bool has_read_end_ = false, is_woken_ = false;
  ChannelEnd end_ = ChannelEnd::open;
  std::string end_cause_;
};

/// wait_for returns after `limit`, or when the timer is cancelled.
[[nodiscard]] Task<void> wait_for(asio::steady_timer& timer, Nanos limit);

/// is_vanished: the other end closed or reset it.
[[nodiscard]] bool is_vanished(const boost::system::error_code& error);

[[nodiscard]] Endpoint endpoint_of(const asio::ip::tcp::endpoint& endpoint) noexcept;

}  // namespace onehop::session
