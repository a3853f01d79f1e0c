// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Goal:   the receiving loop finds a peer whose frames come from another address or port than it
//         said, and nobody without the session's keys can make it look elsewhere.
// Method: a real port over loopback; the peer and who attacks it are sockets of the test.
#include <sys/socket.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "engine/base/fd.hpp"
#include "engine/port/udp_port.hpp"
#include "tests/engine/run/loop_bench.hpp"

using namespace onehop;
using namespace onehop::run;
using Frame = std::vector<std::byte>;

namespace {

/// Place: a socket somewhere on 127.0.0.0/8.
class Place {
 public:
  explicit Place(const char* address) : fd_{::socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0)} {
    const SocketAddress at = Endpoint{*IpAddress::parse(address), 0}.to_sockaddr();
    REQUIRE(::bind(fd_.get(), at.get(), at.size_bytes) == 0);
  }
  [[nodiscard]] Endpoint endpoint() const { return Endpoint::of_socket(fd_.get()).value(); }
  void send(const Frame& frame, const Endpoint& to) const {
    const SocketAddress at = to.to_sockaddr();
    REQUIRE(::sendto(fd_.get(), frame.data(), frame.size(), 0, at.get(), at.size_bytes) ==
            static_cast<ssize_t>(frame.size()));
  }
  [[nodiscard]] std::vector<Frame> take() const {
    std::vector<Frame> frames;
    for (Frame frame(2000);;) {
      const ssize_t got = ::recv(fd_.get(), frame.data(), frame.size(), 0);
      if (got < 0) return frames;
      frames.emplace_back(frame.begin(), frame.begin() + got);
    }
  }

 private:
  Fd fd_;
};

/// Bench: the loop that proves its path, and the keys of its peer and of a stranger.
struct Bench {
  Bench() {
    port = std::move(UdpPort::open({.local = {*IpAddress::parse("127.0.0.1"), 0},
                                    .has_frames_only = true,
                                    .follows_peer = true}))
               .value();
    own = {*IpAddress::parse("127.0.0.1"), port->local_port().value()};
    REQUIRE(port->connect(said.endpoint()));
    ReceiverLoopConfig config = receiver_config({});
    config.challenge_seed = 7;
    loop = std::make_unique<ReceiverLoop<UdpPort>>(*port, keys_of(false), config, side.links());
    side.command(CommandKind::prove_path);
    turn();
    (void)said.take();
  }
  void turn(Nanos span = 60ms) {
    now += span;
    (void)loop->turn(now);
  }
  /// ping is a full PING of the peer's.
  Frame ping(std::uint64_t number,
             std::size_t body_bytes = bench_frame_bytes - wire::overhead_bytes,
             PacketProtection* by = nullptr) {
    std::vector<std::byte> body(body_bytes);
    wire::encode_ping({.id = number}, body);
    Frame frame(body.size() + wire::overhead_bytes);
    wire::FrameHeader header{
        .type = wire::FrameType::ping, .packet_number = number, .settled = number};
    (void)(by != nullptr ? by : peer.get())->seal(header, body, frame);
    return frame;
  }
  /// pong answers each PING among `frames`, and returns how many bytes of PINGs there were.
  std::size_t answer(const std::vector<Frame>& frames, const Place& from, std::uint64_t number) {
    std::size_t bytes = 0;
    for (const Frame& frame : frames) {
      const auto header = wire::decode_header(frame);
      if (!header || header->type != wire::FrameType::ping) continue;
      DataPathCounters counters;
      if (!peer->open(*header, frame, peer->scratch().data(), counters)) continue;
      bytes += frame.size();
      const auto ping =
          wire::decode_ping(peer->scratch().first(frame.size() - wire::overhead_bytes));
      REQUIRE(ping);
      std::array<std::byte, wire::pong_body_bytes> body{};
      wire::encode_pong({.id = ping->id, .hold_ns = 0, .received_bytes = frame.size()}, body);
      Frame pong(body.size() + wire::overhead_bytes);
      wire::FrameHeader answer{
          .type = wire::FrameType::pong, .packet_number = number, .settled = number};
      ++number;
      (void)peer->seal(answer, body, pong);
      from.send(pong, own);
    }
    return bytes;
  }
  /// has_moved: the loop says that the peer is at `port` now.
  bool has_moved(std::uint16_t to_port) {
    bool has = false;
    for (const Event& event : side.take_events())
      has = has || (event.kind == EventKind::peer_moved && event.value == to_port);
    return has;
  }

