// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/session/channel/route.hpp"

#include <ifaddrs.h>
#include <libmnl/libmnl.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <bit>
#include <memory>

#include "engine/base/system/netlink_message.hpp"

namespace onehop::session {

namespace {

Result<Interface> read_link(NetlinkSocket& socket, int ifindex, const std::string& name) {
  auto link = read_interface(socket, ifindex, name);
  if (link) {
    link.value().mtu_bytes = std::min<std::uint32_t>(link.value().mtu_bytes, 65'535);
    return link;
  }
  // A name is what the user asked for; a number is what the route led to.
  const ExitCode code = name.empty() ? ExitCode::peer_unreachable : ExitCode::io_unavailable;
  return Error{code, "look at interface " + (name.empty() ? std::to_string(ifindex) : name),
               link.error().cause, link.error().hint, link.error().errno_value};
}

Result<RouteInfo> read_route(NetlinkSocket& socket, const IpAddress& peer, int ifindex) {
  NetlinkRequest<rtmsg> message{RTM_GETROUTE,
                                0,
                                {.rtm_family = peer.family(),
                                 .rtm_dst_len = static_cast<unsigned char>(peer.size_bytes() * 8),
                                 .rtm_flags = RTM_F_LOOKUP_TABLE}};
  put_address(message, RTA_DST, peer);
  const auto scope = ifindex != 0 ? static_cast<std::uint32_t>(ifindex) : peer.scope_id;
  if (scope != 0) ::mnl_attr_put_u32(message, RTA_OIF, scope);
  RouteInfo route;
  auto done = socket.request(message, [&](const nlmsghdr* reply) {
    if (auto found = parse_route(bytes_of(reply), peer.is_v6)) route = *std::move(found);
  });
  if (!done || route.link.ifindex == 0)
    return Error{ExitCode::peer_unreachable, "find the route to " + peer.text(),
                 done ? "the kernel named no interface" : done.error().cause,
                 "Check the address, and that the interface is up"};
  // Else nothing can be bound to it: RFC 4007 section 6.
  if (route.source.is_link_local())
    route.source.scope_id = static_cast<std::uint32_t>(route.link.ifindex);
  return route;
}

std::string table_name(std::uint32_t table) {
  if (table == RT_TABLE_MAIN) return "main";
  if (table == RT_TABLE_LOCAL) return "local";
  if (table == RT_TABLE_DEFAULT) return "default";
  return std::to_string(table);
}

// prefix_bits: how many leading bits two addresses of one family have in common.
std::size_t prefix_bits(const IpAddress& a, const IpAddress& b) noexcept {
  std::size_t bits = 0;
  for (std::size_t i = 0; i < a.size_bytes(); ++i, bits += 8)
    if (const auto differ = std::to_integer<std::uint8_t>(a.bytes[i] ^ b.bytes[i]); differ != 0)
      return bits + static_cast<std::size_t>(std::countl_zero(differ));
  return bits;
}

IpAddress network_of(IpAddress address, std::size_t bits) noexcept {
  for (std::size_t i = 0; i < address.size_bytes(); ++i) {
    const std::size_t kept = std::min<std::size_t>(bits - std::min(bits, i * 8), 8);
    address.bytes[i] &= static_cast<std::byte>(0xff00U >> kept);
  }
  return address;
}

}  // namespace

std::optional<RouteInfo> parse_route(std::span<const std::byte> message, bool is_v6) {
  rtmsg family;
  const auto attributes = message_body(message, RTM_NEWROUTE, family);
  if (!attributes) return std::nullopt;
  RouteInfo route;
  (void)each_attribute(*attributes, [&](int type, std::span<const std::byte> value) {
    if (type == RTA_OIF) (void)read_value(value, route.link.ifindex);
    if (type == RTA_GATEWAY) route.gateway = read_address(value, is_v6);
    if (type == RTA_TABLE) (void)read_value(value, route.table);
    if (type == RTA_PREFSRC) route.source = read_address(value, is_v6);
  });
  return route;
}

std::optional<Neighbour> parse_neighbour(std::span<const std::byte> message) {
  ndmsg family;
  auto attributes = message_body(message, RTM_NEWNEIGH, family);
  if (!attributes) attributes = message_body(message, RTM_DELNEIGH, family);
  if (!attributes || (family.ndm_family != AF_INET && family.ndm_family != AF_INET6))
    return std::nullopt;
  Neighbour entry{
      .ifindex = family.ndm_ifindex, .state = family.ndm_state, .address = {}, .mac = {}};
  (void)each_attribute(*attributes, [&](int type, std::span<const std::byte> value) {
    if (type == NDA_DST) entry.address = read_address(value, family.ndm_family == AF_INET6);
    if (type == NDA_LLADDR && value.size() == sizeof(MacAddress))
      (void)read_value(value, entry.mac.emplace());
  });
  return entry;
}

Result<RouteInfo> find_route_on(NetlinkSocket& socket, const IpAddress& peer,
                                const std::string& interface) {
  int ifindex = 0;
  if (!interface.empty()) {
    ONEHOP_TRY(link, read_link(socket, 0, interface));
    ifindex = link.ifindex;
  }
  ONEHOP_TRY(route, read_route(socket, peer, ifindex));
  ONEHOP_TRY(route_link_taken, read_link(socket, route.link.ifindex, {}));
  route.link = std::move(route_link_taken);
  return route;
}

Result<RouteInfo> find_route(const IpAddress& peer, const std::string& interface) {
  ONEHOP_TRY(socket, NetlinkSocket::open(NETLINK_ROUTE));
  return find_route_on(socket, peer, interface);
}

std::string route_text(const RouteInfo& route) {
  std::string text = "over " + route.link.name;
  if (route.gateway) text += " through the gateway " + route.gateway->text();
  if (route.table != 0) text += " (table " + table_name(route.table) + ")";
  return text;
}

std::optional<NearLink> find_nearer(const IpAddress& peer, const RouteInfo& route) {
  // A link-local address names its interface, and one of our own is reached over loopback.
  if (peer.is_link_local() || route.link.is_loopback) return std::nullopt;
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return std::nullopt;
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner{list, &::freeifaddrs};
  const auto length =
      static_cast<socklen_t>(peer.is_v6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in));
  std::size_t taken_bits = 0, near_bits = 0;  // of the route's interface; of the nearest other one
  std::optional<NearLink> near;
  for (const ifaddrs* at = list; at != nullptr; at = at->ifa_next) {
    if (at->ifa_addr == nullptr || at->ifa_netmask == nullptr ||
        at->ifa_addr->sa_family != peer.family() || (at->ifa_flags & IFF_UP) == 0)
      continue;
    const auto own = Endpoint::from_sockaddr(at->ifa_addr, length);
    const auto mask = Endpoint::from_sockaddr(at->ifa_netmask, length);
    if (!own || !mask) continue;
    IpAddress ones = mask->address;
    ones.bytes.fill(std::byte{0xff});
    const std::size_t bits = prefix_bits(mask->address, ones);
    // A subnet of one address has no neighbours.
    if (bits >= peer.size_bytes() * 8 || prefix_bits(own->address, peer) < bits) continue;
    if (at->ifa_name == route.link.name) {
      taken_bits = std::max(taken_bits, bits);
    } else if (bits > near_bits) {
      near_bits = bits;
      near = NearLink{at->ifa_name,
                      network_of(own->address, bits).text() + "/" + std::to_string(bits)};
    }
  }
  if (near_bits <= taken_bits) return std::nullopt;
  return near;
}

std::optional<std::string> detour_warning(const IpAddress& peer, const RouteInfo& route) {
  const auto near = find_nearer(peer, route);
  if (!near) return std::nullopt;
  return peer.text() + " is in " + near->subnet + ", the subnet of " + near->interface +
         ", but its route leads " + route_text(route) + ", as a VPN's does: --iface " +
         near->interface + " takes the near way";
}

Result<void> bind_to_device(int socket, const std::string& interface) {
  if (::setsockopt(socket, SOL_SOCKET, SO_BINDTODEVICE, interface.c_str(),
                   static_cast<socklen_t>(interface.size())) == 0)
    return success();
  return errno_error(ExitCode::io_unavailable, "keep a connection to interface " + interface,
                     "Check the name with `ip link`; before Linux 5.7 it takes CAP_NET_RAW");
}

}  // namespace onehop::session
