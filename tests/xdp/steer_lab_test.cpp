// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Goal:   the steering program takes our frames and no other, replaces nobody's program, and leaves
// nothing behind. Method: raw frames from the other namespace; a packet socket on the receiving
// device sees what XDP passed on. Bounds: exact counts.
#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/bpf.h>
#include <linux/capability.h>
#include <linux/if_link.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <map>

#include <catch2/catch.hpp>

#include "engine/base/time.hpp"
#include "tests/xdp/xdp_lab.hpp"
#include "xdp/steer.hpp"

using namespace onehop;
using namespace onehop::test;

namespace {

constexpr std::uint16_t port_number = 7411;

Fd packet_socket(const XdpLab& lab, Host host, std::uint16_t protocol) {
  const InNetns inside{lab.netns(host)};
  Fd fd{::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, htons(protocol))};
  sockaddr_ll address{};
  address.sll_family = AF_PACKET;
  address.sll_protocol = htons(protocol);
  address.sll_ifindex = static_cast<int>(::if_nametoindex(lab.interface(host).c_str()));
  REQUIRE(::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  return fd;
}

using Frame = std::string;

// A frame to host b made from the session's template; the payload is `marker` repeated, so that it
// can be told apart.
Frame udp_frame(const XdpLab& lab, Family family, std::uint16_t target_port, char marker) {
  PathUpdate path = lab.path(Host::a, family, port_number, target_port);
  const std::string payload(120, marker);
  Frame frame(path.header_bytes, '\0');
  const wire::HeaderTemplate headers{std::span{path.header}.first(path.header_bytes)};
  headers.write(reinterpret_cast<std::byte*>(frame.data()), std::as_bytes(std::span{payload}));
  return frame + payload;
}

void fix_ipv4_checksum(Frame& frame, std::size_t header_bytes) {
  frame[24] = frame[25] = 0;
  const auto sum = wire::fold_sum(
      wire::ones_complement_sum(std::as_bytes(std::span{frame}.subspan(14, header_bytes))));
  const auto value = static_cast<std::uint16_t>(~sum);
  std::memcpy(frame.data() + 24, &value, 2);
}

// What must reach the kernel though it looks like ours, by name.
std::map<std::string, Frame> foreign_frames(const XdpLab& lab) {
  std::map<std::string, Frame> frames;
  frames["other port"] = udp_frame(lab, Family::ipv4, port_number + 1, 'A');
  frames["other port IPv6"] = udp_frame(lab, Family::ipv6, port_number + 1, 'B');

  Frame frame = udp_frame(lab, Family::ipv4, port_number, 'C');
  frame[33] = 77;  // 10.77.0.77, not an address of host b
  fix_ipv4_checksum(frame, 20);
  frames["other address"] = frame;

  frame = udp_frame(lab, Family::ipv4, port_number, 'D');
  frame[20] = 0x20;  // more fragments
  fix_ipv4_checksum(frame, 20);
  frames["first fragment"] = frame;

  frame = udp_frame(lab, Family::ipv4, port_number, 'E');
  frame[20] = 0x00;
  frame[21] = 0x40;  // offset 512; what stands at the UDP header's place looks like our port
  fix_ipv4_checksum(frame, 20);
  frames["later fragment"] = frame;

  frame = udp_frame(lab, Family::ipv4, port_number, 'F');
  frame.insert(
      34, std::string{"\x01\x01\x1c\xf3", 4});  // options; our port number stands where UDP's would
  frame[14] = 0x46;
  frame[17] = static_cast<char>(frame[17] + 4);
  fix_ipv4_checksum(frame, 24);
  frames["IPv4 options"] = frame;

  frame = udp_frame(lab, Family::ipv4, port_number, 'G');
  frame.insert(12, std::string{"\x81\x00\x00\x05", 4});
  frames["VLAN tag"] = frame;

  frame = udp_frame(lab, Family::ipv6, port_number, 'H');
  frame.insert(54, std::string{"\x11\x00\x1c\xf3\x00\x00\x00\x00",
                               8});  // destination options, our port number in it
  frame[20] = 60;
  frame[19] = static_cast<char>(frame[19] + 8);
  frames["IPv6 extension header"] = frame;

  frame = udp_frame(lab, Family::ipv4, port_number, 'I');
  frame[23] = IPPROTO_TCP;
  fix_ipv4_checksum(frame, 20);
  frames["TCP"] = frame;

  frame = udp_frame(lab, Family::ipv4, port_number, 'J');
  frame[23] = IPPROTO_ICMP;
  fix_ipv4_checksum(frame, 20);
  frames["ICMP"] = frame;

  frame = udp_frame(lab, Family::ipv4, port_number, 'K');
  frame[12] = 0x08;
  frame[13] = 0x06;
  frames["ARP"] = frame;

  frames["runt"] = udp_frame(lab, Family::ipv4, port_number, 'L').substr(0, 40);
  return frames;
}

std::size_t count_captured(int fd, const Frame& frame) {
  std::size_t count = 0;
  std::array<char, 2048> buffer;
  for (;;) {
    sockaddr_ll from{};
    socklen_t length = sizeof from;
    const ssize_t n = ::recvfrom(fd, buffer.data(), buffer.size(), 0,
                                 reinterpret_cast<sockaddr*>(&from), &length);
    if (n <= 0) return count;
    if (from.sll_pkttype == PACKET_OUTGOING) continue;  // an ICMP error quotes the frame it answers
    // The marker at the end is the frame's own; headers may have been touched (a VLAN tag is moved
    // aside).
    const std::string_view got{buffer.data(), static_cast<std::size_t>(n)};
    if (got.ends_with(std::string_view{frame}.substr(frame.size() - 20))) ++count;
  }
}

bool set_capabilities(std::uint64_t bits) {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, 2> data{};
  for (std::size_t i = 0; i < data.size(); ++i)
    data[i].effective = data[i].permitted = static_cast<std::uint32_t>(bits >> (32 * i));
  return ::syscall(SYS_capset, &header, data.data()) == 0;
}

// Opens a port as nobody with the given capabilities, then drops those too and sends one frame.
// Returns "opened", or the exit code and the message.
std::string open_as_nobody(const XdpLab& lab, std::uint64_t capabilities) {
  int answer[2];
  REQUIRE(::pipe(answer) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    const InNetns inside{lab.netns(Host::a)};
    if (::prctl(PR_SET_KEEPCAPS, 1) != 0 || ::setuid(65534) != 0) ::_exit(1);
    if (!set_capabilities(capabilities)) ::_exit(1);
    const auto opened =
        AfXdpPort::open(lab.config(Host::a, Family::ipv4, port_number, XdpMode::automatic));
    std::string text = "opened";
    if (!opened)
      text = std::to_string(static_cast<int>(opened.error().code)) + " " + opened.error().message();
    if (opened) {
      if (!set_capabilities(0)) ::_exit(1);
      opened.value()->update_path(lab.path(Host::a, Family::ipv4, port_number, port_number));
      if (!send_frame(*opened.value(), 700, 5)) ::_exit(1);
    }
    (void)!::write(answer[1], text.data(), text.size());
    ::_exit(0);
  }
  ::close(answer[1]);
  std::array<char, 1024> buffer{};
  const ssize_t n = ::read(answer[0], buffer.data(), buffer.size());
  ::close(answer[0]);
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  return {buffer.data(), static_cast<std::size_t>(std::max<ssize_t>(n, 0))};
}

}  // namespace

