// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// What only the UDP port does: UDP_GRO, ICMP errors, socket buffers, the way frames are batched. On
// loopback.
#include <catch2/catch.hpp>

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "engine/base/time.hpp"
#include "engine/port/udp_port.hpp"
#include "engine/wire/frame.hpp"
#include "tests/support/needs.hpp"

namespace onehop {
namespace {

constexpr std::size_t datagram_bytes_max = 65'507;  // of IPv4

Endpoint loopback(std::uint16_t port) { return {*IpAddress::parse("127.0.0.1"), port}; }

std::unique_ptr<UdpPort> open(UdpPortConfig config = {}) {
  config.local = loopback(0);
  auto port = UdpPort::open(config);
  REQUIRE(port);
  return std::move(port).value();
}

void connect(UdpPort& from, const UdpPort& to) {
  REQUIRE(from.connect(loopback(to.local_port().value())));
}

void send(UdpPort& port, std::size_t frames, std::size_t length) {
  for (std::size_t i = 0; i < frames; ++i) {
    const auto slot = port.lend(length);
    REQUIRE(slot.size() == length);
    std::memset(slot.data(), static_cast<int>(i), length);
    port.commit(length);
  }
  REQUIRE(port.flush(monotonic_now()) == 0);
}

std::size_t take_all(UdpPort& port, std::size_t length) {
  std::array<RxFrame, rx_batch_max> views;
  std::size_t total = 0;
  while (const std::size_t count = port.receive(views)) {
    for (std::size_t i = 0; i < count; ++i) REQUIRE(views[i].length == length);
    total += count;
    port.release();
  }
  return total;
}

/// option_of finds the port's socket among ours and reads one of its options.
int option_of(const UdpPort& port, int level, int name) {
  for (int fd = 0; fd < 1024; ++fd) {
    sockaddr_in local{};
    socklen_t length = sizeof local;
    if (::getsockname(fd, reinterpret_cast<sockaddr*>(&local), &length) != 0) continue;
    if (local.sin_family != AF_INET || ntohs(local.sin_port) != port.local_port().value()) continue;
    int value = -1;
    length = sizeof value;
    REQUIRE(::getsockopt(fd, level, name, &value, &length) == 0);
    return value;
  }
  FAIL("the port has no socket");
  return -1;
}
std::pair<int, int> options_of(const UdpPort& port) {
  return {option_of(port, SOL_SOCKET, SO_PRIORITY), option_of(port, IPPROTO_IP, IP_TOS)};
}

}  // namespace

TEST_CASE("priority and DSCP are the socket's, and the DSCP does not overwrite the priority or ECN",
          "[port][udp]") {
  CHECK(options_of(*open()) == std::pair{0, 2});
  CHECK(options_of(*open({.priority = 1, .dscp = 8})) == std::pair{1, 8 << 2 | 2});
}

// Loopback carries the largest datagram whole; tests/lab/fragment_test.py sees fragments.
TEST_CASE("a port with fragments lets the kernel cut, and does not when they end", "[port][udp]") {
  auto sender = open({.frame_bytes_max = datagram_bytes_max, .has_fragments = true});
  auto receiver = open({.frame_bytes_max = datagram_bytes_max, .has_fragments = true});
  connect(*sender, *receiver);
  CHECK(sender->info().mode == "fragments");
  CHECK(option_of(*sender, IPPROTO_IP, IP_MTU_DISCOVER) == IP_PMTUDISC_DONT);
  send(*sender, 3, datagram_bytes_max);
  CHECK(take_all(*receiver, datagram_bytes_max) == 3);
  const bool has_gso = open()->info().mode == "gso";
  CHECK(sender->large_frame_bytes() == datagram_bytes_max);
  sender->end_large_frames();
  CHECK(sender->large_frame_bytes() == 0);  // for the sessions after this one too
  CHECK(sender->info().mode == (has_gso ? "gso" : "plain"));
  CHECK(option_of(*sender, IPPROTO_IP, IP_MTU_DISCOVER) == IP_PMTUDISC_PROBE);
  CHECK(option_of(*open(), IPPROTO_IP, IP_MTU_DISCOVER) == IP_PMTUDISC_PROBE);
  CHECK(open()->large_frame_bytes() == 0);
  send(*sender, 10, 1400);
  CHECK(take_all(*receiver, 1400) == 10);
}

TEST_CASE("44 equal frames leave by one call and arrive as one super-packet", "[port][udp]") {
  const auto a = open();
  const auto b = open();
  connect(*a, *b);
  connect(*b, *a);
  if (a->info().mode != "gso") {
    WARN("skipped: this kernel has no UDP_SEGMENT");
    return;
  }
  const std::uint64_t before = a->syscalls_total();
  send(*a, 44, 1472);
  CHECK(a->syscalls_total() - before == 1);
  CHECK(take_all(*b, 1472) == 44);
  CHECK(b->is_gro_on());
}

// Goal: UDP_GRO is given up where nothing is coalesced, and no frame is lost or spoilt on the way.
TEST_CASE("UDP_GRO is switched off when no super-packet appears", "[port][udp]") {
  const auto a = open({.is_gso_allowed = false});
  const auto b = open();
  connect(*a, *b);
  CHECK(a->info().mode == "plain");
  CHECK(b->is_gro_on());
  std::size_t taken = 0;
  for (int round = 0; round < 40; ++round) {
    send(*a, 32, 1000);
    taken += take_all(*b, 1000);
  }
  CHECK(taken == 40 * 32);
  CHECK_FALSE(b->is_gro_on());
}

TEST_CASE("a frame larger than allowed is dropped and counted", "[port][udp]") {
  const auto a = open({.frame_bytes_max = 9000});
  const auto b = open({.frame_bytes_max = 1472});
  connect(*a, *b);
  send(*a, 3, 1473);
  send(*a, 2, 1472);
  CHECK(take_all(*b, 1472) == 2);
  CHECK(b->malformed_total() == 3);
}

// Nobody authenticated an ICMP message: it may not end a session, nor cost a frame that could have
// been sent.
TEST_CASE("N3 a port that answers with ICMP errors does not stop the sender", "[port][udp][N3]") {
  const auto a = open();
  std::uint16_t number = 0;
  {
    const auto closed = open();
    number = closed->local_port().value();
    connect(*a, *closed);
  }
  for (int i = 0; i < 20; ++i) send(*a, 2, 500);  // each draws an ICMP port unreachable
  std::array<RxFrame, rx_batch_max> views;
  CHECK(a->receive(views) == 0);
  CHECK(a->last_error() == 0);

  UdpPortConfig config{.local = loopback(number)};
  auto late = UdpPort::open(config);
  REQUIRE(late);
  send(*a, 10, 500);
  CHECK(take_all(*late.value(), 500) == 10);
  CHECK(a->tx_queue(monotonic_now()).refused_total == 0);
}

// Bounds: what was sent is either taken, or counted as dropped by the kernel: exact.
TEST_CASE("frames that the receive buffer cannot hold are counted refused", "[port][udp]") {
  ONEHOP_NEEDS(onehop::test::has_mem_info(),
               "this kernel does not say what a socket holds (SO_MEMINFO)");
  const auto a = open({.is_gso_allowed = false});
  const auto b = open({.rcvbuf_bytes = 64 << 10});
  connect(*a, *b);
  CHECK(b->rx_ring(monotonic_now()).occupancy == Bytes{0});
  for (int i = 0; i < 20; ++i) send(*a, 32, 1472);
  const QueueTelemetry full = b->rx_ring(monotonic_now());
  CHECK(full.refused_total > 0);
  CHECK(full.occupancy >= full.capacity / 2);
  const std::size_t taken = take_all(*b, 1472);
  const QueueTelemetry empty = b->rx_ring(monotonic_now());
  CHECK(taken + empty.refused_total == 20 * 32);
  CHECK(empty.occupancy == Bytes{0});
  CHECK(empty.drained_total == Bytes{static_cast<std::int64_t>(taken * 1514)});
}

// Goal:   what the receive buffer holds is known from readings of a socket that is between two
// batches: in the middle of one the
//         kernel still charges what was read, and the buffer would pass for a third of its size.
// Method: 20 times 128 frames (295 KB of what a user may ask for by default, 416 KiB), each time a
// reading after the first 64 of them and one at the end. Bounds: a frame alone costs 2304 bytes for
// its 1514, what the port starts with: 5 %.
TEST_CASE("a reading in the middle of a batch teaches nothing about the buffer", "[port][udp]") {
  ONEHOP_NEEDS(onehop::test::has_mem_info(),
               "this kernel does not say what a socket holds (SO_MEMINFO)");
  const auto a = open({.is_gso_allowed = false});
  const auto b = open();
  connect(*a, *b);
  const Bytes before = b->rx_ring(monotonic_now()).capacity;
  std::array<RxFrame, rx_batch_max> views;
  for (int i = 0; i < 20; ++i) {
    for (int batch = 0; batch < 4; ++batch) send(*a, 32, 1472);
    const std::size_t first = b->receive(views);
    REQUIRE(first > 0);
    REQUIRE(first < 128);
    b->release();
    CHECK(b->rx_ring(monotonic_now()).occupancy > Bytes{0});
    CHECK(first + take_all(*b, 1472) == 128);
    CHECK(b->rx_ring(monotonic_now()).occupancy == Bytes{0});
  }
  const Bytes after = b->rx_ring(monotonic_now()).capacity;
  CHECK(after.count * 100 > before.count * 95);
  CHECK(after.count * 100 < before.count * 105);
}

// Goal:   what cannot be a frame of ours ends no wait and counts as nothing, and every frame that
// can be one passes. Method: headers of all types and flags at the ends of their ranges, and each
// of them spoiled where a stranger's bytes would be.
TEST_CASE("what cannot be a frame is dropped before it costs a wake-up", "[port][udp]") {
  const auto a = open({.is_gso_allowed = false});
  const auto b = open({.has_frames_only = true});
  connect(*a, *b);
  connect(*b, *a);
  const auto put = [&](const wire::FrameHeader& header, std::size_t spoiled, std::byte with,
                       std::size_t length) {
    const auto slot = a->lend(length);
    REQUIRE(slot.size() == length);
    std::array<std::byte, wire::header_bytes> head;
    wire::encode_header(header, head);
    if (spoiled < head.size()) head[spoiled] = with;
    std::ranges::fill(slot, std::byte{0x55});
    std::memcpy(slot.data(), head.data(), std::min(length, head.size()));
    a->commit(length);
    REQUIRE(a->flush(monotonic_now()) == 0);
  };
  constexpr std::size_t none = wire::header_bytes;
  std::size_t good = 0;
  for (const auto type : {wire::FrameType::data, wire::FrameType::feedback, wire::FrameType::ping,
                          wire::FrameType::pong})
    for (const std::uint64_t number :
         {std::uint64_t{0}, std::uint64_t{1} << 40, std::uint64_t{wire::packet_number_max}})
      for (unsigned flags = 0; flags < 16; ++flags, ++good)
        put({.type = type,
             .key_phase = (flags & 1) != 0,
             .is_end_of_block = (flags & 2) != 0,
             .is_nack_requested = (flags & 4) != 0,
             .nack_round = (flags & 8) != 0,
             .packet_number = number,
             .settled = number},
            none, {}, wire::frame_bytes_min + flags);
  CHECK(good == 192);
  std::array<RxFrame, rx_batch_max> views;
  std::size_t taken = 0;
  while (const std::size_t count = b->receive(views)) {
    for (std::size_t i = 0; i < count; ++i)
      CHECK(wire::decode_header({views[i].data, views[i].length}));
    taken += count;
    b->release();
  }
  CHECK(taken == good);
  const wire::FrameHeader header{.packet_number = 7, .settled = 7};
  put(header, none, {}, wire::frame_bytes_min - 1);
  put(header, 0, std::byte{0}, 100);
  put(header, 0, std::byte{5}, 100);
  put(header, 1, std::byte{0x10}, 100);
  put(header, 2, std::byte{1}, 100);
  put(header, 3, std::byte{1}, 100);
  put(header, 8, std::byte{0x40}, 100);
  const Instant began = monotonic_now();
  (void)b->wait(began + 20ms, true);
  CHECK(monotonic_now() - began >= 20ms);
  CHECK(b->receive(views) == 0);
  CHECK(b->rx_ring(monotonic_now()).refused_total == 0);  // it is no loss of the session's
}

TEST_CASE("a smaller frame ends its batch and a larger one begins a new one", "[port][udp]") {
  const auto a = open();
  const auto b = open();
  connect(*a, *b);
  const std::array<std::size_t, 7> lengths{100, 100, 60, 100, 300, 300, 1};
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    const auto slot = a->lend(i == 2 ? 100 : lengths[i]);  // one is lent longer than used
    REQUIRE(!slot.empty());
    std::memset(slot.data(), static_cast<int>(i), lengths[i]);
    a->commit(lengths[i]);
  }
  CHECK(a->flush(monotonic_now()) == 0);
  std::array<RxFrame, rx_batch_max> views;
  std::size_t at = 0;
  while (const std::size_t count = b->receive(std::span{views}.first(2))) {
    for (std::size_t i = 0; i < count; ++i, ++at) {
      REQUIRE(at < lengths.size());
      CHECK(views[i].length == lengths[at]);
      CHECK(views[i].data[0] == static_cast<std::byte>(at));
    }
    b->release();
  }
  CHECK(at == lengths.size());
}

TEST_CASE("a port in use and a missing interface are named errors", "[port][udp]") {
  const auto a = open();
  auto second = UdpPort::open({.local = loopback(a->local_port().value())});
  REQUIRE_FALSE(second);
  CHECK(second.error().errno_value == EADDRINUSE);
  auto nowhere = UdpPort::open({.local = loopback(0), .interface = "no-such-dev0"});
  REQUIRE_FALSE(nowhere);
  CHECK(nowhere.error().message().find("no-such-dev0") != std::string::npos);
}

}  // namespace onehop
