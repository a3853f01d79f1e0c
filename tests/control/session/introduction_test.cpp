// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Goal:   a pairing that is cut leaves no two devices that know each other and cannot connect. Who
//         was paired before still is.
// Method: real sessions over loopback TCP and TLS, through a relay that ends the connection after
//         so many messages of one end, each number at each end; a connection after that passes.
//         Then each end connects to the other, as a paired device does.
// Bounds: exact.
#include <catch2/catch.hpp>

#include <boost/asio/detached.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "tests/control/session/raw_peer.hpp"

using namespace onehop;
using namespace onehop::session;
using namespace onehop::session::test;

namespace {

using Bytes = std::vector<std::byte>;

// Relay takes messages apart: two of the exchange of the code, then records of TLS.
class Relay {
 public:
  struct Cut {
    Role of = Role::sender;
    std::size_t messages = 0;  // of that end which pass
  };
  Relay(asio::io_context& io, std::uint16_t port, Cut cut)
      : io_{io}, acceptor_{io, tcp::endpoint{asio::ip::address_v4::loopback(), 0}} {
    asio::co_spawn(
        io, [this, port, cut] { return serve(port, cut); }, asio::detached);
  }
  [[nodiscard]] std::uint16_t port() const { return acceptor_.local_endpoint().port(); }
  [[nodiscard]] bool has_cut() const { return *has_cut_; }

 private:
  struct Connection {
    tcp::socket sender, receiver;
    std::shared_ptr<bool> has_cut;
    void close() {
      boost::system::error_code ignored;
      sender.close(ignored);
      receiver.close(ignored);
    }
  };

  Task<void> serve(std::uint16_t port, Cut cut) {
    constexpr std::size_t all = ~std::size_t{0};
    for (bool is_first = true;; is_first = false) {
      boost::system::error_code error;
      auto taken =
          co_await acceptor_.async_accept(asio::redirect_error(asio::use_awaitable, error));
      if (error) co_return;
      const auto both =
          std::make_shared<Connection>(Connection{std::move(taken), tcp::socket{io_}, has_cut_});
      both->receiver.connect({asio::ip::address_v4::loopback(), port}, error);
      for (const Role role : {Role::sender, Role::receiver}) {
        const std::size_t passing = is_first && cut.of == role ? cut.messages : all;
        asio::co_spawn(
            io_, [both, role, passing] { return pass(both, role, passing); }, asio::detached);
      }
    }
  }

  static Task<void> read(tcp::socket& from, Bytes& message, std::size_t more,
                         boost::system::error_code& error) {
    const std::size_t at = message.size();
    message.resize(at + more);
    co_await asio::async_read(from, asio::buffer(message.data() + at, more),
                              asio::redirect_error(asio::use_awaitable, error));
  }

  static Task<void> pass(std::shared_ptr<Connection> both, Role role, std::size_t messages) {
    tcp::socket& from = role == Role::sender ? both->sender : both->receiver;
    tcp::socket& to = role == Role::sender ? both->receiver : both->sender;
    boost::system::error_code error;
    for (std::size_t i = 0; i < messages; ++i) {
      Bytes message;
      constexpr std::size_t record_header_bytes = 5;
      co_await read(from, message,
                    i == 0   ? exchange_greeting_bytes
                    : i == 1 ? exchange_head_bytes
                             : record_header_bytes,
                    error);
      if (!error && i > 0) {
        const auto low = std::to_integer<std::size_t>(message.back());
        const auto high = i == 1 ? 0 : std::to_integer<std::size_t>(message[3]) << 8;
        co_await read(from, message, high + low, error);
      }
      if (error) {  // it has said all
        to.shutdown(tcp::socket::shutdown_send, error);
        co_return;
      }
      co_await asio::async_write(to, asio::buffer(message),
                                 asio::redirect_error(asio::use_awaitable, error));
    }
    *both->has_cut = true;
    both->close();
  }

