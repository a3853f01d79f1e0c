// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/session/channel/channel.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>

#include "control/session/channel/route.hpp"

namespace onehop::session {

namespace {

using asio::redirect_error;
using asio::use_awaitable;

// Messages that may wait for their session. Each is at most 1 MiB, so this bounds what a peer can
// make us hold.
constexpr std::size_t inbox_messages_max = 8;
// A write of this size fills a few TLS records; more would only hold memory.
constexpr std::size_t write_bytes_max = 256 * 1024;
constexpr Nanos linger_span = 2s;  // for the last messages to be read before the socket is closed

SSL_CTX* with_reference(const TlsContext& tls) {
  ::SSL_CTX_up_ref(tls.get());  // Asio's context frees one reference
  return tls.get();
}

/// hurry_retransmission bounds the retransmission timeout of both sides, which suits paths of many
/// hops by default. 20 ms and not 200: where the link loses frames a segment lost twice waits for
/// it, and the last files' verification with it. 1 s and not 120: after a link was away TCP finds
/// out with its next retransmission, and each has waited twice as long as the one before. TCP
/// counts its attempts (tcp_retries2), and would give up after 11 s of them: when to give up is the
/// channel's to say, so the time is set far beyond its limit. Hints: kernels before Linux 6.15 have
/// no such bounds. The receiving end's delayed acknowledgements stay below its own value
/// (tcp_delack_max).
void hurry_retransmission(int socket) {
  constexpr int rto_max_ms_option = 44,
                rto_min_us_option =
                    45;  // TCP_RTO_MAX_MS, TCP_RTO_MIN_US; older headers lack the names
  constexpr int rto_max_ms = 1'000, rto_min_us = 20'000;  // 1 s is the least that the kernel takes
  constexpr unsigned give_up_ms = 600'000;
  (void)::setsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &give_up_ms, sizeof give_up_ms);
  (void)::setsockopt(socket, IPPROTO_TCP, rto_max_ms_option, &rto_max_ms, sizeof rto_max_ms);
  (void)::setsockopt(socket, IPPROTO_TCP, rto_min_us_option, &rto_min_us, sizeof rto_min_us);
}

}  // namespace

bool is_vanished(const boost::system::error_code& error) {
  return error == asio::error::eof || error == asio::error::connection_reset ||
         error == asio::error::broken_pipe || error == asio::error::connection_aborted ||
         error == asio::ssl::error::stream_truncated;
}

Endpoint endpoint_of(const asio::ip::tcp::endpoint& endpoint) noexcept {
  return Endpoint::from_sockaddr(endpoint.data(), static_cast<socklen_t>(endpoint.size()))
      .value_or(Endpoint{});
}

Channel::Channel(asio::ip::tcp::socket socket, std::shared_ptr<const TlsContext> tls,
                 const SessionLimits& limits, const Endpoint& peer)
    : limits_{limits},
      tls_{std::move(tls)},
      context_{with_reference(*tls_)},
      stream_{std::move(socket), context_},
      timers_{stream_.get_executor()},
      peer_{peer},
      liveness_{limits, monotonic_now()} {
  boost::system::error_code ignored;
  local_ = endpoint_of(stream_.next_layer().local_endpoint(ignored));
  stream_.next_layer().set_option(asio::ip::tcp::no_delay{true}, ignored);
  hurry_retransmission(stream_.next_layer().native_handle());
  tls_->prepare(ssl());
}

std::string Channel::alpn() { return negotiated_alpn(ssl()); }

void Channel::start() {
  const auto self = shared_from_this();
  liveness_ = {limits_, monotonic_now()};
  const auto executor = stream_.get_executor();
  const auto on_end = [self](const std::exception_ptr& thrown) {
    if (thrown) self->finish(ChannelEnd::failed, "out of memory");
  };
  for (const auto loop : {&Channel::read_loop, &Channel::write_loop, &Channel::watch_loop})
    asio::co_spawn(
        executor, [self, loop] { return (*self.*loop)(); }, on_end);
}

void Channel::finish(ChannelEnd end, std::string cause) {
  if (end_ == ChannelEnd::open) {
    end_ = end;
    end_cause_ = std::move(cause);
  }
  timers_.cancel();
}

