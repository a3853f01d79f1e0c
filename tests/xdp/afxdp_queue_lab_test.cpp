// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Goal:   the port's telemetry tells the truth about the queue below it, about drops, and about a
// link that changes. Method: a macvlan over a veth with TBF, so that completions come from a real
// lower queue; `tc -s` is the witness. Bounds: occupancy within 25 % of the TBF's backlog, between
// two readings of the port around the witness's (the
//         witness takes milliseconds, in which the queue drains); drops exact.
#include <sys/socket.h>

#include <cerrno>

#include <catch2/catch.hpp>

#include "engine/base/time.hpp"
#include "tests/xdp/xdp_lab.hpp"

using namespace onehop;
using namespace onehop::test;

namespace {

constexpr std::uint16_t port_number = 7411;
constexpr std::size_t payload_bytes = 1400;
constexpr std::int64_t wire_bytes = 1400 + 42;

std::int64_t qdisc_field(const XdpLab& lab, const std::string& key) {
  const std::string text = lab.output(Host::a, "tc -s -j qdisc show dev va");
  const auto at = text.find("\"" + key + "\":");
  REQUIRE(at != std::string::npos);
  return std::atoll(text.c_str() + at + key.size() + 3);
}

std::size_t commit_frames(AfXdpPort& port, std::size_t count) {
  std::size_t accepted = 0;
  for (; accepted < count; ++accepted) {
    if (port.lend(payload_bytes).empty()) break;
    port.commit(payload_bytes);
  }
  return accepted;
}

bool is_balanced(AfXdpPort& port, std::size_t accepted_frames) {
  const QueueTelemetry queue = port.tx_queue(monotonic_now());
  return queue.drained_total + queue.occupancy ==
         Bytes{wire_bytes} * static_cast<std::int64_t>(accepted_frames);
}

bool drains(AfXdpPort& port) {
  return wait_until([&] {
    port.flush(monotonic_now());
    return port.tx_queue(monotonic_now()).occupancy == Bytes{0};
  });
}

void move(AfXdpPort& port, const XdpLab& lab, const std::string& interface) {
  const InNetns inside{lab.netns(Host::a)};
  const Instant begun_at = monotonic_now();
  const auto moved = port.move_to(interface);
  if (!moved) FAIL(moved.error().message());
  CHECK(monotonic_now() - begun_at < 2s);  // it did not wait for a program of our own
}

/// Way: a port on a, a plain socket on b, and a frame that went from one to the other.
struct Way {
  Way(const XdpLab& lab, XdpMode mode)
      : port{lab.open(Host::a, lab.config(Host::a, Family::ipv4, port_number, mode)).value()},
        peer{lab.udp_socket(Host::b, Family::ipv4, port_number)} {
    port->update_path(lab.path(Host::a, Family::ipv4, port_number, port_number));
    REQUIRE(send_frame(*port, 1400, 1));
    REQUIRE(::recv(peer.get(), buffer.data(), buffer.size(), 0) == 1400);
  }
  std::unique_ptr<AfXdpPort> port;
  Fd peer;
  std::array<char, 2048> buffer{};
};

}  // namespace

