// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// RawPeer: a peer that the test speaks for, message by message, over real TCP and TLS.
#pragma once

#include "control/session/channel/channel.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>

#include <array>
#include <span>

#include "tests/control/session/session_world.hpp"

namespace onehop::session::test {

using asio::ip::tcp;

// RawPeer authenticates like anyone who knows the code, says what the test wants, and keeps what it
// hears.
struct RawPeer {
  asio::io_context& io;
  std::shared_ptr<const TlsContext> tls;
  std::shared_ptr<Channel> channel;
  std::optional<HandshakeFailure> handshake;
  std::vector<Message> heard;
  bool is_over = false;
  SenderToken token{};
  bool is_resetting = false;  // closes with RST instead of FIN
  bool says_hello = true;
  std::uint32_t source = INADDR_LOOPBACK;  // any of 127.0.0.0/8
  std::optional<tcp::socket> open;         // connected, and nothing said

  RawPeer(asio::io_context& context, const TlsOptions& options, std::string_view code = right_code)
      : io{context}, tls{TlsContext::make(options, code_of(code)).value()} {}

  Task<void> listen_to() {
    for (;;) {
      while (auto message = channel->pop()) heard.push_back(std::move(*message));
      if (channel->end() != ChannelEnd::open) break;
      co_await channel->wait_activity(100ms);
    }
    is_over = true;
  }
  Task<void> speak(std::vector<Message> messages, Role role) {
    handshake = co_await channel->handshake(role, 2s);
    if (*handshake != HandshakeFailure::none) {
      is_over = true;
      co_return;
    }
    channel->start();
    if (role == Role::sender && says_hello) channel->send(Hello{token});
    for (const Message& message : messages) channel->send(message);
    co_await listen_to();
    co_await channel->close();
  }
  void connect(std::uint16_t port, std::vector<Message> messages = {}) {
    connect_only(port);
    greet(std::move(messages));
  }
  void connect_only(std::uint16_t port) {
    open.emplace(io, tcp::endpoint{asio::ip::address_v4{source}, 0});
    open->connect({asio::ip::address_v4::loopback(), port});
    if (is_resetting) open->set_option(tcp::socket::linger{true, 0});
  }
  void greet(std::vector<Message> messages = {}) {
    start(std::move(*open), std::move(messages), Role::sender);
  }
  void start(tcp::socket socket, std::vector<Message> messages, Role role) {
    const Endpoint other = endpoint_of(socket.remote_endpoint());
    channel = std::make_shared<Channel>(std::move(socket), tls,
                                        SessionLimits{.silent = 5s, .keep_alive = 500ms}, other);
    asio::co_spawn(
        io, [this, messages, role] { return speak(messages, role); },
        [](const std::exception_ptr&) {});
  }
  template <class T>
  [[nodiscard]] const T* find() const {
    for (const Message& message : heard)
      if (const auto* wanted = std::get_if<T>(&message)) return wanted;
    return nullptr;
  }
};

/// HandSender: a sender that goes no further by itself: greeting, message, ClientHello, Finished.
class HandSender {
 public:
  HandSender(World& world, std::string_view code, std::uint32_t source = INADDR_LOOPBACK)
      : socket{world.io, tcp::endpoint{asio::ip::address_v4{source}, 0}},
        world_{world},
        tls_{TlsContext::make({.role = Role::sender}, code_of(code)).value()},
        ssl_{::SSL_new(tls_->get())},
        out_{::BIO_new(::BIO_s_mem())},
        in_{::BIO_new(::BIO_s_mem())} {
    tls_->prepare(ssl_);
    ::SSL_set_bio(ssl_, in_, out_);
    ::SSL_set_connect_state(ssl_);
    socket.connect({asio::ip::address_v4::loopback(), world.recv_host.port});
  }
  ~HandSender() { ::SSL_free(ssl_); }
  HandSender(const HandSender&) = delete;
  HandSender& operator=(const HandSender&) = delete;

  void greet() { write(exchange.greeting()); }
  /// take_greeting reads the receiver's, and sends the message; false: it closed the connection.
  bool take_greeting() {
    ExchangeGreeting greeting;
    if (!read(greeting) || !exchange.take_greeting(greeting)) return false;
    message = exchange.message(tls_->code(), {});
    return true;
  }
  bool take_message() {
    if (!read(head)) return false;
    said.resize(CodeExchange::said_bytes(head));
    if (!read(said)) return false;
    psk = exchange.take_message(head, said);
    if (psk) set_psk(ssl_, *psk, tls_->proofs().present());
    return psk.has_value();
  }
  /// exchange_code does all that comes before TLS.
  void exchange_code() {
    greet();
    if (!take_greeting()) throw std::runtime_error{"no greeting"};
    write(message);
    if (!take_message()) throw std::runtime_error{"no message"};
  }
  /// handshake does a step of TLS, and returns what it says.
  int handshake(std::span<const char> answer = {}) {
    if (!answer.empty()) (void)::BIO_write(in_, answer.data(), static_cast<int>(answer.size()));
    const int result = ::SSL_do_handshake(ssl_);
    char* bytes = nullptr;
    const long count = ::BIO_get_mem_data(out_, &bytes);
    hello.assign(bytes, static_cast<std::size_t>(count));
    write(std::as_bytes(std::span{hello}));
    (void)BIO_reset(out_);
    return result;
  }
  void write(std::span<const std::byte> bytes) {
    boost::system::error_code ignored;
    asio::write(socket, asio::buffer(bytes.data(), bytes.size()), ignored);
  }
  bool read(std::span<std::byte> into) {
    socket.non_blocking(true);
    std::size_t got = 0;
    boost::system::error_code error;
    (void)world_.run([&] {
      error.clear();
      if (got < into.size())
        got += socket.read_some(asio::buffer(into.data() + got, into.size() - got), error);
      return got == into.size() || error != asio::error::would_block;
    });
    socket.non_blocking(false);
    return got == into.size();
  }

  tcp::socket socket;
  CodeExchange exchange{Role::sender, 0};
  std::vector<std::byte> message, said;
  ExchangeHead head{};
  std::optional<SessionPsk> psk;
  std::string hello;  ///< what TLS said last

 private:
  World& world_;
  std::shared_ptr<TlsContext> tls_;
  SSL* ssl_;
  BIO *out_, *in_;
};

// offer_messages: what an honest sender says to offer `manifest` as one volume.
inline Offer offer_of(const list::Manifest& manifest) {
  Offer offer;
  offer.frame_body_max_bytes = 1400;
  offer.data_port = 40'000;
  offer.known.files = manifest.files.size();
  return offer;
}
inline std::vector<Message> offer_messages(const list::Manifest& manifest) {
  return {offer_of(manifest), ManifestPart{manifest.files},
          VolumeEnd{list::manifest_hash(manifest), true}};
}

}  // namespace onehop::session::test