void Channel::finish(const boost::system::error_code& error) {
  if (is_vanished(error))
    return finish(ChannelEnd::closed_by_peer, "the peer closed the connection");
  if (error == asio::error::timed_out)
    return finish(ChannelEnd::silent, "TCP gave the connection up");
  finish(ChannelEnd::failed, error.message());
}

Task<void> wait_for(asio::steady_timer& timer, Nanos limit) {
  boost::system::error_code ignored;
  timer.expires_after(limit);
  co_await timer.async_wait(redirect_error(use_awaitable, ignored));
}

Task<bool> Channel::read_message() {
  std::array<std::byte, message_header_bytes> header_bytes;
  boost::system::error_code error;
  co_await asio::async_read(stream_, asio::buffer(header_bytes),
                            redirect_error(use_awaitable, error));
  if (error) {
    finish(error);
    co_return false;
  }
  note_life();
  const auto header = decode_message_header(header_bytes);
  if (!header) {
    finish(ChannelEnd::violation, "the peer sent a message of unknown type or excessive length");
    co_return false;
  }
  body_.resize(header->body_bytes);
  if (!body_.empty())
    co_await asio::async_read(stream_, asio::buffer(body_), redirect_error(use_awaitable, error));
  if (error) {
    finish(error);
    co_return false;
  }
  note_life();
  auto message = decode_message(header->type, body_);
  if (!message) {
    finish(ChannelEnd::violation,
           "the peer sent a malformed " + std::string{name_of(header->type)} + " message");
    co_return false;
  }
  // Messages of more than a record are rare (manifest, claims); their buffer is not kept for the
  // whole session.
  if (body_.capacity() > 64 * 1024) body_ = {};
  if (const auto* keep_alive = std::get_if<KeepAlive>(&*message)) {
    if (keep_alive->wants_answer && unsent_bytes() == 0)
      send(KeepAlive{});  // what waits to be sent is an answer, too
    co_return true;
  }
  inbox_.push_back(std::move(*message));
  timers_.inbox.cancel();
  co_return true;
}

Task<void> Channel::read_loop() {
  for (;;) {
    while (inbox_.size() >= inbox_messages_max && end_ == ChannelEnd::open) {
      is_reading_ = false;
      co_await wait_for(timers_.room, 1s);
    }
    if (!is_reading_) note_life();
    is_reading_ = true;
    const bool is_read = co_await read_message();
    if (!is_read) break;
    // After our own goodbye only the end of the stream matters; what still comes is dropped.
    if (end_ != ChannelEnd::open) inbox_.clear();
  }
  has_read_end_ = true;
  timers_.sent.cancel();
  timers_.inbox.cancel();
}

Task<void> Channel::write_loop() {
  while (end_ == ChannelEnd::open) {
    if (outbox_.pending.empty() || outbox_.is_held) {
      if (outbox_.pending.empty()) timers_.sent.cancel();
      co_await wait_for(timers_.write, 1h);
      continue;
    }
    if (outbox_.pending.size() <= write_bytes_max) {
      outbox_.writing.swap(outbox_.pending);
      outbox_.pending.clear();
    } else {
      const auto middle = outbox_.pending.begin() + static_cast<std::ptrdiff_t>(write_bytes_max);
      outbox_.writing.assign(outbox_.pending.begin(), middle);
      outbox_.pending.erase(outbox_.pending.begin(), middle);
    }
    boost::system::error_code error;
    co_await asio::async_write(stream_, asio::buffer(outbox_.writing),
                               redirect_error(use_awaitable, error));
    outbox_.writing.clear();
    liveness_.note_sent(monotonic_now());
    timers_.sent.cancel();
    if (!error) continue;
    // What the peer said last may still be on its way to the read loop, which is the one that ends
    // the channel. A reset shows there as well.
    outbox_.pending.clear();
    if (!is_vanished(error)) finish(error);
    co_return;
  }
}

Task<void> Channel::watch_loop() {
  const Nanos step = std::min<Nanos>(limits_.keep_alive / 2, 1s);
  while (end_ == ChannelEnd::open) {
    co_await wait_for(timers_.watch, step);
    if (end_ != ChannelEnd::open) break;
    const auto now = monotonic_now();
    if (is_reading_ && inbox_.size() < inbox_messages_max && liveness_.is_silent(now)) {
      finish(ChannelEnd::silent,
             "the peer said nothing for " + std::to_string(limits_.silent / 1s) + " s");
      abort();
      break;
    }
    if (liveness_.is_keepalive_due(now) && unsent_bytes() == 0) send(KeepAlive{});
  }
}

