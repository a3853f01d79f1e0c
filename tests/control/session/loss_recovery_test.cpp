// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Goal:   on a link that loses frames the control connection does not wait out TCP's timeouts.
// Method: a real sender or channel over loopback TCP; the test plays the receiver, and asks the
//         kernel.
#include "tests/control/session/raw_peer.hpp"

#include <netinet/tcp.h>
#include <openssl/bio.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include <catch2/catch.hpp>
#include <cerrno>

using namespace onehop;
using namespace onehop::session;
using namespace onehop::session::test;

namespace {

/// bytes_heard counts what the channel's TLS has read; a KeepAlive is not shown to anybody.
std::uint64_t bytes_heard(Channel& channel) { return BIO_number_read(SSL_get_rbio(channel.ssl())); }

}  // namespace

// Goal:   where the Bye is late, the sender speaks again, so that TCP learns of a lost last segment
//         from the next one.
// Method: a receiver that has all files keeps its Bye back until bytes come after the Complete. The
//         sender's keep-alive is a minute away and its patience 3 s: nothing else of it can be on
//         the way while the connection is open.
TEST_CASE("a sender that waits for Bye nudges, and takes the Bye that comes then",
          "[control][session]") {
  World world;
  world.send_options.limits.keep_alive = 60s;
  const auto& manifest = world.send_host.data_manifest();
  const Accept accept{
      .data_port = 40'002, .frame_body_max_bytes = 1400, .io = "fake", .folder = {}};
  const VolumeAnswer volume{
      .manifest_hash = list::manifest_hash(manifest),
      .actions = std::vector<FileAction>(manifest.files.size(), FileAction::keep)};
  tcp::acceptor acceptor{world.io, {asio::ip::address_v4::loopback(), 0}};
  world.send_options.port = acceptor.local_endpoint().port();
  RawPeer peer{world.io, {.role = Role::receiver}};
  bool is_complete = false, is_nudged = false, is_served = false;
  const auto serve = [&]() -> Task<void> {
    Channel& channel = *peer.channel;
    if (co_await channel.handshake(Role::receiver, 2s) != HandshakeFailure::none) co_return;
    channel.start();
    channel.send(Welcome{protocol_version, "onehop"});
    channel.send(accept);
    channel.send(volume);
    while (!is_complete && channel.end() == ChannelEnd::open) {
      while (const auto message = channel.pop())
        is_complete = is_complete || std::holds_alternative<Complete>(*message);
      if (!is_complete) co_await channel.wait_activity(100ms);
    }
    const std::uint64_t until_complete = bytes_heard(channel);
    while (!is_nudged && channel.end() == ChannelEnd::open) {
      co_await channel.wait_activity(5ms);
      is_nudged = bytes_heard(channel) > until_complete;
    }
    channel.send(Bye{});
    co_await channel.close();
    is_served = true;
  };
  acceptor.async_accept([&](const boost::system::error_code&, tcp::socket socket) {
    peer.channel = std::make_shared<Channel>(
        std::move(socket), peer.tls, SessionLimits{.silent = 8s, .keep_alive = 60s}, Endpoint{});
    asio::co_spawn(world.io, serve(), [](const std::exception_ptr&) {});
  });
  world.send();
  REQUIRE(world.run([&] { return world.send_end.has_value() && is_served; }));
  CHECK(world.send_end->code == ExitCode::verification_failed);  // every file was kept there
  CHECK(is_complete);
  CHECK(is_nudged);
}

// Goal:   while a channel is held nothing of it is on the wire, not even a KeepAlive, and what was
//         said meanwhile comes after it.
// Method: two channels over loopback. Keep-alives are due every 20 ms; three times that are played
//         while held.
TEST_CASE("N10 a channel that is held is silent, and says it all afterwards",
          "[control][session]") {
  asio::io_context io;
  tcp::acceptor acceptor{io, {asio::ip::address_v4::loopback(), 0}};
  RawPeer said{io, {.role = Role::sender}}, heard{io, {.role = Role::receiver}};
  const SessionLimits limits{.keep_alive = 20ms};
  tcp::socket there{io}, here{io};
  there.connect(acceptor.local_endpoint());
  acceptor.accept(here);
  said.channel = std::make_shared<Channel>(std::move(there), said.tls, limits, Endpoint{});
  heard.channel = std::make_shared<Channel>(std::move(here), heard.tls,
                                            SessionLimits{.keep_alive = 60s}, Endpoint{});
  const auto shake = [](RawPeer& peer, Role role) -> Task<void> {
    if (co_await peer.channel->handshake(role, 2s) == HandshakeFailure::none) peer.channel->start();
  };
  asio::co_spawn(io, shake(said, Role::sender), [](const std::exception_ptr&) {});
  asio::co_spawn(io, shake(heard, Role::receiver), [](const std::exception_ptr&) {});
  const auto play = [&](Nanos span) { io.run_for(span); };
  for (int i = 0; i < 200 && bytes_heard(*heard.channel) == 0; ++i) play(10ms);
  play(60ms);
  said.channel->hold(true);
  play(40ms);  // what was being written
  const std::uint64_t before = bytes_heard(*heard.channel);
  said.channel->send(Complete{});
  play(60ms);
  CHECK(bytes_heard(*heard.channel) == before);
  CHECK_FALSE(heard.channel->has_message());
  said.channel->hold(false);
  for (int i = 0; i < 200 && !heard.channel->has_message(); ++i) play(10ms);
  const auto message = heard.channel->pop();
  REQUIRE(message);
  CHECK(std::holds_alternative<Complete>(*message));
  said.channel->abort();
  heard.channel->abort();
  play(20ms);
}

// Goal:   a peer that is heard on the data path is not taken for silent, and one that is heard
//         nowhere is.
// Method: a channel whose other end never speaks; its life is noted for three times its limit, and
//         then no more.
TEST_CASE("N10 a peer that is heard elsewhere is not silent", "[control][session]") {
  asio::io_context io;
  tcp::acceptor acceptor{io, {asio::ip::address_v4::loopback(), 0}};
  RawPeer alive{io, {.role = Role::sender}}, mute{io, {.role = Role::receiver}};
  tcp::socket there{io}, here{io};
  there.connect(acceptor.local_endpoint());
  acceptor.accept(here);
  alive.channel = std::make_shared<Channel>(
      std::move(there), alive.tls, SessionLimits{.silent = 500ms, .keep_alive = 100ms}, Endpoint{});
  mute.channel = std::make_shared<Channel>(std::move(here), mute.tls,
                                           SessionLimits{.keep_alive = 60s}, Endpoint{});
  bool is_started = false;
  asio::co_spawn(
      io,
      [&]() -> Task<void> {
        if (co_await alive.channel->handshake(Role::sender, 2s) == HandshakeFailure::none)
          alive.channel->start();
        is_started = true;
      },
      [](const std::exception_ptr&) {});
  asio::co_spawn(
      io, [&]() -> Task<void> { (void)co_await mute.channel->handshake(Role::receiver, 2s); },
      [](const std::exception_ptr&) {});
  for (int i = 0; i < 300 && !is_started; ++i) io.run_for(10ms);
  REQUIRE(is_started);
  for (int i = 0; i < 30; ++i) {
    alive.channel->note_life();
    io.run_for(50ms);
  }
  CHECK(alive.channel->end() == ChannelEnd::open);
  for (int i = 0; i < 300 && alive.channel->end() == ChannelEnd::open; ++i) io.run_for(10ms);
  CHECK(alive.channel->end() == ChannelEnd::silent);
  mute.channel->abort();
  io.run_for(20ms);
}

TEST_CASE(
    "the control connection repeats lost segments after 20 ms, and at least once a second, where "
    "the kernel lets it",
    "[control][session]") {
  struct Option {
    int number;  // Linux 6.15
    int ours;
  };
  constexpr Option rto_max_ms{44, 1'000}, rto_min_us{45, 20'000};  // TCP_RTO_MAX_MS, TCP_RTO_MIN_US
  for (const Option& option : {rto_max_ms, rto_min_us}) {
    asio::io_context io;
    tcp::socket socket{io, tcp::v4()};
    const int handle = socket.native_handle();
    const auto read = [&](int& value) {
      socklen_t bytes = sizeof value;
      return ::getsockopt(handle, IPPROTO_TCP, option.number, &value, &bytes) == 0;
    };
    int value = 0;
    if (!read(value)) {
      CHECK(errno == ENOPROTOOPT);
      WARN("this kernel has no option " << option.number);
      continue;
    }
    CHECK(value > option.ours);  // the kernel's own
    RawPeer peer{io, {.role = Role::sender}};
    peer.channel =
        std::make_shared<Channel>(std::move(socket), peer.tls, SessionLimits{}, Endpoint{});
    REQUIRE(read(value));
    CHECK(value == option.ours);
    // So many retransmissions would else be TCP's last ones after 11 s, and an outage of that
    // length the session's end.
    unsigned give_up_ms = 0;
    socklen_t bytes = sizeof give_up_ms;
    REQUIRE(::getsockopt(handle, IPPROTO_TCP, TCP_USER_TIMEOUT, &give_up_ms, &bytes) == 0);
    CHECK(give_up_ms > 120'000);
  }
}