TEST_CASE(
    "N7 foreign frames reach the kernel while a run is on, and none reaches the AF_XDP socket") {
  const auto mode = GENERATE(XdpMode::copy, XdpMode::skb);
  const auto family = GENERATE(Family::ipv4, Family::ipv6);
  CAPTURE(to_string(mode), family == Family::ipv6);
  const XdpLab lab;
  auto port = lab.open(Host::b, lab.config(Host::b, family, port_number, mode)).value();
  const Fd from = packet_socket(lab, Host::a, 0);
  const Fd capture = packet_socket(lab, Host::b, ETH_P_ALL);
  constexpr std::size_t repeats = 20;

  for (const auto& [name, frame] : foreign_frames(lab)) {
    CAPTURE(name);
    for (std::size_t i = 0; i < repeats; ++i)
      REQUIRE(::send(from.get(), frame.data(), frame.size(), 0) ==
              static_cast<ssize_t>(frame.size()));
    std::size_t seen = 0;
    CHECK(
        wait_until([&] { return (seen += count_captured(capture.get(), frame)) >= repeats; }, 2s));
    CHECK(seen == repeats);
    CHECK(receive_all(*port, 1, 5ms).empty());
  }
  CHECK(port->malformed_total() == 0);

  // And the other way round: ours reach the socket, and the kernel sees none of them.
  const Frame ours = udp_frame(lab, family, port_number, 'Z');
  for (std::size_t i = 0; i < repeats; ++i)
    REQUIRE(::send(from.get(), ours.data(), ours.size(), 0) == static_cast<ssize_t>(ours.size()));
  CHECK(receive_all(*port, repeats).size() == repeats);
  CHECK(count_captured(capture.get(), ours) == 0);

  // The other family's frames on our port number are not ours.
  const Frame other =
      udp_frame(lab, family == Family::ipv4 ? Family::ipv6 : Family::ipv4, port_number, 'Y');
  REQUIRE(::send(from.get(), other.data(), other.size(), 0) == static_cast<ssize_t>(other.size()));
  CHECK(wait_until([&] { return count_captured(capture.get(), other) == 1; }, 2s));
  CHECK(receive_all(*port, 1, 5ms).empty());
}

TEST_CASE("N7 fragments of a datagram for our port go to the kernel") {
  const auto family = GENERATE(Family::ipv4, Family::ipv6);
  const XdpLab lab;
  auto port = lab.open(Host::b, lab.config(Host::b, family, port_number, XdpMode::copy)).value();
  const Fd peer = lab.udp_socket(Host::a, family, port_number);
  const Fd capture = packet_socket(lab, Host::b, ETH_P_ALL);
  const std::string payload(3000, 'P');
  REQUIRE(::send(peer.get(), payload.data(), 1400, 0) == 1400);
  CHECK(receive_all(*port, 1).size() == 1);
  CHECK(count_captured(capture.get(), payload) == 0);
  REQUIRE(::send(peer.get(), payload.data(), 3000, 0) == 3000);
  std::size_t seen = 0;
  CHECK(wait_until([&] { return (seen += count_captured(capture.get(), payload)) == 3; }));
  CHECK(receive_all(*port, 1, 5ms).empty());
}

