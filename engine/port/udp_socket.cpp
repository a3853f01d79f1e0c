// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// See udp_socket.hpp. Set-up in the order of udp(7), ip(7), ipv6(7).
#include "engine/port/udp_socket.hpp"

#include <linux/errqueue.h>
#include <linux/filter.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/ioctl.h>

#include <algorithm>

#include "engine/base/system/rights.hpp"
#include "engine/wire/frame.hpp"

namespace onehop {
namespace {

// Implementation constant: ICMP errors read per call. A flood of forged ICMP then costs a bounded
// time.
constexpr int errors_per_call_max = 16;
// Reports of the link, one per frame, are our own driver's: 256 leave in some milliseconds.
constexpr int reports_per_call_max = 256;

Result<void> set_int(int fd, int level, int name, int value, const char* what) {
  if (::setsockopt(fd, level, name, &value, sizeof value) == 0) return success();
  return errno_error(ExitCode::io_unavailable, std::string{"set "} + what);
}

// The forced form needs CAP_NET_ADMIN; without it the kernel goes up to rmem_max or wmem_max.
Result<void> set_buffer(int fd, int forced_name, int name, int value_bytes, const char* what) {
  Rights* const rights = kept_rights();
  if (rights != nullptr && rights->force_buffer(fd, forced_name, value_bytes)) return success();
  if (::setsockopt(fd, SOL_SOCKET, forced_name, &value_bytes, sizeof value_bytes) == 0)
    return success();
  return set_int(fd, SOL_SOCKET, name, value_bytes, what);
}

// DF always, and the interface's MTU only: PROBE and not DO, because under DO a forged ICMP "too
// big" would shrink our frames. Where we want fragments, DONT.
Result<void> set_mtu_discovery(int fd, bool is_ipv6, bool has_fragments) {
  if (is_ipv6)
    return set_int(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER,
                   has_fragments ? IPV6_PMTUDISC_DONT : IPV6_PMTUDISC_PROBE, "IPV6_MTU_DISCOVER");
  return set_int(fd, IPPROTO_IP, IP_MTU_DISCOVER,
                 has_fragments ? IP_PMTUDISC_DONT : IP_PMTUDISC_PROBE, "IP_MTU_DISCOVER");
}

// drop_what_is_no_frame has the kernel drop, before it queues anything or wakes anybody, what
// cannot be a frame of ours by its clear header (engine/wire/frame.hpp): a flood then costs no turn
// of the engine core. What passes must authenticate. Offsets from the UDP header.
Result<void> drop_what_is_no_frame(int fd) {
  constexpr std::uint32_t udp_bytes = 8, type_at = udp_bytes, flags_at = udp_bytes + 1,
                          reserved_at = udp_bytes + 2, number_at = udp_bytes + 8;
  constexpr std::uint32_t flags_unknown = 0xf0;
  constexpr std::uint32_t number_unknown = 0xc0;  // of its first byte: 2^62 and more
  std::array<sock_filter, 14> program{{
      BPF_STMT(BPF_LD | BPF_W | BPF_LEN, 0),
      BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, udp_bytes + wire::frame_bytes_min, 0, 11),
      BPF_STMT(BPF_LD | BPF_B | BPF_ABS, type_at),
      BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, static_cast<std::uint32_t>(wire::FrameType::data), 0, 9),
      BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, static_cast<std::uint32_t>(wire::FrameType::pong), 8, 0),
      BPF_STMT(BPF_LD | BPF_B | BPF_ABS, flags_at),
      BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, flags_unknown, 6, 0),
      BPF_STMT(BPF_LD | BPF_H | BPF_ABS, reserved_at),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 4),
      BPF_STMT(BPF_LD | BPF_B | BPF_ABS, number_at),
      BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, number_unknown, 2, 0),
      BPF_STMT(BPF_LD | BPF_W | BPF_LEN, 0),
      BPF_STMT(BPF_RET | BPF_A, 0),  // all of it
      BPF_STMT(BPF_RET | BPF_K, 0),
  }};
  const sock_fprog filter{static_cast<unsigned short>(program.size()), program.data()};
  if (::setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof filter) == 0) return success();
  return errno_error(ExitCode::io_unavailable, "filter what the data socket receives");
}

