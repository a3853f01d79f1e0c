// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// RawPeer: a peer that the test speaks for, message by message, over real TCP and TLS.
#pragma once

#include "control/session/channel.hpp"

#include <boost/asio/co_spawn.hpp>

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
      : io{context}, tls{TlsContext::make(options, key_of(code)).value()} {}

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

// offer_messages: what an honest sender says to offer `manifest` as one chapter.
inline Offer offer_of(const file::Manifest& manifest) {
  Offer offer;
  offer.frame_body_max_bytes = 1400;
  offer.data_port = 40'000;
  offer.known.files = manifest.files.size();
  return offer;
}
inline std::vector<Message> offer_messages(const file::Manifest& manifest) {
  return {offer_of(manifest), ManifestPart{manifest.files},
          ChapterEnd{file::manifest_hash(manifest), true}};
}

}  // namespace onehop::session::test
