// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Goal:   frames move between the AF_XDP port and a plain kernel UDP socket, both ways, in each
// mode and family. Method: two namespaces over veth; the kernel verifies our checksums (it drops
// what is wrong). Bounds: all frames arrive, with their bytes.
#include <fcntl.h>
#include <sys/socket.h>

#include <array>
#include <cstring>
#include <fstream>

#include <catch2/catch.hpp>

#include "engine/base/alloc_guard.hpp"
#include "engine/base/time.hpp"
#include "tests/xdp/xdp_lab.hpp"
#include "xdp/afxdp_layout.hpp"
#include "xdp/xsk_queue.hpp"

using namespace onehop;
using namespace onehop::test;

namespace {
constexpr std::uint16_t port_number = 7411;
const std::vector<std::size_t> sizes = {44, 45, 511, 1024, 1400, 1452};

std::string payload_of(std::size_t bytes) {
  return std::string(bytes, static_cast<char>(bytes & 0x7f));
}

/// Stream: frames of drawn sizes, each with its number at its end, through rings of 64 chunks; few
/// enough are out at a time that the rings cannot overflow.
struct Stream {
  std::uint16_t mtu_bytes;
  std::uint32_t total_frames, frames_out_max;
  std::uint32_t (*size_of)(std::uint32_t number);
};

void check_stream(const Stream& stream, XdpMode mode) {
  const auto [mtu_bytes, total_frames, frames_out_max, size_of] = stream;
  const XdpLab lab{{.mtu_bytes = mtu_bytes}};
  AfXdpConfig a_config = lab.config(Host::a, Family::ipv4, port_number, mode);
  AfXdpConfig b_config = lab.config(Host::b, Family::ipv4, port_number, mode);
  a_config.tx_frames = b_config.rx_frames = 64;
  auto a = lab.open(Host::a, a_config).value();
  auto b = lab.open(Host::b, b_config).value();
  a->update_path(lab.path(Host::a, Family::ipv4, port_number, port_number, mtu_bytes));
  constexpr std::uint32_t rounds_without_frame_max = 200;
  std::uint32_t sent = 0, received = 0, misplaced = 0, unbalanced = 0, idle = 0;
  std::int64_t accepted = 0;
  {
    const AllocGuard guard;
    std::array<RxFrame, rx_batch_max> views;
    while (received < total_frames && idle < rounds_without_frame_max) {
      for (std::uint32_t i = 0;
           i < frames_out_max && sent < total_frames && sent - received < frames_out_max; ++i) {
        const auto slot = a->lend(size_of(sent));
        if (slot.empty()) break;
        std::memcpy(slot.data() + slot.size() - sizeof sent, &sent, sizeof sent);
        a->commit(slot.size());
        accepted += static_cast<std::int64_t>(slot.size()) + 42;
        ++sent;
      }
      (void)a->flush(monotonic_now());
      const QueueTelemetry queue = a->tx_queue(monotonic_now());
      unbalanced += queue.drained_total + queue.occupancy == Bytes{accepted} ? 0U : 1U;
      const std::size_t count = b->receive(views);
      for (std::size_t i = 0; i < count; ++i) {
        const std::size_t bytes = views[i].bytes().size();
        std::uint32_t number = 0;
        views[i].bytes().copy_to(reinterpret_cast<std::byte*>(&number), bytes - sizeof number,
                                 bytes);
        misplaced += number != received || bytes != size_of(number) ? 1U : 0U;
        ++received;
      }
      b->release();
      idle = count > 0 ? 0 : idle + 1;
      if (count == 0) (void)b->wait(monotonic_now() + 20ms, true);
    }
  }
  CHECK(received == total_frames);
  CHECK(misplaced == 0);
  CHECK(unbalanced == 0);
  CHECK(a->tx_queue(monotonic_now()).refused_total == 0);
  CHECK(b->rx_ring(monotonic_now()).refused_total == 0);
}

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

  // A burst is one doorbell; a kernel before 6.17 takes 32 frames per call.
  for (int i = 0; i < 256; ++i) {
    REQUIRE_FALSE(port.lend(1400).empty());
    port.commit(1400);
  }
  const std::uint64_t calls_before = port.syscalls_total();
  CHECK(port.flush(monotonic_now()) == 0);
  CHECK(port.syscalls_total() - calls_before <= 256 / 32 + 1);
  CHECK(port.flush(monotonic_now()) == 0);
  CHECK(port.malformed_total() == 0);
}

