// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/p2p/group_ipv4.hpp"

#include <arpa/inet.h>
#include <linux/if_addr.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <vector>

#include "engine/base/fd.hpp"
#include "engine/base/system/interface.hpp"
#include "engine/base/system/netlink_message.hpp"

namespace onehop::p2p {

namespace {

/// Networks in the order in which they are tried. The first is that of Android's group owners; two
/// ranges of private addresses follow, for who has a route to the whole of one.
//= RFC 1918 §3
constexpr std::array<Ipv4, 4> own_candidates{0xc0a83101,   // 192.168.49.1
                                             0xc0a83201,   // 192.168.50.1
                                             0xac1d3101,   // 172.29.49.1
                                             0x0a953101};  // 10.149.49.1
/// A shorter prefix is a default route, or a part of one as VPNs set them.
constexpr unsigned default_bits_max = 7;
//= RFC 2131 §4.1
constexpr std::uint16_t dhcp_server_port = 67;
constexpr Ipv4 group_mask = ~Ipv4{0} << (32 - group_prefix_bits);

/// set_address adds or removes it (RTM_NEWADDR, RTM_DELADDR).
Result<void> set_address(std::uint16_t verb, int ifindex, Ipv4 own) {
  ONEHOP_TRY(socket, NetlinkSocket::open(NETLINK_ROUTE));
  const unsigned flags = verb == RTM_NEWADDR ? NLM_F_CREATE | NLM_F_EXCL : 0;
  NetlinkRequest<ifaddrmsg> request{verb,
                                    flags | NLM_F_ACK,
                                    {.ifa_family = AF_INET,
                                     .ifa_prefixlen = group_prefix_bits,
                                     .ifa_index = static_cast<unsigned>(ifindex)}};
  ::mnl_attr_put_u32(request, IFA_LOCAL, htonl(own));
  ::mnl_attr_put_u32(request, IFA_BROADCAST, htonl(own | ~group_mask));
  return socket.request(request, [](const nlmsghdr*) {});
}

/// read_routes reads all tables, own addresses among them.
Result<std::vector<Ipv4Route>> read_routes() {
  ONEHOP_TRY(socket, NetlinkSocket::open(NETLINK_ROUTE));
  NetlinkRequest<rtmsg> request{RTM_GETROUTE, NLM_F_DUMP, {.rtm_family = AF_INET}};
  std::vector<Ipv4Route> routes;
  ONEHOP_TRYV(socket.request(request, [&routes](const nlmsghdr* message) {
    rtmsg family;
    const auto attributes = message_body(bytes_of(message), RTM_NEWROUTE, family);
    if (!attributes) return;
    Ipv4Route route{.bits = family.rtm_dst_len};
    each_attribute(*attributes, [&route](int type, std::span<const std::byte> value) {
      if (type == RTA_DST && read_value(value, route.prefix)) route.prefix = ntohl(route.prefix);
    });
    routes.push_back(route);
  }));
  return routes;
}

/// try_port takes UDP port 67 of the interface and gives it back: 0, or the errno. SO_BINDTODEVICE
/// comes before bind, so that servers of other interfaces do not conflict.
int try_port(const std::string& interface) {
  const Fd fd{::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
  const sockaddr_in any{.sin_family = AF_INET, .sin_port = htons(dhcp_server_port)};
  const bool is_free = fd.is_open() &&
                       ::setsockopt(fd.get(), SOL_SOCKET, SO_BINDTODEVICE, interface.c_str(),
                                    static_cast<socklen_t>(interface.size())) == 0 &&
                       ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&any), sizeof any) == 0;
  return is_free ? 0 : errno;
}

/// explain names the remedy where a privilege is missing.
Error explain(Error error, const std::string& attempt) {
  error.attempt = attempt;
  if (error.errno_value != EPERM && error.errno_value != EACCES) return error;
  error.code = ExitCode::privilege_missing;
  error.hint = "Run it as root, or with CAP_NET_ADMIN and CAP_NET_BIND_SERVICE";
  return error;
}

}  // namespace

std::optional<Ipv4> choose_group_address(std::span<const Ipv4Route> routes) {
  for (const Ipv4 own : own_candidates) {
    const bool is_taken = std::ranges::any_of(routes, [own](const Ipv4Route& route) {
      if (route.bits <= default_bits_max || route.bits > 32) return false;
      const Ipv4 mask = ~Ipv4{0} << (32 - std::min(route.bits, group_prefix_bits));
      return (route.prefix & mask) == (own & mask);
    });
    if (!is_taken) return own;
  }
  return std::nullopt;
}

Result<GroupIpv4> GroupIpv4::open(const std::string& interface) {
  const std::string attempt = "give IPv4 addresses on " + interface;
  const int ifindex = static_cast<int>(::if_nametoindex(interface.c_str()));
  if (ifindex == 0) return errno_error(ExitCode::io_unavailable, attempt);
  if (const int taken = try_port(interface); taken == EADDRINUSE)
    return Error{ExitCode::io_unavailable, attempt, "another DHCP server has UDP port 67",
                 "ss -lunp 'sport = 67' names it", EADDRINUSE};
  else if (taken != 0)
    return explain(errno_error(ExitCode::io_unavailable, attempt, {}, taken), attempt);
  const auto routes = read_routes();
  if (routes.has_error()) return explain(routes.error(), attempt);
  const auto own = choose_group_address(routes.value());
  if (!own)
    return Error{ExitCode::io_unavailable, attempt,
                 "each network that could be taken is in a route of this machine",
                 "ip route show table all lists them", 0};
  if (const auto added = set_address(RTM_NEWADDR, ifindex, *own); added.has_error())
    return explain(added.error(), attempt);
  return GroupIpv4{interface, ifindex, *own};
}

GroupIpv4::~GroupIpv4() {
  // It fails where the interface has gone, and the address with it.
  if (ifindex_ != 0) (void)set_address(RTM_DELADDR, ifindex_, own_);
}

bool GroupIpv4::has_server() const { return try_port(interface_) == EADDRINUSE; }

bool GroupIpv4::is_over() const {
  const auto interface = read_interface(ifindex_);
  return interface.has_error() || !interface.value().has_carrier;
}

}  // namespace onehop::p2p
