// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Goal:   whoever does not know the code costs a bound and changes nothing, and no end settles for
//         less than the code.
// Method: raw sockets, other TLS clients and servers, and presented identities against real
//         sessions on loopback.
#include "tests/control/session/raw_peer.hpp"

#include <boost/asio/write.hpp>

#include <catch2/catch.hpp>

#include <deque>

using namespace onehop;
using namespace onehop::session;
using namespace onehop::session::test;

TEST_CASE("K5 an end that presents its own role, or is reflected to itself, is refused",
          "[control][session]") {
  World world;
  world.listen();
  RawPeer peer{
      world.io,
      {.role = Role::sender, .identity = "onehop pairing v1; client=receiver; server=sender"}};
  peer.connect(world.recv_host.port);
  REQUIRE(world.run([&] { return peer.is_over && !world.recv_host.rejections.empty(); }));
  CHECK(peer.handshake == HandshakeFailure::wrong_code);
  CHECK(world.recv_host.rejections[0].code == ExitCode::authentication_failed);

  // Selfie: what a sender says is thrown back at it. It is no TLS server, so nothing comes of it.
  World mirror_world;
  tcp::acceptor acceptor{mirror_world.io, {asio::ip::address_v4::loopback(), 0}};
  mirror_world.send_options.port = acceptor.local_endpoint().port();
  std::optional<tcp::socket> mirrored;
  std::array<char, 4096> buffer;
  acceptor.async_accept([&](const boost::system::error_code&, tcp::socket socket) {
    mirrored.emplace(std::move(socket));
    mirrored->async_read_some(asio::buffer(buffer),
                              [&](const boost::system::error_code& error, std::size_t bytes) {
                                if (!error) asio::write(*mirrored, asio::buffer(buffer, bytes));
                              });
  });
  mirror_world.send();
  REQUIRE(mirror_world.run([&] { return mirror_world.send_end.has_value(); }));
  CHECK(mirror_world.send_end->code != ExitCode::done);
  CHECK(mirror_world.send_host.opened == 0);
}

TEST_CASE("K4 a client of TLS 1.2, or without the PSK, gets no session and is no guess",
          "[control][session]") {
  const bool is_old = GENERATE(true, false);
  World world;
  world.listen();
  asio::ssl::context context{asio::ssl::context::tls_client};
  ::SSL_CTX_set_max_proto_version(context.native_handle(),
                                  is_old ? TLS1_2_VERSION : TLS1_3_VERSION);
  asio::ssl::stream<tcp::socket> stream{world.io, context};
  stream.next_layer().connect({asio::ip::address_v4::loopback(), world.recv_host.port});
  std::optional<boost::system::error_code> result;
  stream.async_handshake(asio::ssl::stream_base::client,
                         [&](const boost::system::error_code& error) { result = error; });
  REQUIRE(world.run([&] { return result.has_value() && world.recv_host.rejections.size() == 1; }));
  CHECK(*result);
  CHECK_FALSE(world.recv_end.has_value());
  REQUIRE(world.send_to_end() == ExitCode::done);
}

