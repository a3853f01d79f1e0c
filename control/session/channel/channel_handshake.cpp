// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// The first words on a connection: the exchange of the code, or what paired devices show each other
// instead, then TLS.
//
//   sender   ─ greeting, "as a device" ─────▶
//   receiver ◀──────────────────── greeting
//   sender   ─ proof of the pair's secret ──▶   a receiver that knows no such device answers with
//   receiver ◀─────────── proof of the same      random bytes, and ends
//   both     ═ TLS 1.3, each with the certificate of its device, which the other has pinned ═
//   receiver ◀═════════════ one byte: yours is the right one
//
// The proofs come before the certificates, so that a stranger cannot recognize a device by them.
#include <boost/asio/read.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <unistd.h>

#include "control/session/channel/channel.hpp"
#include "engine/base/check.hpp"

namespace onehop::session {

namespace {

using asio::redirect_error;
using asio::use_awaitable;

}  // namespace

// What is read here may be a stranger's. `error` is the connection's; not_onehop: what came is of
// another protocol, or a point that is none.
Task<HandshakeFailure> Channel::exchange_code(Role role, boost::system::error_code& error) {
  auto& socket = stream_.next_layer();
  const auto read = [&](std::span<std::byte> into) {
    return asio::async_read(socket, asio::buffer(into.data(), into.size()),
                            redirect_error(use_awaitable, error));
  };
  const auto write = [&](std::span<const std::byte> bytes) {
    return asio::async_write(socket, asio::buffer(bytes.data(), bytes.size()),
                             redirect_error(use_awaitable, error));
  };
  const bool is_sender = role == Role::sender;
  const bool comes_as_device = is_sender && tls_->peer() != nullptr;
  CodeExchange exchange{role, comes_as_device ? greeting_of_device : tls_->proofs().burnt_before()};
  if (is_sender) co_await write(exchange.greeting());
  ExchangeGreeting greeting;
  if (!error) co_await read(std::span{greeting}.first(exchange_tag_bytes));
  if (error) co_return HandshakeFailure::none;
  if (!is_exchange_tag(std::span{greeting}.first<exchange_tag_bytes>()))
    co_return HandshakeFailure::not_onehop;
  co_await read(std::span{greeting}.subspan(exchange_tag_bytes));
  if (error) co_return HandshakeFailure::none;
  if (!exchange.take_greeting(greeting)) co_return HandshakeFailure::not_onehop;
  peer_burnt_ = exchange.peer_burnt();
  if (comes_as_device || (!is_sender && peer_burnt_ == greeting_of_device))
    co_return co_await greet_device(role, exchange, error);
  // A burnt code answers no sender that came for it while this end waits for paired devices alone.
  const bool waits_for_devices = tls_->device() != nullptr && !tls_->device()->peers.empty();
  if (!is_sender && waits_for_devices && tls_->proofs().is_burnt())
    co_return HandshakeFailure::vanished;
  std::vector<std::byte> message;
  if (is_sender) {
    message = exchange.message(tls_->code(), local_);
    co_await write(message);
  } else {
    co_await write(exchange.greeting());
  }
  ExchangeHead head;
  if (!error) co_await read(head);
  if (error) co_return HandshakeFailure::none;
  std::vector<std::byte> said(CodeExchange::said_bytes(head));
  co_await read(said);
  if (error) co_return HandshakeFailure::none;
  if (!crypto::is_cpace_point(CodeExchange::point_of(head))) co_return HandshakeFailure::not_onehop;
  // The code as it is now: no other one may come between these lines.
  if (!is_sender) message = exchange.message(tls_->code(), local_);
  const auto psk = exchange.take_message(head, said);
  if (!psk) co_return HandshakeFailure::not_onehop;
  set_psk(ssl(), *psk, tls_->proofs().present());
  if (!is_sender) co_await write(message);
  co_return HandshakeFailure::none;
}

Task<HandshakeFailure> Channel::greet_device(Role role, const CodeExchange& exchange,
                                             boost::system::error_code& error) {
  auto& socket = stream_.next_layer();
  const auto proof_of = [&](const pair::Peer& peer, Role of) {
    return pair::hello_proof(peer.secret, of, exchange.session_id());
  };
  const pair::Identity* const self = tls_->device();
  pair::HelloProof own, theirs;
  if (role == Role::sender) {
    own = proof_of(*tls_->peer(), role);
    co_await asio::async_write(socket, asio::buffer(own), redirect_error(use_awaitable, error));
    if (!error)
      co_await asio::async_read(socket, asio::buffer(theirs), redirect_error(use_awaitable, error));
    if (error) co_return HandshakeFailure::none;
    if (pair::is_proof(theirs, proof_of(*tls_->peer(), Role::receiver))) device_ = tls_->peer();
  } else {
    const ExchangeGreeting greeting = exchange.greeting();
    co_await asio::async_write(socket, asio::buffer(greeting),
                               redirect_error(use_awaitable, error));
    if (!error)
      co_await asio::async_read(socket, asio::buffer(theirs), redirect_error(use_awaitable, error));
    if (error) co_return HandshakeFailure::none;
    ONEHOP_CHECK(::getentropy(own.data(), own.size()) == 0);
    if (self != nullptr)
      for (const pair::KnownPeer& peer : self->peers)
        if (pair::is_proof(theirs, proof_of(*peer, Role::sender))) device_ = peer;
    if (device_ != nullptr) own = proof_of(*device_, role);
    co_await asio::async_write(socket, asio::buffer(own), redirect_error(use_awaitable, error));
    if (error) co_return HandshakeFailure::none;
  }
  if (device_ == nullptr) co_return HandshakeFailure::unknown_device;
  note_known(ssl());
  co_return pin(ssl(), self->key, device_->key) ? HandshakeFailure::none
                                                : HandshakeFailure::not_onehop;
}

// A client's TLS is done before the server has looked at its certificate.
Task<void> Channel::confirm_device(Role role, boost::system::error_code& error) {
  std::array<std::byte, 1> confirmed{std::byte{1}};
  if (role == Role::receiver)
    co_await asio::async_write(stream_, asio::buffer(confirmed),
                               redirect_error(use_awaitable, error));
  else
    co_await asio::async_read(stream_, asio::buffer(confirmed),
                              redirect_error(use_awaitable, error));
}

Task<HandshakeFailure> Channel::handshake(Role role, Nanos limit) {
  const auto self = shared_from_this();
  bool is_late = false;
  timers_.watch.expires_after(limit);
  timers_.watch.async_wait([self, &is_late](const boost::system::error_code& error) {
    if (error) return;  // cancelled: the flag may be gone by now
    is_late = true;
    self->abort();
  });
  const auto type =
      role == Role::sender ? asio::ssl::stream_base::client : asio::ssl::stream_base::server;
  boost::system::error_code error;
  HandshakeFailure failure = co_await exchange_code(role, error);
  if (failure == HandshakeFailure::none && !error)
    co_await stream_.async_handshake(type, redirect_error(use_awaitable, error));
  if (failure == HandshakeFailure::none && !error && device_ != nullptr)
    co_await confirm_device(role, error);
  // An expired wait whose handler has not run yet must not find a dead flag: it runs before we go
  // on.
  if (timers_.watch.cancel() == 0 && !is_late) co_await wait_for(timers_.inbox, 0ns);
  const bool is_of_tls = error && error.category() == asio::error::get_ssl_category();
  if (failure != HandshakeFailure::none) {
    // It was no exchange.
  } else if (is_of_tls || has_failed_proof(ssl())) {
    failure = classify_handshake(ssl(), is_of_tls ? static_cast<unsigned long>(error.value()) : 0);
  } else if (is_late) {
    failure = HandshakeFailure::timed_out;
  } else if (error) {
    failure = is_vanished(error) ? HandshakeFailure::vanished : HandshakeFailure::not_onehop;
  } else if (!is_authenticated(ssl())) {
    failure = HandshakeFailure::wrong_code;
  }
  if (failure != HandshakeFailure::none) abort();
  co_return failure;
}

}  // namespace onehop::session
