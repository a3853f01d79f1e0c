// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/plane/path_follower.hpp"

#include <libmnl/libmnl.h>
#include <linux/if.h>
#include <linux/if_link.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "engine/base/fd.hpp"
#include "engine/base/time.hpp"
#include "engine/wire/l2_l4.hpp"

namespace onehop::plane {

namespace {

using MacAddress = std::array<std::byte, 6>;
// While the peer's MAC is unknown there may be no notification to wait for: the entry can exist but be incomplete.
constexpr Nanos retry_period = 1s;
// Right after a link's return the first question may have been lost, where the queue opened late. Shorter: more questions than answers
// take on a slow link. Longer: a transfer stands still for it.
constexpr Nanos retry_period_at_return = 50ms, return_span = 1s;
// A link that came up takes no frame yet: below a macvlan or a VLAN the device's queue opens some milliseconds later. The first frame
// asks for the neighbour, and where that is lost the kernel asks again after a second. Shorter: it is lost (9 ms were seen over a
// veth). Longer: a transfer stands still for it.
constexpr Nanos settle_span = 30ms;

unsigned char family_of(const IpAddress& address) noexcept { return address.is_v6 ? AF_INET6 : AF_INET; }

// libmnl's own loop macro does not compile as C++.
template <class OnAttribute>
void for_each_attribute(const nlmsghdr* message, std::size_t header_bytes, OnAttribute on_attribute) {
  const auto* tail = static_cast<const char*>(::mnl_nlmsg_get_payload_tail(message));
  const auto* at = static_cast<const nlattr*>(::mnl_nlmsg_get_payload_offset(message, header_bytes));
  for (; ::mnl_attr_ok(at, static_cast<int>(tail - reinterpret_cast<const char*>(at))); at = ::mnl_attr_next(at))
    on_attribute(at);
}

template <std::size_t N, class Header>
nlmsghdr* make_request(std::array<char, N>& buffer, std::uint16_t type, Header*& header) {
  buffer.fill(0);
  nlmsghdr* message = ::mnl_nlmsg_put_header(buffer.data());
  message->nlmsg_type = type;
  message->nlmsg_flags = NLM_F_REQUEST;
  header = static_cast<Header*>(::mnl_nlmsg_put_extra_header(message, sizeof(Header)));
  return message;
}

IpAddress read_address(const nlattr* attribute, bool is_v6) {
  IpAddress address;
  address.is_v6 = is_v6;
  const std::size_t bytes = std::min<std::size_t>(address.size_bytes(), ::mnl_attr_get_payload_len(attribute));
  std::memcpy(address.bytes.data(), ::mnl_attr_get_payload(attribute), bytes);
  return address;
}

void put_address(nlmsghdr* message, std::uint16_t type, const IpAddress& address) {
  ::mnl_attr_put(message, type, address.size_bytes(), address.bytes.data());
}

std::string link_kind(const nlattr* link_info) {
  std::string kind;
  const auto on_nested = [](const nlattr* nested, void* out) {
    if (::mnl_attr_get_type(nested) == IFLA_INFO_KIND) *static_cast<std::string*>(out) = ::mnl_attr_get_str(nested);
    return MNL_CB_OK;
  };
  (void)::mnl_attr_parse_nested(link_info, on_nested, &kind);
  return kind;
}

Result<LinkInfo> read_link(NetlinkSocket& socket, int ifindex, const std::string& name) {
  alignas(NLMSG_ALIGNTO) std::array<char, 256> buffer;
  ifinfomsg* header = nullptr;
  nlmsghdr* message = make_request(buffer, RTM_GETLINK, header);
  header->ifi_index = ifindex;
  if (ifindex == 0) ::mnl_attr_put_strz(message, IFLA_IFNAME, name.c_str());
  LinkInfo link;
  auto done = socket.request(message, [&](const nlmsghdr* reply) {
    if (reply->nlmsg_type != RTM_NEWLINK) return;
    const auto* info = static_cast<const ifinfomsg*>(::mnl_nlmsg_get_payload(reply));
    link.ifindex = info->ifi_index;
    link.is_up = (info->ifi_flags & IFF_UP) != 0 && (info->ifi_flags & IFF_LOWER_UP) != 0;
    link.has_neighbours = (info->ifi_flags & (IFF_LOOPBACK | IFF_NOARP | IFF_POINTOPOINT)) == 0;
    for_each_attribute(reply, sizeof(ifinfomsg), [&](const nlattr* attribute) {
      switch (::mnl_attr_get_type(attribute)) {
        case IFLA_IFNAME: link.name = ::mnl_attr_get_str(attribute); break;
        case IFLA_MTU:
          link.mtu_bytes = static_cast<std::uint16_t>(std::min<std::uint32_t>(::mnl_attr_get_u32(attribute), 65'535));
          break;
        case IFLA_ADDRESS:
          if (::mnl_attr_get_payload_len(attribute) == link.mac.size())
            std::memcpy(link.mac.data(), ::mnl_attr_get_payload(attribute), link.mac.size());
          break;
        case IFLA_LINKINFO: link.kind = link_kind(attribute); break;
        default: break;
      }
    });
  });
  if (!done || link.ifindex == 0) {
    const std::string what = name.empty() ? "interface " + std::to_string(ifindex) : "interface " + name;
    // A name is what the user asked for; a number is what the route led to.
    const ExitCode code = name.empty() ? ExitCode::peer_unreachable : ExitCode::io_unavailable;
    return Error{code, "look at " + what, done ? "there is none" : done.error().cause,
                 "`ip link` lists the interfaces"};
  }
  return link;
}

Result<RouteInfo> read_route(NetlinkSocket& socket, const IpAddress& peer, int ifindex) {
  alignas(NLMSG_ALIGNTO) std::array<char, 256> buffer;
  rtmsg* header = nullptr;
  nlmsghdr* message = make_request(buffer, RTM_GETROUTE, header);
  header->rtm_family = family_of(peer);
  header->rtm_dst_len = static_cast<unsigned char>(peer.size_bytes() * 8);
  put_address(message, RTA_DST, peer);
  const auto scope = ifindex != 0 ? static_cast<std::uint32_t>(ifindex) : peer.scope_id;
  if (scope != 0) ::mnl_attr_put_u32(message, RTA_OIF, scope);
  RouteInfo route;
  auto done = socket.request(message, [&](const nlmsghdr* reply) {
    if (reply->nlmsg_type != RTM_NEWROUTE) return;
    for_each_attribute(reply, sizeof(rtmsg), [&](const nlattr* attribute) {
      switch (::mnl_attr_get_type(attribute)) {
        case RTA_OIF: route.link.ifindex = static_cast<int>(::mnl_attr_get_u32(attribute)); break;
        case RTA_GATEWAY: route.gateway = read_address(attribute, peer.is_v6); break;
        case RTA_PREFSRC: route.source = read_address(attribute, peer.is_v6); break;
        default: break;
      }
    });
  });
  if (!done || route.link.ifindex == 0)
    return Error{ExitCode::peer_unreachable, "find the route to " + peer.text(),
                 done ? "the kernel named no interface" : done.error().cause,
                 "Check the address, and that the interface is up"};
  // Else nothing can be bound to it: RFC 4007 section 6.
  if (route.source.is_link_local()) route.source.scope_id = static_cast<std::uint32_t>(route.link.ifindex);
  return route;
}

bool is_usable(std::uint16_t state) noexcept {
  return (state & (NUD_REACHABLE | NUD_STALE | NUD_DELAY | NUD_PROBE | NUD_PERMANENT)) != 0;
}

// The neighbour's MAC, if the kernel has a usable one. A dump of the interface, because RTM_GETNEIGH for one address
// exists only since Linux 5.0 and there are few neighbours.
std::optional<MacAddress> read_neighbour(NetlinkSocket& socket, int ifindex, const IpAddress& address) {
  alignas(NLMSG_ALIGNTO) std::array<char, 256> buffer;
  ndmsg* header = nullptr;
  nlmsghdr* message = make_request(buffer, RTM_GETNEIGH, header);
  message->nlmsg_flags |= NLM_F_DUMP;
  header->ndm_family = family_of(address);
  ::mnl_attr_put_u32(message, NDA_IFINDEX, static_cast<std::uint32_t>(ifindex));
  std::optional<MacAddress> found;
  auto done = socket.request(message, [&](const nlmsghdr* reply) {
    if (reply->nlmsg_type != RTM_NEWNEIGH) return;
    const auto* info = static_cast<const ndmsg*>(::mnl_nlmsg_get_payload(reply));
    if (info->ndm_ifindex != ifindex || info->ndm_family != family_of(address) || !is_usable(info->ndm_state)) return;
    bool is_wanted = false;
    std::optional<MacAddress> mac;
    for_each_attribute(reply, sizeof(ndmsg), [&](const nlattr* attribute) {
      const auto type = ::mnl_attr_get_type(attribute);
      if (type == NDA_DST) is_wanted = read_address(attribute, address.is_v6).bytes == address.bytes;
      if (type == NDA_LLADDR && ::mnl_attr_get_payload_len(attribute) == sizeof(MacAddress)) {
        mac.emplace();
        std::memcpy(mac->data(), ::mnl_attr_get_payload(attribute), sizeof(MacAddress));
      }
    });
    if (is_wanted && mac) found = mac;
  });
  if (!done) return std::nullopt;
  return found;
}

// ask_neighbour makes the kernel resolve an address, as it does for whoever sends there: an empty datagram to the discard
// port (RFC 863). Frames of a raw port do not ask, and after a link was down the TCP connection does so only with its next
// retransmission, hundreds of milliseconds later. Syscalls: socket, setsockopt, sendto.
void ask_neighbour(const IpAddress& address, const LinkInfo& link) {
  constexpr std::uint16_t discard_port = 9;
  const Fd socket{::socket(family_of(address), SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
  if (!socket.is_open()) return;
  // Where it is not allowed the route leads there all the same, but for two interfaces to one network.
  (void)::setsockopt(socket.get(), SOL_SOCKET, SO_BINDTODEVICE, link.name.c_str(), static_cast<socklen_t>(link.name.size()));
  sockaddr_in6 v6{.sin6_family = AF_INET6, .sin6_port = htons(discard_port), .sin6_scope_id = static_cast<std::uint32_t>(link.ifindex)};
  sockaddr_in v4{.sin_family = AF_INET, .sin_port = htons(discard_port)};
  std::memcpy(&v6.sin6_addr, address.bytes.data(), sizeof v6.sin6_addr);
  std::memcpy(&v4.sin_addr, address.bytes.data(), sizeof v4.sin_addr);
  const auto* const to = address.is_v6 ? reinterpret_cast<const sockaddr*>(&v6) : reinterpret_cast<const sockaddr*>(&v4);
  // Lost or refused, the next look asks again.
  (void)::sendto(socket.get(), nullptr, 0, MSG_DONTWAIT, to, address.is_v6 ? socklen_t{sizeof v6} : socklen_t{sizeof v4});
}

// forget_neighbour removes the kernel's unresolved entry: the next question then leaves at once, and not up to a second later. Needs
// CAP_NET_ADMIN; without it nothing changes.
void forget_neighbour(NetlinkSocket& socket, int ifindex, const IpAddress& address) {
  alignas(NLMSG_ALIGNTO) std::array<char, 256> buffer;
  ndmsg* header = nullptr;
  nlmsghdr* message = make_request(buffer, RTM_DELNEIGH, header);
  message->nlmsg_flags |= NLM_F_ACK;
  header->ndm_family = family_of(address);
  header->ndm_ifindex = ifindex;
  put_address(message, NDA_DST, address);
  (void)socket.request(message, [](const nlmsghdr*) {});
}

Result<RouteInfo> find_route_on(NetlinkSocket& socket, const IpAddress& peer, const std::string& interface) {
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

bool is_equal(const PathUpdate& a, const PathUpdate& b) noexcept {
  return a.header == b.header && a.header_bytes == b.header_bytes && a.mtu_bytes == b.mtu_bytes &&
         a.ifindex == b.ifindex && a.is_link_up == b.is_link_up && a.has_neighbour == b.has_neighbour;
}

}  // namespace

Result<RouteInfo> find_route(const IpAddress& peer, const std::string& interface) {
  ONEHOP_TRY(socket, NetlinkSocket::open(NETLINK_ROUTE));
  return find_route_on(socket, peer, interface);
}

Result<PathFollower> PathFollower::open(const PathOptions& options) {
  const bool is_v6 = options.peer.address.is_v6;
  const std::array<unsigned, 4> groups{RTNLGRP_LINK, RTNLGRP_NEIGH,
                                       is_v6 ? unsigned{RTNLGRP_IPV6_ROUTE} : unsigned{RTNLGRP_IPV4_ROUTE},
                                       is_v6 ? unsigned{RTNLGRP_IPV6_IFADDR} : unsigned{RTNLGRP_IPV4_IFADDR}};
  ONEHOP_TRY(events, NetlinkSocket::open(NETLINK_ROUTE, groups));
  PathFollower self{std::move(events), options};
  ONEHOP_TRYV(self.look(monotonic_now()));
  return self;
}

PathUpdate PathFollower::make_update(const LinkInfo& link, const std::optional<MacAddress>& mac) const {
  wire::UdpFlow flow;
  flow.source_mac = link.mac;
  flow.target_mac = mac.value_or(MacAddress{});
  flow.is_ipv6 = options_.peer.address.is_v6;
  flow.source_ip = options_.local.address.bytes;
  flow.target_ip = options_.peer.address.bytes;
  flow.source_port = options_.local.port;
  flow.target_port = options_.peer.port;
  flow.dscp = options_.dscp;
  PathUpdate update;
  static_assert(PathUpdate::template_bytes_max == wire::l2_l4_bytes_max);
  update.header_bytes = static_cast<std::uint16_t>(wire::build_headers(flow, update.header));
  update.mtu_bytes = link.mtu_bytes;
  update.ifindex = link.ifindex;
  update.is_link_up = link.is_up;
  // Where there are no neighbours (loopback), the zero address is the right one.
  update.has_neighbour = mac.has_value() || !link.has_neighbours;
  return update;
}

Result<void> PathFollower::look(Instant now) {
  // A socket of its own: replies must not mix with notifications.
  ONEHOP_TRY(socket, NetlinkSocket::open(NETLINK_ROUTE));
  auto route = find_route_on(socket, options_.peer.address, options_.interface);
  if (!route) {
    if (update_.ifindex == 0) return route.error();
    note_fall();  // what was found before may come back: the session goes on until it is silent
    return success();
  }
  const int ifindex_before = route_.link.ifindex;
  const IpAddress hop_before = next_hop();
  route_ = std::move(route.value());
  if (route_.link.ifindex != ifindex_before || next_hop() != hop_before) mac_.reset();
  if (!route_.link.is_up) {
    note_fall();
  } else if (!was_up_) {
    was_up_ = true;
    came_up_at_ = now;
  }
  route_.link.is_up = was_up_ && !came_up_at_;
  std::optional<MacAddress> told;
  if (route_.link.has_neighbours) told = read_neighbour(socket, route_.link.ifindex, next_hop());
  is_asking_ = route_.link.has_neighbours && !told;
  if (is_asking_ && route_.link.is_up) {
    if (has_fallen_) forget_neighbour(socket, route_.link.ifindex, next_hop());
    ask_neighbour(next_hop(), route_.link);
  }
  if (told || !has_fallen_) mac_ = told;
  if (told) has_fallen_ = false;
  update_ = make_update(route_.link, mac_);
  return success();
}

void PathFollower::note_fall() noexcept {
  update_.is_link_up = route_.link.is_up = was_up_ = false;
  has_fallen_ = true;
  came_up_at_.reset();
}

bool PathFollower::is_fall(const nlmsghdr* message) const noexcept {
  if (message->nlmsg_type != RTM_NEWLINK || message->nlmsg_len < NLMSG_LENGTH(sizeof(ifinfomsg))) return false;
  const auto* info = static_cast<const ifinfomsg*>(::mnl_nlmsg_get_payload(message));
  return info->ifi_index == route_.link.ifindex && ((info->ifi_flags & IFF_UP) == 0 || (info->ifi_flags & IFF_LOWER_UP) == 0);
}

bool PathFollower::is_news(const nlmsghdr* message) const {
  if (message->nlmsg_type != RTM_NEWNEIGH && message->nlmsg_type != RTM_DELNEIGH) return true;
  if (message->nlmsg_len < NLMSG_LENGTH(sizeof(ndmsg))) return false;
  const auto* info = static_cast<const ndmsg*>(::mnl_nlmsg_get_payload(message));
  if (info->ndm_ifindex != route_.link.ifindex || info->ndm_family != family_of(next_hop())) return false;
  bool is_ours = false;
  for_each_attribute(message, sizeof(ndmsg), [&](const nlattr* attribute) {
    if (::mnl_attr_get_type(attribute) == NDA_DST) is_ours = read_address(attribute, next_hop().is_v6).bytes == next_hop().bytes;
  });
  return is_ours;
}

Nanos PathFollower::due_in(Instant now) const noexcept {
  if (is_look_due_) return Nanos{0};
  if (came_up_at_) return std::max<Nanos>(*came_up_at_ + settle_span - now, Nanos{0});
  return is_asking_ && update_.is_link_up ? std::max<Nanos>(looked_at_ + retry_after(now) - now, Nanos{0}) : Nanos::max();
}

Nanos PathFollower::retry_after(Instant now) const noexcept {
  return has_fallen_ && now - returned_at_ < return_span ? retry_period_at_return : retry_period;
}

std::optional<PathUpdate> PathFollower::poll(Instant now) {
  bool has_news = std::exchange(is_look_due_, false), has_fallen = false;
  const bool is_whole = events_.receive_pending([&](const nlmsghdr* message) {
    has_news = has_news || is_news(message);
    has_fallen = has_fallen || is_fall(message);
  });
  if (has_fallen && update_.is_link_up) {
    note_fall();
    is_look_due_ = true;  // it may be up again
    return update_;
  }
  const bool is_retry_due = is_asking_ && now - looked_at_ >= retry_after(now);
  const bool has_settled = came_up_at_ && now - *came_up_at_ >= settle_span;
  if (has_settled) {
    came_up_at_.reset();
    returned_at_ = now;
  }
  if (!has_news && is_whole && !is_retry_due && !has_settled) return std::nullopt;
  looked_at_ = now;
  const PathUpdate before = update_;
  (void)look(now);  // after the first time it fails only when netlink itself does; what was known stays
  if (is_equal(before, update_)) return std::nullopt;
  return update_;
}

}  // namespace onehop::plane