TEST_CASE("a killed run leaves neither program nor bound queue") {
  const auto mode = GENERATE(XdpMode::copy, XdpMode::skb);
  CAPTURE(to_string(mode));
  const XdpLab lab;
  int ready[2];
  REQUIRE(::pipe(ready) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    auto opened = lab.open(Host::a, lab.config(Host::a, Family::ipv4, port_number, mode));
    const char answer = opened ? 'y' : 'n';
    (void)!::write(ready[1], &answer, 1);
    for (;;) ::pause();
  }
  char answer = 0;
  REQUIRE(::read(ready[0], &answer, 1) == 1);
  REQUIRE(answer == 'y');
  CHECK_THAT(lab.output(Host::a, "ip link show dev va"), Catch::Contains("xdp"));
  {
    const auto conflict = lab.open(Host::a, lab.config(Host::a, Family::ipv4, port_number, mode));
    REQUIRE_FALSE(conflict);
    CHECK(conflict.error().errno_value == EADDRINUSE);
    CHECK_THAT(conflict.error().message(), Catch::Contains("10.77.0.1:7411"));
  }
  ::kill(child, SIGKILL);
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);

  CHECK(wait_until(
      [&] { return lab.output(Host::a, "ip link show dev va").find("xdp") == std::string::npos; }));
  auto again = lab.open(Host::a, lab.config(Host::a, Family::ipv4, port_number, mode));
  if (!again) FAIL(again.error().message());
  again.value().reset();
  CHECK(lab.output(Host::a, "ip link show dev va").find("xdp") == std::string::npos);
  CHECK_THAT(lab.output(Host::a, "bpftool net show dev va"), !Catch::Contains("onehop"));
}

TEST_CASE("a foreign program stays, and the error names it") {
  const auto mode = GENERATE(XdpMode::automatic, XdpMode::copy, XdpMode::skb);
  CAPTURE(to_string(mode));
  const XdpLab lab;
  const std::array<bpf_insn, 2> pass = {
      {{BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_0, 0, 0, XDP_PASS}, {BPF_JMP | BPF_EXIT, 0, 0, 0, 0}}};
  const Fd program{
      bpf_prog_load(BPF_PROG_TYPE_XDP, "somebodys_fw", "GPL", pass.data(), pass.size(), nullptr)};
  REQUIRE(program.is_open());
  const InNetns inside{lab.netns(Host::a)};
  const int ifindex = static_cast<int>(::if_nametoindex("va"));
  REQUIRE(bpf_xdp_attach(ifindex, program.get(), XDP_FLAGS_DRV_MODE, nullptr) == 0);
  const auto opened = lab.open(Host::a, lab.config(Host::a, Family::ipv4, port_number, mode));
  REQUIRE_FALSE(opened);
  CHECK(opened.error().code == ExitCode::io_unavailable);
  CHECK_THAT(opened.error().message(), Catch::Contains("somebodys_fw"));
  CHECK_THAT(xdp::attached_program(ifindex), Catch::Contains("somebodys_fw"));
}

TEST_CASE(
    "D5 four capabilities are enough to open, none to send, and a missing one is exit 10 and "
    "named") {
  const XdpLab lab;
  const std::map<int, std::string> needed = {{CAP_NET_RAW, "CAP_NET_RAW"},
                                             {CAP_NET_ADMIN, "CAP_NET_ADMIN"},
                                             {CAP_BPF, "CAP_BPF"},
                                             {CAP_IPC_LOCK, "CAP_IPC_LOCK"}};
  std::uint64_t all = 0;
  for (const auto& [bit, name] : needed) all |= std::uint64_t{1} << bit;
  const Fd peer = lab.udp_socket(Host::b, Family::ipv4, port_number);
  CHECK(open_as_nobody(lab, all) == "opened");
  std::array<char, 2048> buffer{};
  CHECK(::recv(peer.get(), buffer.data(), buffer.size(), 0) == 700);

  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_MEMLOCK, &before) == 0);
  const rlimit lowered{1 << 20,
                       before.rlim_max};  // CAP_IPC_LOCK is not missed where the limit is high
  REQUIRE(::setrlimit(RLIMIT_MEMLOCK, &lowered) == 0);
  for (const auto& [bit, name] : needed) {
    CAPTURE(name);
    CHECK_THAT(open_as_nobody(lab, all & ~(std::uint64_t{1} << bit)),
               Catch::StartsWith("10 ") && Catch::Contains(name));
  }
  CHECK_THAT(open_as_nobody(lab, 0), Catch::StartsWith("10 "));
  REQUIRE(::setrlimit(RLIMIT_MEMLOCK, &before) == 0);
}