Result<void> set_options(int fd, bool is_ipv6, const UdpPortConfig& config) {
  const int traffic_class = config.dscp << 2 | static_cast<int>(config.ecn);
  // 1. Path MTU. 2. Errors of the local qdisc come back from the call. 3. ECN out and in.
  ONEHOP_TRYV(set_mtu_discovery(fd, is_ipv6, config.has_fragments));
  if (is_ipv6) {
    ONEHOP_TRYV(set_int(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1, "IPV6_V6ONLY"));
    ONEHOP_TRYV(set_int(fd, IPPROTO_IPV6, IPV6_RECVERR, 1, "IPV6_RECVERR"));
    ONEHOP_TRYV(set_int(fd, IPPROTO_IPV6, IPV6_TCLASS, traffic_class, "IPV6_TCLASS"));
    ONEHOP_TRYV(set_int(fd, IPPROTO_IPV6, IPV6_RECVTCLASS, 1, "IPV6_RECVTCLASS"));
  } else {
    ONEHOP_TRYV(set_int(fd, IPPROTO_IP, IP_RECVERR, 1, "IP_RECVERR"));
    ONEHOP_TRYV(set_int(fd, IPPROTO_IP, IP_TOS, traffic_class, "IP_TOS"));
    ONEHOP_TRYV(set_int(fd, IPPROTO_IP, IP_RECVTOS, 1, "IP_RECVTOS"));
  }
  if (config.is_port_shared) {
    ONEHOP_TRYV(set_int(fd, SOL_SOCKET, SO_REUSEADDR, 1, "SO_REUSEADDR"));
  }
  // 4. Buffers and priority. IP_TOS resets the priority, so it comes after.
  ONEHOP_TRYV(set_buffer(fd, SO_RCVBUFFORCE, SO_RCVBUF, config.rcvbuf_bytes, "SO_RCVBUF"));
  ONEHOP_TRYV(set_buffer(fd, SO_SNDBUFFORCE, SO_SNDBUF, config.sndbuf_bytes, "SO_SNDBUF"));
  ONEHOP_TRYV(set_int(fd, SOL_SOCKET, SO_PRIORITY, config.priority, "SO_PRIORITY"));
  if (!config.interface.empty() &&
      ::setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, config.interface.c_str(),
                   static_cast<socklen_t>(config.interface.size() + 1)) != 0) {
    return errno_error(ExitCode::io_unavailable,
                       "bind the data socket to interface " + config.interface,
                       "Check the name with `ip link`.");
  }
  return success();
}

}  // namespace