TEST_CASE("occupancy follows the backlog of the queue below a macvlan") {
  const XdpLab lab{{.macvlan_shaper = "tbf rate 40mbit burst 16kb limit 8mb"}};
  auto opened =
      lab.open(Host::a, lab.config(Host::a, Family::ipv4, port_number, XdpMode::automatic));
  if (!opened) FAIL(opened.error().message());
  AfXdpPort& port = *opened.value();
  CHECK(port.info().mode == "skb");
  CHECK(port.info().has_back_pressure);
  port.update_path(lab.path(Host::a, Family::ipv4, port_number, port_number));

  const std::size_t accepted = commit_frames(port, 1500);
  REQUIRE(accepted == 1500);
  CHECK(port.flush(monotonic_now()) == 0);
  CHECK(is_balanced(port, accepted));
  CHECK(port.tx_queue(monotonic_now()).scope == QueueScope::lower_queue);
  int samples = 0;
  for (;;) {
    const std::int64_t before = port.tx_queue(monotonic_now()).occupancy.count;
    const std::int64_t backlog = qdisc_field(lab, "backlog");
    const std::int64_t after = port.tx_queue(monotonic_now()).occupancy.count;
    if (backlog < 200'000) break;
    CAPTURE(before, backlog, after);
    CHECK(backlog <= before * 5 / 4);
    CHECK(backlog >= after * 3 / 4);
    CHECK(is_balanced(port, accepted));
    ++samples;
  }
  CHECK(samples >= 3);
  CHECK(drains(port));
  const QueueTelemetry end = port.tx_queue(monotonic_now());
  CHECK(end.drained_total == Bytes{wire_bytes} * 1500);
  CHECK(end.refused_total == 0);

  // A turn of the engine that began long ago: the reading is of now.
  const Instant now = monotonic_now();
  CHECK(port.tx_queue(now - 1s).at >= now);
}

TEST_CASE(
    "N12 frames that the lower queue drops are refused, each counted, and leave the occupancy") {
  const XdpLab lab{{.macvlan_shaper = "tbf rate 20mbit burst 16kb limit 40kb"}};
  auto port =
      lab.open(Host::a, lab.config(Host::a, Family::ipv4, port_number, XdpMode::skb)).value();
  port->update_path(lab.path(Host::a, Family::ipv4, port_number, port_number));
  const std::int64_t drops_before =
      qdisc_field(lab, "drops");  // neighbour discovery may have been dropped too
  const std::size_t accepted = commit_frames(*port, 400);
  REQUIRE(accepted == 400);
  while (port->flush(monotonic_now()) > 0) {
  }
  CHECK(is_balanced(*port, accepted));
  CHECK(drains(*port));
  const QueueTelemetry end = port->tx_queue(monotonic_now());
  CHECK(end.refused_total > 200);
  REQUIRE(end.refused_total < 400);
  CHECK(static_cast<std::int64_t>(end.refused_total) == qdisc_field(lab, "drops") - drops_before);
  CHECK(is_balanced(*port, accepted));

  // A drop ends a call to the kernel, not the flush: one flush hands over a whole burst, drops or
  // not.
  REQUIRE(commit_frames(*port, 100) == 100);
  CHECK(port->flush(monotonic_now()) == 0);
  CHECK(port->tx_queue(monotonic_now()).refused_total > end.refused_total);
}

TEST_CASE(
    "N12 a large frame that the lower queue drops is one drop, and all its chunks come back") {
  const XdpLab lab{
      {.mtu_bytes = 9000, .macvlan_shaper = "tbf rate 100mbit burst 32kb limit 100kb"}};
  auto port =
      lab.open(Host::a, lab.config(Host::a, Family::ipv4, port_number, XdpMode::skb)).value();
  port->update_path(lab.path(Host::a, Family::ipv4, port_number, port_number, 9000));
  const std::int64_t drops_before = qdisc_field(lab, "drops");
  constexpr std::size_t large_bytes = 8972, frames = 200;
  for (std::size_t i = 0; i < frames; ++i) {
    REQUIRE_FALSE(port->lend(large_bytes).empty());
    port->commit(large_bytes);
  }
  while (port->flush(monotonic_now()) > 0) {
  }
  CHECK(drains(*port));
  const QueueTelemetry end = port->tx_queue(monotonic_now());
  CHECK(end.drained_total == Bytes{(large_bytes + 42) * frames});
  CHECK(end.refused_total > 100);
  CHECK(end.refused_total < frames);
  CHECK(static_cast<std::int64_t>(end.refused_total) == qdisc_field(lab, "drops") - drops_before);
}

TEST_CASE(
    "a full lower queue is back-pressure, not an error: lend() gives nothing until frames have "
    "left") {
  const XdpLab lab{{.macvlan_shaper = "tbf rate 20mbit burst 16kb limit 8mb"}};
  AfXdpConfig config = lab.config(Host::a, Family::ipv4, port_number, XdpMode::skb);
  config.tx_frames = 64;
  auto port = lab.open(Host::a, config).value();
  port->update_path(lab.path(Host::a, Family::ipv4, port_number, port_number));
  CHECK(commit_frames(*port, 1000) == 64);  // nothing was flushed, so nothing could leave
  CHECK(port->lend(payload_bytes).empty());
  CHECK(drains(*port));
  CHECK_FALSE(port->lend(payload_bytes).empty());
}

TEST_CASE("the send buffer bounds what is in the kernel, and the rest stays in our ring") {
  const XdpLab lab{{.macvlan_shaper = "tbf rate 20mbit burst 16kb limit 8mb"}};
  AfXdpConfig config = lab.config(Host::a, Family::ipv4, port_number, XdpMode::skb);
  config.sndbuf_bytes = 50 * 2304 / 2;  // the kernel doubles it
  auto port = lab.open(Host::a, config).value();
  port->update_path(lab.path(Host::a, Family::ipv4, port_number, port_number));
  REQUIRE(commit_frames(*port, 300) == 300);
  const std::size_t left = port->flush(monotonic_now());
  CHECK(left > 150);
  CHECK(left < 300);
  CHECK(is_balanced(*port, 300));
  CHECK(drains(*port));
  CHECK(port->tx_queue(monotonic_now()).refused_total == 0);
}

TEST_CASE("N9 frames larger than a lowered MTU are refused, smaller ones go on") {
  const auto mode = GENERATE(XdpMode::copy, XdpMode::skb);
  CAPTURE(to_string(mode));
  const XdpLab lab;
  Way way{lab, mode};
  auto& [port, peer, buffer] = way;
  lab.run(Host::a, "ip link set va mtu 1000");
  lab.run(Host::b, "ip link set vb mtu 1000");
  for (int i = 0; i < 5; ++i) REQUIRE(send_frame(*port, 1400, 2));
  CHECK(drains(*port));
  CHECK(port->tx_queue(monotonic_now()).refused_total == 5);

  port->update_path(lab.path(Host::a, Family::ipv4, port_number, port_number, 1000));
  REQUIRE(send_frame(*port, 900, 3));
  REQUIRE(::recv(peer.get(), buffer.data(), buffer.size(), 0) == 900);
  CHECK(port->tx_queue(monotonic_now()).refused_total == 5);
  CHECK(port->last_error() == 0);
}

TEST_CASE("N10 link down and up: the same sockets go on") {
  const auto mode = GENERATE(XdpMode::copy, XdpMode::skb);
  CAPTURE(to_string(mode));
  const XdpLab lab;
  Way way{lab, mode};
  auto& [port, peer, buffer] = way;
  lab.run(Host::a, "ip link set va down");
  for (int i = 0; i < 5; ++i) REQUIRE(send_frame(*port, 1000, 2));
  CHECK(port->last_error() == ENETDOWN);
  lab.run(Host::a, "ip link set va up");
  lab.wait_operational();
  lab.run(Host::a, "ip neigh replace 10.77.0.2 lladdr 02:77:00:00:00:0b dev va");
  CHECK(wait_until([&] { return port->flush(monotonic_now()) == 0; }));
  CHECK(drains(*port));
  CHECK(port->last_error() == 0);
  for (std::size_t i = 5 - port->tx_queue(monotonic_now()).refused_total; i > 0; --i)
    CHECK(::recv(peer.get(), buffer.data(), buffer.size(), 0) == 1000);

  REQUIRE(send_frame(*port, 1200, 3));
  CHECK(::recv(peer.get(), buffer.data(), buffer.size(), 0) == 1200);
  REQUIRE(::send(peer.get(), buffer.data(), 1200, 0) == 1200);
  CHECK(receive_all(*port, 1).size() == 1);
}

TEST_CASE("N10 a deleted interface is ENXIO, and the port can be closed") {
  const auto mode = GENERATE(XdpMode::copy, XdpMode::skb);
  CAPTURE(to_string(mode));
  const XdpLab lab;
  auto port = lab.open(Host::a, lab.config(Host::a, Family::ipv4, port_number, mode)).value();
  port->update_path(lab.path(Host::a, Family::ipv4, port_number, port_number));
  REQUIRE(send_frame(*port, 1400, 1));
  lab.run(Host::a, "ip link del va");
  (void)send_frame(*port, 1400, 1);
  CHECK(wait_until([&] {
    port->flush(monotonic_now());
    return port->last_error() == ENXIO;
  }));
  // A sleep is still a sleep: it does not return at once for ever.
  const Instant start = monotonic_now();
  (void)port->wait(start + 30ms, true);
  CHECK(monotonic_now() - start >= 30ms);
  CHECK(port->receive({}) == 0);
  port.reset();
  CHECK(lab.open(Host::a, lab.config(Host::a, Family::ipv4, port_number, mode)).error().code ==
        ExitCode::io_unavailable);
}

TEST_CASE(
    "N10 a port goes over to the interface that comes after its own, with its number and its "
    "account") {
  const auto mode = GENERATE(XdpMode::copy, XdpMode::skb);
  CAPTURE(to_string(mode));
  const XdpLab lab;
  auto port = lab.open(Host::a, lab.config(Host::a, Family::ipv4, port_number, mode)).value();
  port->update_path(lab.path(Host::a, Family::ipv4, port_number, port_number));
  REQUIRE(send_frame(*port, 1400, 1));
  CHECK(drains(*port));
  lab.run(Host::a, "ip link del va");
  (void)send_frame(*port, 1400, 2);
  CHECK(wait_until([&] {
    port->flush(monotonic_now());
    return port->last_error() == ENXIO;
  }));
  CHECK(is_passing_error(port->last_error()));
  lab.make_link();
  move(*port, lab, lab.interface(Host::a));
  port->update_path(lab.path(Host::a, Family::ipv4, port_number, port_number));
  CHECK(port->last_error() == 0);
  CHECK(port->local_port() == port_number);
  CHECK(port->mode_got() == mode);
  CHECK(is_balanced(*port, 2));  // the frame that nobody sent has left as well
  CHECK(port->tx_queue(monotonic_now()).refused_total == 1);

  const Fd peer = lab.udp_socket(Host::b, Family::ipv4, port_number);
  const SocketAddress to = lab.address(Host::a, Family::ipv4, port_number).to_sockaddr();
  REQUIRE(::connect(peer.get(), to.get(), to.size_bytes) == 0);
  std::array<char, 2048> buffer{};
  REQUIRE(send_frame(*port, 1400, 3));
  CHECK(::recv(peer.get(), buffer.data(), buffer.size(), 0) == 1400);
  CHECK(drains(*port));
  CHECK(is_balanced(*port, 3));
  REQUIRE(::send(peer.get(), buffer.data(), 1200, 0) == 1200);
  CHECK(receive_all(*port, 1).size() == 1);
}

// Goal:   the way may lead back to an interface that is still there, and what was left of it goes.
// Method: from va to vc and back, twice, with and without the engine core's going over in between.
// Bounds: no move waits for a program of our own, which takes 2 s; what the port has left has none
// when the next move is over.
TEST_CASE("N10 a port comes back to an interface that it has left") {
  const auto mode = GENERATE(XdpMode::copy, XdpMode::skb);
  CAPTURE(to_string(mode));
  const XdpLab lab;
  lab.run(Host::a,
          "ip link add vc type veth peer name vd && ip link set vc up && ip link set vd up");
  const auto has_program = [&](const char* interface) {
    return lab.output(Host::a, std::string{"ip link show "} + interface).find("xdp") !=
           std::string::npos;
  };
  auto port = lab.open(Host::a, lab.config(Host::a, Family::ipv4, port_number, mode)).value();
  const PathUpdate path = lab.path(Host::a, Family::ipv4, port_number, port_number);
  const Fd peer = lab.udp_socket(Host::b, Family::ipv4, port_number);
  for (int round = 0; round < 2; ++round) {
    move(*port, lab, "vc");  // offered and never taken
    move(*port, lab, "vc");
    port->update_path(path);
    CHECK((has_program("va") && has_program("vc")));
    move(*port, lab, "va");
    port->update_path(path);
    REQUIRE(send_frame(*port, 1400, 3));
    std::array<char, 2048> buffer{};
    CHECK(::recv(peer.get(), buffer.data(), buffer.size(), 0) == 1400);
    CHECK(drains(*port));
  }
  CHECK(has_program("vc"));
  move(*port, lab, "vd");
  CHECK((!has_program("vc") && has_program("va") && has_program("vd")));
}

TEST_CASE("N7 a ring that is not emptied counts what it could not take") {
  const auto mode = GENERATE(XdpMode::copy, XdpMode::skb);
  CAPTURE(to_string(mode));
  const XdpLab lab;
  AfXdpConfig config = lab.config(Host::a, Family::ipv4, port_number, mode);
  config.rx_frames = 64;
  auto port = lab.open(Host::a, config).value();
  const Fd peer = lab.udp_socket(Host::b, Family::ipv4, port_number);
  const std::string payload(1400, 'x');
  for (int i = 0; i < 200; ++i)
    REQUIRE(::send(peer.get(), payload.data(), payload.size(), 0) == 1400);
  REQUIRE(wait_until([&] { return port->rx_ring(monotonic_now()).refused_total >= 136; }));
  const QueueTelemetry full = port->rx_ring(monotonic_now());
  CHECK(full.refused_total == 136);
  CHECK(full.occupancy == full.capacity);
  CHECK(full.capacity == Bytes{64 * 1514});
  CHECK(receive_all(*port, 64).size() == 64);
  CHECK(port->rx_ring(monotonic_now()).occupancy == Bytes{0});
  CHECK(port->rx_ring(monotonic_now()).drained_total == Bytes{64 * wire_bytes});
  REQUIRE(::send(peer.get(), payload.data(), payload.size(), 0) == 1400);
  CHECK(receive_all(*port, 1).size() == 1);  // the chunks went back to the fill ring
}