// Goal:   no frame and no chunk is lost or doubled over many times the rings' length, and nothing
// allocates. Method: a hundred thousand frames through 64-frame rings, taken as they come; an
//         allocation aborts. 32 frames of one chunk, or 10 of three, cannot overflow a ring of 64.
TEST_CASE("a hundred thousand frames through small rings arrive in order, without an allocation") {
  const auto mode = GENERATE(XdpMode::copy, XdpMode::skb);
  CAPTURE(to_string(mode));
  check_stream({1500, 100'000, 32, [](std::uint32_t number) { return 200 + number % 1000; }}, mode);
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
  for (std::size_t i = 0; i < got.size(); ++i)
    CHECK(got[i] == std::string(1001 + i, static_cast<char>(i + 1)));
}

TEST_CASE("automatic says which mode it got and why not an earlier one") {
  const XdpLab lab;
  auto port =
      lab.open(Host::a, lab.config(Host::a, Family::ipv4, port_number, XdpMode::automatic)).value();
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
  const auto opened =
      lab.open(Host::a, lab.config(Host::a, Family::ipv4, port_number, XdpMode::zero_copy));
  REQUIRE_FALSE(opened);
  CHECK(opened.error().code == ExitCode::io_unavailable);
  CHECK_THAT(opened.error().message(), Catch::Contains("va queue 0 (zero-copy)"));
}

// Goal:   at MTU 9000 frames use all of it, in several chunks, both ways and beside a kernel
// socket. Method: the largest frame and the sizes around each chunk's end, with a pattern in them.
TEST_CASE("N9 MTU 9000: frames in several chunks go out and come in whole") {
  const auto mode = GENERATE(XdpMode::copy, XdpMode::skb);
  const auto family = GENERATE(Family::ipv4, Family::ipv6);
  CAPTURE(to_string(mode), family == Family::ipv6);
  const XdpLab lab{{.mtu_bytes = 9000}};
  auto opened = lab.open(Host::a, lab.config(Host::a, family, port_number, mode));
  if (!opened) FAIL(opened.error().message());
  AfXdpPort& port = *opened.value();
  port.update_path(lab.path(Host::a, family, port_number, port_number, 9000));
  const Fd peer = lab.udp_socket(Host::b, family, port_number);
  const std::size_t largest = 9000 - (family == Family::ipv4 ? 28 : 48);
  CHECK(port.info().frame_bytes_max >= largest);
  std::array<char, 9000> buffer{};
  for (const std::size_t bytes :
       {largest, std::size_t{3777}, std::size_t{3778}, std::size_t{3779}, std::size_t{3798},
        std::size_t{3799}, std::size_t{4032}, std::size_t{4033}, std::size_t{7638},
        std::size_t{7639}, std::size_t{8128}, std::size_t{8129}, std::size_t{60}}) {
    CAPTURE(bytes);
    const auto slot = port.lend(bytes);
    REQUIRE(slot.size() == bytes);
    for (std::size_t i = 0; i < bytes; ++i) slot[i] = static_cast<std::byte>(i * 7 + (i >> 8));
    const std::string sent{reinterpret_cast<const char*>(slot.data()), bytes};
    port.commit(bytes);
    REQUIRE(port.flush(monotonic_now()) == 0);
    REQUIRE(::recv(peer.get(), buffer.data(), buffer.size(), 0) == static_cast<ssize_t>(bytes));
    REQUIRE(std::string_view{buffer.data(), bytes} == sent);
    REQUIRE(::send(peer.get(), buffer.data(), bytes, 0) == static_cast<ssize_t>(bytes));
    const auto got = receive_all(port, 1);
    REQUIRE(got.size() == 1);
    REQUIRE(got.front() == sent);
  }
  CHECK(wait_until([&] { return port.tx_queue(monotonic_now()).occupancy == Bytes{0}; }));
  CHECK(port.malformed_total() + port.rx_ring(monotonic_now()).refused_total == 0);
}

// Goal:   no chunk of a large frame is lost or doubled over many times the rings' length.
// Method: drawn sizes through rings of 64 chunks; an allocation aborts where the guard is built in.
TEST_CASE("twenty thousand frames of up to three chunks go through small rings in order") {
  const auto mode = GENERATE(XdpMode::copy, XdpMode::skb);
  CAPTURE(to_string(mode));
  check_stream({9000, 20'000, 10,
                [](std::uint32_t number) { return 200 + number * 2'654'435'761U % 8'773; }},
               mode);
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
  const SocketAddress target = lab.address(Host::a, Family::ipv4, port_number).to_sockaddr();
  constexpr std::size_t flows = 48;
  for (std::size_t i = 0; i < flows; ++i) {
    const Fd flow{::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
    REQUIRE(::sendto(flow.get(), "flow", 4, 0, target.get(), target.size_bytes) == 4);
  }
  CHECK(receive_all(port, flows).size() == flows);
}

TEST_CASE("the sockets of a port are closed by exec(), and with the port") {
  struct Sockets {
    std::size_t open = 0, kept_by_exec = 0, mapped_rings = 0;
  };
  const auto xdp_sockets = [] {
    Sockets found;
    for (int fd = 0; fd < 1024; ++fd) {
      int domain = 0;
      socklen_t length = sizeof domain;
      if (::getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &length) != 0 || domain != AF_XDP)
        continue;
      ++found.open;
      if ((::fcntl(fd, F_GETFD) & FD_CLOEXEC) == 0) ++found.kept_by_exec;
    }
    std::ifstream maps{"/proc/self/maps"};
    for (std::string line; std::getline(maps, line);)
      found.mapped_rings += line.find(" socket:[") != std::string::npos ? 1 : 0;
    return found;
  };
  const XdpLab lab{{.queues = 2}};
  REQUIRE(xdp_sockets().open == 0);
  auto port =
      lab.open(Host::a, lab.config(Host::a, Family::ipv4, port_number, XdpMode::automatic)).value();
  CHECK(xdp_sockets().open == 3);  // one for each queue, and the one that sends
  CHECK(xdp_sockets().kept_by_exec == 0);
  CHECK(xdp_sockets().mapped_rings == 2 * 3 + 1);
  port.reset();
  CHECK(xdp_sockets().open == 0);
  CHECK(xdp_sockets().mapped_rings == 0);
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
    for (int i = 0; i < 32; ++i)
      REQUIRE(::recv(peer.get(), buffer.data(), buffer.size(), 0) == 1400);
  }
}

TEST_CASE(
    "the AF_XDP sockets of this process get the room that is asked for, and no other socket does") {
  const auto room_of = [](int fd) {
    int bytes = 0;
    socklen_t length = sizeof bytes;
    REQUIRE(::getsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, &length) == 0);
    return bytes;
  };
  const Fd datagrams{::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
  const int before = room_of(datagrams.get());
  const Fd frames{::socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0)};
  xdp::widen_sockets(1024, 1514, 0);
  CHECK(room_of(frames.get()) >= 1024 * xdp::copy_truesize_bytes(1514));
  CHECK(room_of(datagrams.get()) == before);
}