Result<UdpSocket> UdpSocket::open(const UdpPortConfig& config) {
  UdpSocket socket;
  const IpAddress& address = config.local.address;
  socket.is_ipv6_ = address.is_v6;
  socket.fd_ = Fd{::socket(address.family(), SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
  if (!socket.fd_.is_open()) return errno_error(ExitCode::io_unavailable, "open the data socket");
  ONEHOP_TRYV(set_options(socket.fd(), socket.is_ipv6_, config));
  if (config.has_frames_only) {
    ONEHOP_TRYV(drop_what_is_no_frame(socket.fd()));
  }
  const SocketAddress at = config.local.to_sockaddr();
  if (::bind(socket.fd(), at.get(), at.size_bytes) != 0) {
    return errno_error(ExitCode::io_unavailable, "bind UDP " + config.local.text(),
                       "Another program may hold the port: see `ss -ulnp`.");
  }
  if (config.peer) {
    ONEHOP_TRYV(socket.connect(*config.peer));
  }
  return socket;
}

Result<void> UdpSocket::connect(const Endpoint& peer) {
  const SocketAddress to = peer.to_sockaddr();
  if (::connect(fd(), to.get(), to.size_bytes) != 0) {
    return errno_error(ExitCode::peer_unreachable, "connect UDP to " + peer.text(),
                       "Is there a route to the peer? See `ip route get`.");
  }
  ONEHOP_TRY(local, Endpoint::of_socket(fd()));
  is_loopback_ = peer.address.is_loopback() || local.address.is_loopback();
  return success();
}

Result<std::uint16_t> UdpSocket::local_port() const {
  ONEHOP_TRY(local, Endpoint::of_socket(fd()));
  return local.port;
}

bool UdpSocket::is_gso_known() const noexcept {
  const int off = 0;
  return ::setsockopt(fd(), IPPROTO_UDP, UDP_SEGMENT, &off, sizeof off) == 0;
}

bool UdpSocket::set_gro(bool is_on) const noexcept {
  const int value = is_on ? 1 : 0;
  return ::setsockopt(fd(), IPPROTO_UDP, UDP_GRO, &value, sizeof value) == 0;
}

bool UdpSocket::set_fragments(bool is_on) const noexcept {
  return set_mtu_discovery(fd(), is_ipv6_, is_on).has_value();
}

bool UdpSocket::move_peer(const Endpoint& peer) noexcept {
  const SocketAddress to = peer.to_sockaddr();
  return ::connect(fd(), to.get(), to.size_bytes) == 0;
}

bool UdpSocket::follow_device(const std::string& interface,
                              const std::optional<Endpoint>& peer) noexcept {
  //= Linux net/ipv4/udp.c, __udp_disconnect(): sk_bound_dev_if = 0
  const sockaddr nobody{.sa_family = AF_UNSPEC, .sa_data = {}};
  if (local_.port == 0) {
    const auto local = Endpoint::of_socket(fd());
    if (!local) return false;
    local_ = local.value();
  }
  if (::connect(fd(), &nobody, sizeof nobody) != 0) return false;
  // A port that the kernel had chosen went with the connection; one that we named stayed, and is
  // refused here.
  const SocketAddress at = local_.to_sockaddr();
  (void)::bind(fd(), at.get(), at.size_bytes);
  return ::setsockopt(fd(), SOL_SOCKET, SO_BINDTODEVICE, interface.c_str(),
                      static_cast<socklen_t>(interface.size())) == 0 &&
         (!peer || move_peer(*peer));
}

void UdpSocket::follow_link(int ifindex) noexcept {
  static_assert(std::tuple_size_v<decltype(link_name_)> == IFNAMSIZ);
  ifreq request{};
  request.ifr_ifindex = ifindex;
  const bool is_known = ifindex > 0 && ::ioctl(fd(), SIOCGIFNAME, &request) == 0;
  link_name_ = {};
  if (is_known) std::copy_n(request.ifr_name, link_name_.size(), link_name_.begin());
}

bool UdpSocket::is_link_running() const noexcept {
  if (!follows_link()) return true;
  ifreq request{};
  std::copy(link_name_.begin(), link_name_.end(), request.ifr_name);
  return ::ioctl(fd(), SIOCGIFFLAGS, &request) != 0 || (request.ifr_flags & IFF_RUNNING) != 0;
}

std::uint32_t UdpSocket::drain_errors() const noexcept {
  std::uint32_t syscalls = 0;
  for (int errors = 0, reports = 0;
       errors < errors_per_call_max && reports < reports_per_call_max;) {
    alignas(cmsghdr) char control[256];
    char data[64];
    iovec piece{.iov_base = data, .iov_len = sizeof data};
    msghdr message{};
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    syscalls += 1;
    if (::recvmsg(fd(), &message, MSG_ERRQUEUE | MSG_DONTWAIT) < 0) break;
    if (link_status_.take(message))
      ++reports;
    else
      ++errors;
  }
  // The pending error outlives the queue and would fail the next call.
  int error = 0;
  socklen_t bytes = sizeof error;
  (void)::getsockopt(fd(), SOL_SOCKET, SO_ERROR, &error, &bytes);
  return syscalls + 1;
}

}  // namespace onehop
