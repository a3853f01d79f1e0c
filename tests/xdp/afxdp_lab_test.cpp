// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Goal:   frames move between the AF_XDP port and a plain kernel UDP socket, both ways, in each mode and family.
// Method: two namespaces over veth; the kernel verifies our checksums (it drops what is wrong).
// Bounds: all frames arrive, with their bytes.
#include <sys/socket.h>

#include <catch2/catch.hpp>

#include "engine/base/time.hpp"
#include "tests/xdp/xdp_lab.hpp"

using namespace onehop;
using namespace onehop::test;

namespace {
constexpr std::uint16_t port_number = 7411;
const std::vector<std::size_t> sizes = {44, 45, 511, 1024, 1400, 1452};

std::string payload_of(std::size_t bytes) { return std::string(bytes, static_cast<char>(bytes & 0x7f)); }
}  // namespace

TEST_CASE("frames of the AF_XDP port reach a kernel UDP socket and back") {
  const auto mode = GENERATE(XdpMode::copy, XdpMode::skb);
  const auto family = GENERATE(Family::ipv4, Family::ipv6);
  CAPTURE(to_string(mode), family == Family::ipv6);
  const XdpLab lab;
  auto opened = lab.open(Host::a, lab.config(Host::a, family, port_number, mode));
  if (!opened) FAIL(opened.error().message());
  AfXdpPort& port = *opened.value();
  const Fd peer = lab.udp_socket(Host::b, family, port_number);

  CHECK(port.local_port() == port_number);
  CHECK(port.mode_got() == mode);
  CHECK(port.info().mode == to_string(mode));
  CHECK(port.lend(100).empty());  // no template yet
  port.update_path(lab.path(Host::a, family, port_number, port_number));

  for (const std::size_t bytes : sizes) {
    REQUIRE(send_frame(port, bytes, static_cast<std::uint8_t>(bytes & 0x7f)));
    std::array<char, 2048> buffer{};
    REQUIRE(::recv(peer.get(), buffer.data(), buffer.size(), 0) == static_cast<ssize_t>(bytes));
    CHECK(std::string(buffer.data(), bytes) == payload_of(bytes));
  }
  for (const std::size_t bytes : sizes) {
    const std::string sent = payload_of(bytes);
    REQUIRE(::send(peer.get(), sent.data(), sent.size(), 0) == static_cast<ssize_t>(bytes));
    const auto got = receive_all(port, 1);
    REQUIRE(got.size() == 1);
    CHECK(got.front() == sent);
  }
  CHECK(wait_until([&] { return port.tx_queue(monotonic_now()).occupancy == Bytes{0}; }));
  CHECK(port.strays_total() == 0);
  CHECK(port.counters().malformed_total == 0);
}

TEST_CASE("two AF_XDP ports talk to each other") {
  const auto mode = GENERATE(XdpMode::copy, XdpMode::skb);
  CAPTURE(to_string(mode));
  const XdpLab lab;
  auto a = lab.open(Host::a, lab.config(Host::a, Family::ipv6, port_number, mode)).value();
  auto b = lab.open(Host::b, lab.config(Host::b, Family::ipv6, 0, mode)).value();
  REQUIRE(b->local_port() != 0);  // port 0 took what the kernel gave
  a->update_path(lab.path(Host::a, Family::ipv6, port_number, b->local_port()));
  for (std::uint8_t i = 1; i <= 100; ++i) REQUIRE(send_frame(*a, 1000U + i, i));
  const auto got = receive_all(*b, 100);
  REQUIRE(got.size() == 100);
  for (std::size_t i = 0; i < got.size(); ++i) CHECK(got[i] == std::string(1001 + i, static_cast<char>(i + 1)));
}

TEST_CASE("automatic says which mode it got and why not an earlier one") {
  const XdpLab lab;
  auto port = lab.open(Host::a, lab.config(Host::a, Family::ipv4, port_number, XdpMode::automatic)).value();
  CHECK(port->mode_got() == XdpMode::copy);  // veth has native XDP, but no zero-copy
  CHECK_THAT(port->refusals(), Catch::Contains("zero-copy"));
  port->update_path(lab.path(Host::a, Family::ipv4, port_number, port_number));
  const Fd peer = lab.udp_socket(Host::b, Family::ipv4, port_number);
  REQUIRE(send_frame(*port, 1400, 7));
  std::array<char, 2048> buffer{};
  CHECK(::recv(peer.get(), buffer.data(), buffer.size(), 0) == 1400);
}