  asio::io_context& io_;
  tcp::acceptor acceptor_;
  std::shared_ptr<bool> has_cut_ = std::make_shared<bool>(false);
};

// Device is what a machine keeps.
struct Device {
  Device(std::string name, std::byte number) {
    pair::Seed seed;
    seed.writable()[0] = number;
    identity = std::make_shared<pair::Identity>(
        pair::Identity{pair::DeviceKey::from_seed(seed).value(), std::move(name), {}});
  }
  void keep(const pair::Peer& peer) {
    std::erase_if(identity->peers, [&](const auto& old) { return old->key == peer.key; });
    identity->peers.push_back(std::make_shared<const pair::Peer>(peer));
  }
  [[nodiscard]] pair::KnownPeer known(const Device& other) const {
    return identity->find(other.identity->key.public_key());
  }
  std::shared_ptr<pair::Identity> identity;
};

void stop(World& world) {
  if (!world.recv_end) world.server->interrupt();
  REQUIRE(world.run([&] { return world.recv_end.has_value(); }));
}

// pair has `sender` go to `receiver`; false: it was not cut.
bool pair_through(Device& sender, Device& receiver, std::optional<Relay::Cut> cut) {
  World world;
  const auto prepare = [](SessionOptions& options, auto& host, Device& self) {
    options.device = self.identity;
    options.introduction = Introduction::only;
    host.introduced = [&self](const pair::Peer& peer) { self.keep(peer); };
  };
  prepare(world.recv_options, world.recv_host, receiver);
  prepare(world.send_options, world.send_host, sender);
  world.recv_options.is_once = false;
  world.listen(made_code);
  std::optional<Relay> relay;
  if (cut) {
    relay.emplace(world.io, world.recv_host.port, *cut);
    world.send_options.port = relay->port();
  }
  world.send(made_code);
  REQUIRE(world.run(
      [&] { return world.send_end && (world.recv_end || !world.recv_host.rejections.empty()); }));
  if (!cut) CHECK(world.send_end->code == ExitCode::done);
  stop(world);
  return relay && relay->has_cut();
}

// connects: as paired devices do, with no code that both know.
bool connects(const Device& sender, const Device& receiver) {
  World world;
  world.recv_options.device = receiver.identity;
  world.listen(made_code);
  RawPeer peer{world.io,
               {.role = Role::sender, .device = sender.identity, .peer = receiver.identity->name}};
  if (sender.known(receiver) == nullptr) return false;
  peer.connect(world.recv_host.port);
  REQUIRE(world.run([&] { return peer.handshake.has_value(); }));
  if (*peer.handshake == HandshakeFailure::none) peer.channel->abort();
  REQUIRE(world.run([&] { return peer.is_over; }));
  stop(world);
  return *peer.handshake == HandshakeFailure::none;
}
bool connect_both_ways(const Device& one, const Device& other) {
  return connects(one, other) && connects(other, one);
}

}  // namespace

TEST_CASE("a pairing that is cut leaves both ends able to connect, or one that knows nobody",
          "[control][session]") {
  const bool is_sender_known = GENERATE(false, true), is_receiver_known = GENERATE(false, true);
  const Role cut_of = GENERATE(Role::sender, Role::receiver);
  CAPTURE(is_sender_known, is_receiver_known, cut_of);
  bool is_cut = true;
  for (std::size_t messages = 0; is_cut; ++messages) {
    CAPTURE(messages);
    REQUIRE(messages < 20);
    Device sender{"ann", std::byte{1}}, receiver{"bob", std::byte{2}};
    if (is_sender_known || is_receiver_known) (void)pair_through(sender, receiver, {});
    if (!is_receiver_known) sender.identity->peers.clear();
    if (!is_sender_known) receiver.identity->peers.clear();

    is_cut = pair_through(sender, receiver, Relay::Cut{cut_of, messages});
    const bool was_paired = is_sender_known && is_receiver_known;
    const bool know_each_other =
        sender.known(receiver) != nullptr && receiver.known(sender) != nullptr;
    if (was_paired || know_each_other) CHECK(connect_both_ways(sender, receiver));
    // Whoever asks this time.
    (void)pair_through(receiver, sender, {});
    CHECK(connect_both_ways(sender, receiver));
  }
}