TEST_CASE("N7 garbage before TLS is dropped and does not count as a guess", "[control][session]") {
  World world;
  world.recv_options.limits.handshake = 400ms;
  world.listen();
  for (int i = 0; i < 5; ++i) {
    tcp::socket socket{world.io};
    socket.connect({asio::ip::address_v4::loopback(), world.recv_host.port});
    asio::write(socket, asio::buffer(std::string(100'000, 'x')));
    const std::size_t before = world.recv_host.rejections.size();
    REQUIRE(world.run([&] { return world.recv_host.rejections.size() > before; }));
  }
  CHECK_FALSE(world.recv_end.has_value());
  REQUIRE(world.send_to_end() == ExitCode::done);
}

namespace {
/// is_closed: the other end has closed it.
bool is_closed(tcp::socket& socket) {
  socket.non_blocking(true);
  std::array<char, 1> byte;
  boost::system::error_code error;
  socket.read_some(asio::buffer(byte), error);
  return error != asio::error::would_block;
}
}  // namespace

TEST_CASE(
    "N7 half-open connections are bounded per address: the oldest gives way, and a sender gets in "
    "at once",
    "[control][session]") {
  World world;
  world.listen();
  std::vector<tcp::socket> flood;
  for (int i = 0; i < 40; ++i) {
    flood.emplace_back(world.io);
    flood.back().connect({asio::ip::address_v4::loopback(), world.recv_host.port});
    world.run([] { return false; }, 2ms);
  }
  REQUIRE(world.run([&] { return world.recv_host.rejections.size() == 36; }));
  for (std::size_t i = 0; i < flood.size(); ++i) CHECK(is_closed(flood[i]) == (i < 36));
  CHECK(world.recv_host.rejections[0].message().find("gave way") != std::string::npos);
  // Within its wait of half a second, although none of the four has timed out.
  REQUIRE(world.send_to_end() == ExitCode::done);
}

namespace {
/// crowd: idle connections, each of an address of its own.
std::deque<tcp::socket> crowd(World& world, std::size_t count) {
  std::deque<tcp::socket> sockets;
  for (std::uint32_t i = 0; i < count; ++i) {
    sockets.emplace_back(world.io, tcp::endpoint{asio::ip::address_v4{0x7f000100U + i}, 0});
    sockets.back().connect({asio::ip::address_v4::loopback(), world.recv_host.port});
    world.run([] { return false; }, 2ms);
  }
  return sockets;
}
}  // namespace

TEST_CASE("N7 whoever has proven the code keeps its place until its Hello, however many come",
          "[control][session]") {
  World world;
  world.listen();
  RawPeer sender{world.io, {.role = Role::sender}};
  sender.says_hello = false;
  sender.connect(world.recv_host.port);
  REQUIRE(world.run([&] { return sender.handshake.has_value(); }));
  REQUIRE(sender.handshake == HandshakeFailure::none);
  const auto strangers = crowd(world, 40);
  REQUIRE(world.run([&] { return world.recv_host.rejections.size() == 24; }));
  CHECK(sender.channel->end() == ChannelEnd::open);
  sender.channel->send(Hello{});
  CHECK(world.run([&] { return sender.find<Welcome>() != nullptr; }));
}

namespace {
/// prove ends the handshake with the receiver's answer, which `sender` waits for.
void prove(World& world, HandSender& sender) {
  REQUIRE(world.run([&] { return sender.socket.available() > 0; }));
  std::array<char, 16 * 1024> answer;
  const std::size_t bytes = sender.socket.read_some(asio::buffer(answer));
  CHECK(sender.handshake({answer.data(), bytes}) == 1);
  world.run([] { return false; }, 50ms);
  CHECK_FALSE(is_closed(sender.socket));
}
}  // namespace

TEST_CASE("N7 a handshake under way is out of reach of those who have said nothing",
          "[control][session]") {
  World world;
  world.listen();
  HandSender sender{world, right_code};
  sender.exchange_code();
  REQUIRE(sender.handshake() == -1);
  REQUIRE(world.run([&] { return sender.socket.available() > 0; }));
  const auto strangers = crowd(world, 40);
  prove(world, sender);
}

TEST_CASE("N7 whoever has exchanged the code is out of reach of those who have said nothing",
          "[control][session]") {
  World world;
  world.listen();
  HandSender sender{world, right_code};
  sender.exchange_code();
  const auto strangers = crowd(world, 40);
  REQUIRE(world.run([&] { return world.recv_host.rejections.size() == 24; }));
  REQUIRE(sender.handshake() == -1);
  prove(world, sender);
}

// A connection that was reset before it is accepted cannot say any more who its peer was.
TEST_CASE("N7 connections that are reset leave nothing behind", "[control][session]") {
  World world;
  world.listen();
  for (std::size_t i = 1; i <= 200; ++i) {
    tcp::socket socket{world.io};
    socket.connect({asio::ip::address_v4::loopback(), world.recv_host.port});
    socket.set_option(tcp::socket::linger{true, 0});
    socket.close();
    if (i % 8 == 0) REQUIRE(world.run([&] { return world.recv_host.rejections.size() == i; }));
  }
  REQUIRE(world.send_to_end() == ExitCode::done);
}

TEST_CASE("a sender that is turned away before TLS says what that may mean", "[control][session]") {
  World world;
  tcp::acceptor acceptor{world.io, {asio::ip::address_v4::loopback(), 0}};
  world.send_options.port = acceptor.local_endpoint().port();
  std::function<void()> turn_away = [&] {
    acceptor.async_accept([&](const boost::system::error_code& error, tcp::socket) {
      if (!error) turn_away();
    });
  };
  turn_away();
  world.send();
  REQUIRE(world.run([&] { return world.send_end.has_value(); }));
  CHECK(world.send_end->code == ExitCode::peer_unreachable);
  CHECK(world.send_end->error.message().find("took the connection and closed it") !=
        std::string::npos);
  CHECK(world.send_end->error.message().find("Start `onehop recv`") ==
        std::string::npos);  // something does listen
}

TEST_CASE("a half-open connection does not disturb the running session", "[control][session]") {
  World world;
  world.listen();
  tcp::socket idle{world.io};
  idle.connect({asio::ip::address_v4::loopback(), world.recv_host.port});
  REQUIRE(world.send_to_end() == ExitCode::done);
}

TEST_CASE("K4 ends that understood any field differently get different keys",
          "[control][session]") {
  World world;
  tcp::acceptor acceptor{world.io, {asio::ip::address_v4::loopback(), 0}};
  RawPeer client{world.io, {.role = Role::sender}}, server{world.io, {.role = Role::receiver}};
  acceptor.async_accept([&](const boost::system::error_code&, tcp::socket socket) {
    server.start(std::move(socket), {}, Role::receiver);
  });
  client.connect(acceptor.local_endpoint().port());
  REQUIRE(world.run([&] { return client.handshake.has_value() && server.handshake.has_value(); }));
  const auto secret = [](RawPeer& peer, const crypto::ExporterContext& context) {
    const auto exported = export_data_secret(peer.channel->ssl(), context);
    const auto bytes = exported.value().bytes();
    return std::vector<std::byte>{bytes.begin(), bytes.end()};
  };
  const crypto::ExporterContext agreed;
  CHECK(secret(client, agreed) == secret(server, agreed));
  std::vector<crypto::ExporterContext> others(5, agreed);
  others[0].version = agreed.version + 1;
  others[1].digest = crypto::DigestKind::sha256;
  others[2].key_interval = 256;
  others[3].client_role = Role::receiver;
  others[4].session_id[15] = std::byte{1};
  for (const auto& other : others) CHECK(secret(client, agreed) != secret(server, other));
  CHECK(::SSL_get_version(client.channel->ssl()) == std::string{"TLSv1.3"});
  // The hybrid with ML-KEM wherever the library has it, and both ends know which group it was.
  const bool has_ml_kem = ::OpenSSL_version_num() >= 0x30500000UL;
  const std::string group = has_ml_kem ? "X25519MLKEM768" : "x25519";
  CHECK(negotiated_group(client.channel->ssl()) == group);
  CHECK(negotiated_group(server.channel->ssl()) == group);
}

// A processor without AES instructions is spared AES-GCM, at whichever end it is.
TEST_CASE("K4 both ends take the cipher of the one without AES instructions",
          "[control][session]") {
  const bool is_sender_without = GENERATE(false, true), is_receiver_without = GENERATE(false, true);
  CAPTURE(is_sender_without, is_receiver_without);
  World world;
  world.send_options.prefers_chacha20 = is_sender_without;
  world.recv_options.prefers_chacha20 = is_receiver_without;
  world.listen();
  REQUIRE(world.send_to_end() == ExitCode::done);
  REQUIRE((world.send_host.plan && world.recv_host.plan));
  const std::uint16_t aead = is_sender_without || is_receiver_without
                                 ? crypto::aead_chacha20_poly1305
                                 : crypto::aead_aes_128_gcm;
  CHECK(world.send_host.plan->context.aead == aead);
  CHECK(world.recv_host.plan->context.aead == aead);
  CHECK(std::ranges::equal(world.send_host.plan->secret.bytes(),
                           world.recv_host.plan->secret.bytes()));
}