  Place said{"127.0.0.1"}, other{"127.0.0.2"}, victim{"127.0.0.3"};
  std::unique_ptr<UdpPort> port;
  Endpoint own;
  Side side;
  std::unique_ptr<ReceiverLoop<UdpPort>> loop;
  std::unique_ptr<PacketProtection> peer = std::make_unique<PacketProtection>(keys_of(true)),
                                    stranger = std::make_unique<PacketProtection>(keys_of(true, 9));
  Instant now{1s};
};

}  // namespace

TEST_CASE("N8 a peer whose frames come from elsewhere is found, once it has answered there",
          "[run][threats]") {
  Bench bench;
  bench.other.send(bench.ping(1), bench.own);
  bench.turn();
  const auto asked = bench.other.take();
  REQUIRE(asked.size() == 1);  // the question alone: all else still goes where it said
  CHECK(asked.front().size() <= 3 * bench_frame_bytes);
  CHECK_FALSE(bench.said.take().empty());
  CHECK_FALSE(bench.has_moved(bench.other.endpoint().port));
  (void)bench.answer(asked, bench.other, 2);
  bench.turn();
  CHECK(bench.has_moved(bench.other.endpoint().port));
  (void)bench.said.take();
  (void)bench.other.take();
  bench.turn();
  CHECK_FALSE(bench.other.take().empty());
  CHECK(bench.said.take().empty());
  // And once more, in the middle: who was left is a stranger now.
  (void)bench.answer({}, bench.other, 9);
  bench.side.command(CommandKind::start);
  bench.turn();
  bench.turn(300ms);
  bench.victim.send(bench.ping(20), bench.own);
  bench.turn();
  (void)bench.answer(bench.victim.take(), bench.victim, 21);
  bench.turn();
  CHECK(bench.has_moved(bench.victim.endpoint().port));
}

TEST_CASE("N8 I3 a replayed frame from elsewhere moves nothing", "[run][threats]") {
  Bench bench;
  const Frame heard = bench.ping(1);
  bench.said.send(heard, bench.own);
  bench.turn();
  for (int i = 0; i < 5; ++i) {
    bench.victim.send(heard, bench.own);
    bench.turn();
  }
  CHECK(bench.victim.take().empty());
  CHECK_FALSE(bench.has_moved(bench.victim.endpoint().port));
}

TEST_CASE(
    "N8 N6 a copied frame that comes first from a victim's address brings it little, and moves "
    "nothing",
    "[run][threats]") {
  Bench bench;
  const Frame copied = bench.ping(1, wire::ping_body_bytes_min);
  bench.victim.send(copied, bench.own);
  std::size_t bytes = 0;
  for (int i = 0; i < 100; ++i) {
    bench.turn();
    for (const Frame& frame : bench.victim.take()) bytes += frame.size();
  }
  CHECK(bytes > 0);
  CHECK(bytes <= 3 * copied.size());
  // The peer answers what it was asked where it is: that proves nothing of the other address.
  (void)bench.answer(bench.said.take(), bench.said, 10);
  bench.turn();
  CHECK_FALSE(bench.has_moved(bench.victim.endpoint().port));
}

TEST_CASE("N8 I3 forged frames from elsewhere are not answered", "[run][threats]") {
  Bench bench;
  for (const Frame& forged : forgeries_of(bench.ping(1))) {
    if (!forged.empty()) bench.victim.send(forged, bench.own);
    bench.turn(20ms);
  }
  bench.victim.send(bench.ping(2, wire::ping_body_bytes_min, bench.stranger.get()), bench.own);
  for (int i = 0; i < 5; ++i) bench.turn();
  CHECK(bench.victim.take().empty());
  CHECK_FALSE(bench.has_moved(bench.victim.endpoint().port));
}

TEST_CASE("a port number that two of our sockets share is nobody else's", "[run]") {
  Bench bench;
  const auto third = UdpPort::open({.local = bench.own, .follows_peer = true});
  REQUIRE_FALSE(third);
  CHECK(third.error().errno_value == EADDRINUSE);
}