TEST_CASE("a mode that the device does not have is exit 9 and names the attempt") {
  const XdpLab lab;
  const auto opened = lab.open(Host::a, lab.config(Host::a, Family::ipv4, port_number, XdpMode::zero_copy));
  REQUIRE_FALSE(opened);
  CHECK(opened.error().code == ExitCode::io_unavailable);
  CHECK_THAT(opened.error().message(), Catch::Contains("va queue 0 (zero-copy)"));
}

TEST_CASE("MTU 9000: the program attaches and frames of one chunk move") {
  const auto mode = GENERATE(XdpMode::copy, XdpMode::skb);
  CAPTURE(to_string(mode));
  const XdpLab lab{{.mtu_bytes = 9000}};
  auto opened = lab.open(Host::a, lab.config(Host::a, Family::ipv4, port_number, mode));
  if (!opened) FAIL(opened.error().message());
  AfXdpPort& port = *opened.value();
  port.update_path(lab.path(Host::a, Family::ipv4, port_number, port_number, 9000));
  const Fd peer = lab.udp_socket(Host::b, Family::ipv4, port_number);
  const std::size_t largest = port.info().frame_bytes_max;
  CHECK(largest > 3000);
  REQUIRE(send_frame(port, largest, 9));
  std::array<char, 9000> buffer{};
  REQUIRE(::recv(peer.get(), buffer.data(), buffer.size(), 0) == static_cast<ssize_t>(largest));
  REQUIRE(::send(peer.get(), buffer.data(), largest, 0) == static_cast<ssize_t>(largest));
  const auto got = receive_all(port, 1);
  REQUIRE(got.size() == 1);
  CHECK(got.front() == std::string(largest, 9));

  // A frame of several chunks is not ours: it is dropped and counted, and the next one arrives.
  REQUIRE(::send(peer.get(), buffer.data(), 8000, 0) == 8000);
  REQUIRE(::send(peer.get(), buffer.data(), 100, 0) == 100);
  const auto next = receive_all(port, 1);
  REQUIRE(next.size() == 1);
  CHECK(next.front().size() == 100);
  CHECK(port.counters().multi_descriptor_total + port.rx_ring(monotonic_now()).refused_total == 1);
}

TEST_CASE("every current receive queue is served") {
  const auto mode = GENERATE(XdpMode::copy, XdpMode::skb);
  CAPTURE(to_string(mode));
  const XdpLab lab{{.queues = 3}};
  auto opened = lab.open(Host::a, lab.config(Host::a, Family::ipv4, port_number, mode));
  if (!opened) FAIL(opened.error().message());
  AfXdpPort& port = *opened.value();
  CHECK(port.rx_queues() == 3);
  // Flows with different ports leave the peer on different queues.
  const InNetns inside{lab.netns(Host::b)};
  const sockaddr_storage target = lab.address(Host::a, Family::ipv4, port_number);
  constexpr std::size_t flows = 48;
  for (std::size_t i = 0; i < flows; ++i) {
    const Fd flow{::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
    REQUIRE(::sendto(flow.get(), "flow", 4, 0, reinterpret_cast<const sockaddr*>(&target), sizeof(sockaddr_in)) == 4);
  }
  CHECK(receive_all(port, flows).size() == flows);
  CHECK(port.strays_total() == 0);
}

TEST_CASE("a run can follow right after another on the same port and queue") {
  const auto mode = GENERATE(XdpMode::copy, XdpMode::skb);
  CAPTURE(to_string(mode));
  const XdpLab lab;
  const Fd peer = lab.udp_socket(Host::b, Family::ipv4, port_number);
  for (int run = 0; run < 10; ++run) {
    CAPTURE(run);
    auto opened = lab.open(Host::a, lab.config(Host::a, Family::ipv4, port_number, mode));
    if (!opened) FAIL(opened.error().message());
    AfXdpPort& port = *opened.value();
    port.update_path(lab.path(Host::a, Family::ipv4, port_number, port_number));
    for (int i = 0; i < 32; ++i) REQUIRE(send_frame(port, 1400, 1));
    std::array<char, 2048> buffer{};
    for (int i = 0; i < 32; ++i) REQUIRE(::recv(peer.get(), buffer.data(), buffer.size(), 0) == 1400);
  }
}
