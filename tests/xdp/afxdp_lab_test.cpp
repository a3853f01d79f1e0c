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