void Channel::hold(bool is_held) {
  outbox_.is_held = is_held;
  if (!is_held) timers_.write.cancel();
}

Result<void> Channel::follow_device(const std::string& interface) {
  const unsigned ifindex = ::if_nametoindex(interface.c_str());
  if (ifindex == 0 || ifindex == bound_ifindex_) return success();
  if (std::exchange(bound_ifindex_, ifindex) == 0 ||
      bind_to_device(stream_.next_layer().native_handle(), interface))
    return success();
  return Error{ExitCode::privilege_missing, "go on over " + interface,
               "it was made anew, and to move a connection there takes CAP_NET_RAW",
               "Run the same command again to go on"};
}

void Channel::send_keepalive() {
  if (liveness_.is_early_keepalive_due(monotonic_now()) && unsent_bytes() == 0) send(KeepAlive{});
}

Task<bool> Channel::answers(Nanos limit) {
  constexpr Nanos poll_interval{20ms};  // a peer on the same link answers within a few
  const auto self = shared_from_this();
  const auto asked_at = monotonic_now();
  const auto has_heard = [&] { return liveness_.last_received_at() > asked_at; };
  send(KeepAlive{.wants_answer = true});
  asio::steady_timer timer{stream_.get_executor()};
  while (end_ == ChannelEnd::open && !has_heard() && monotonic_now() < asked_at + limit)
    co_await wait_for(timer, poll_interval);
  co_return end_ == ChannelEnd::open&& has_heard();
}

void Channel::send(const Message& message) {
  if (end_ != ChannelEnd::open) return;
  encode_message(message, outbox_.pending);
  timers_.write.cancel();
}

Task<void> Channel::wait_sent(std::size_t bytes_max) {
  const auto deadline = monotonic_now() + limits_.silent;
  while (end_ == ChannelEnd::open && unsent_bytes() > bytes_max && !is_woken_ &&
         monotonic_now() < deadline)
    co_await wait_for(timers_.sent, std::max<Nanos>(deadline - monotonic_now(), 1ms));
  is_woken_ = false;
}

std::optional<Message> Channel::pop() {
  if (inbox_.empty()) return std::nullopt;
  Message message = std::move(inbox_.front());
  inbox_.pop_front();
  timers_.room.cancel();
  return message;
}

void Channel::wake() {
  is_woken_ = true;
  timers_.inbox.cancel();
  timers_.sent.cancel();
}

Task<void> Channel::wait_activity(Nanos limit) {
  if (!inbox_.empty() || end_ != ChannelEnd::open) co_return;
  co_await wait_turn(limit);
}

Task<void> Channel::wait_turn(Nanos limit) {
  if (std::exchange(is_woken_, false)) co_return;
  co_await wait_for(timers_.inbox, limit);
  is_woken_ = false;
}

Task<void> Channel::close() {
  const auto self = shared_from_this();
  const auto deadline = monotonic_now() + linger_span;
  while (end_ == ChannelEnd::open && unsent_bytes() > 0 && monotonic_now() < deadline)
    co_await wait_for(timers_.sent, std::max<Nanos>(deadline - monotonic_now(), 1ms));
  const bool is_polite = end_ == ChannelEnd::open;
  finish(ChannelEnd::closed_here, "closed");
  inbox_.clear();
  timers_.room.cancel();
  if (is_polite) {
    // FIN, then read until the peer's, because closing a socket with unread bytes resets the
    // connection and can take our last message with it. No close_notify: Bye and Failure are the
    // protocol's own, and an end without one of them is an interruption, so a forged FIN gains
    // nothing.
    boost::system::error_code ignored;
    stream_.next_layer().shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
    while (!has_read_end_ && monotonic_now() < deadline)
      co_await wait_for(timers_.sent, std::max<Nanos>(deadline - monotonic_now(), 1ms));
  }
  abort();
}

void Channel::abort() {
  boost::system::error_code ignored;
  stream_.next_layer().close(ignored);
  finish(ChannelEnd::closed_here, "closed");
}

}  // namespace onehop::session
