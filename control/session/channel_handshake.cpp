// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// The first words on a connection: the exchange of the code, then TLS.
#include <boost/asio/read.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

#include "control/session/channel.hpp"

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
  CodeExchange exchange{role, tls_->proofs().burnt_before()};
  const bool is_sender = role == Role::sender;
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

Task<HandshakeFailure> Channel::handshake(Role role, Nanos limit) {
  const auto self = shared_from_this();
  bool is_late = false;
  watch_timer_.expires_after(limit);
  watch_timer_.async_wait([self, &is_late](const boost::system::error_code& error) {
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
  // An expired wait whose handler has not run yet must not find a dead flag: it runs before we go
  // on.
  if (watch_timer_.cancel() == 0 && !is_late) co_await wait_for(inbox_timer_, 0ns);
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
