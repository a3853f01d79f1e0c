// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/session/channel/path_follower.hpp"

#include <libmnl/libmnl.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include <algorithm>
#include <utility>

#include "engine/base/fd.hpp"
#include "engine/base/system/netlink_message.hpp"
#include "engine/base/time.hpp"
#include "engine/wire/l2_l4.hpp"

namespace onehop::session {

namespace {

// While the peer's MAC is unknown there may be no notification to wait for: the entry can exist but
// be incomplete.
constexpr Nanos retry_period = 1s;
// Right after a link's return the first question may have been lost, where the queue opened late.
// Shorter: more questions than answers take on a slow link. Longer: a transfer stands still for it.
constexpr Nanos retry_period_at_return = 50ms, return_span = 1s;
// A link that came up takes no frame yet: below a macvlan or a VLAN the device's queue opens some
// milliseconds later. The first frame asks for the neighbour, and where that is lost the kernel
// asks again after a second. Shorter: it is lost (9 ms were seen over a veth). Longer: a transfer
// stands still for it.
constexpr Nanos settle_span = 30ms;

bool is_usable(std::uint16_t state) noexcept {
  return (state & (NUD_REACHABLE | NUD_STALE | NUD_DELAY | NUD_PROBE | NUD_PERMANENT)) != 0;
}

// is_of: the entry is about `address` on this interface.
bool is_of(const Neighbour& entry, int ifindex, const IpAddress& address) noexcept {
  return entry.ifindex == ifindex && entry.address.is_v6 == address.is_v6 &&
         entry.address.bytes == address.bytes;
}

// The neighbour's MAC, if the kernel has a usable one. A dump of the interface, because
// RTM_GETNEIGH for one address exists only since Linux 5.0 and there are few neighbours.
std::optional<MacAddress> read_neighbour(NetlinkSocket& socket, int ifindex,
                                         const IpAddress& address) {
  NetlinkRequest<ndmsg> message{RTM_GETNEIGH, NLM_F_DUMP, {.ndm_family = address.family()}};
  ::mnl_attr_put_u32(message, NDA_IFINDEX, static_cast<std::uint32_t>(ifindex));
  std::optional<MacAddress> found;
  auto done = socket.request(message, [&](const nlmsghdr* reply) {
    if (reply->nlmsg_type != RTM_NEWNEIGH) return;
    const auto entry = parse_neighbour(bytes_of(reply));
    if (entry && is_of(*entry, ifindex, address) && is_usable(entry->state) && entry->mac)
      found = entry->mac;
  });
  if (!done) return std::nullopt;
  return found;
}

// ask_neighbour makes the kernel resolve an address by an ordinary datagram: an empty one to the
// discard port (RFC 863). Frames of a raw port do not ask, and after a link was down the TCP
// connection does so only with its next retransmission, hundreds of milliseconds later. Syscalls:
// socket, setsockopt, sendto.
void ask_neighbour(const IpAddress& address, const Interface& link) {
  constexpr std::uint16_t discard_port = 9;
  const Fd socket{::socket(address.family(), SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
  if (!socket.is_open()) return;
  // Where it is not allowed the route leads there all the same, but for two interfaces to one
  // network.
  (void)::setsockopt(socket.get(), SOL_SOCKET, SO_BINDTODEVICE, link.name.c_str(),
                     static_cast<socklen_t>(link.name.size()));
  Endpoint to{address, discard_port};
  to.address.scope_id = static_cast<std::uint32_t>(link.ifindex);
  const SocketAddress at = to.to_sockaddr();
  // Lost or refused, the next read asks again.
  (void)::sendto(socket.get(), nullptr, 0, MSG_DONTWAIT, at.get(), at.size_bytes);
}

// forget_neighbour removes the kernel's unresolved entry: the next question then leaves at once,
// and not up to a second later. Needs CAP_NET_ADMIN; without it nothing changes.
void forget_neighbour(NetlinkSocket& socket, int ifindex, const IpAddress& address) {
  NetlinkRequest<ndmsg> message{
      RTM_DELNEIGH, NLM_F_ACK, {.ndm_family = address.family(), .ndm_ifindex = ifindex}};
  put_address(message, NDA_DST, address);
  (void)socket.request(message, [](const nlmsghdr*) {});
}

}  // namespace

Result<PathFollower> PathFollower::open(const PathOptions& options) {
  const bool is_v6 = options.peer.address.is_v6;
  const std::array<unsigned, 4> groups{
      RTNLGRP_LINK, RTNLGRP_NEIGH,
      is_v6 ? unsigned{RTNLGRP_IPV6_ROUTE} : unsigned{RTNLGRP_IPV4_ROUTE},
      is_v6 ? unsigned{RTNLGRP_IPV6_IFADDR} : unsigned{RTNLGRP_IPV4_IFADDR}};
  ONEHOP_TRY(events, NetlinkSocket::open(NETLINK_ROUTE, groups));
  PathFollower self{std::move(events), options};
  ONEHOP_TRYV(self.read_path(monotonic_now()));
  return self;
}

PathUpdate PathFollower::make_update(const Interface& link,
                                     const std::optional<MacAddress>& mac) const {
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
  update.mtu_bytes = static_cast<std::uint16_t>(link.mtu_bytes);
  update.ifindex = link.ifindex;
  update.is_link_up = link.has_carrier;
  // Where there are no neighbours (loopback), the zero address is the right one.
  update.has_neighbour = mac.has_value() || !link.has_neighbours;
  return update;
}

Result<void> PathFollower::read_path(Instant now) {
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
  if (!route_.link.has_carrier) {
    note_fall();
  } else if (!was_up_) {
    was_up_ = true;
    came_up_at_ = now;
  }
  route_.link.has_carrier = was_up_ && !came_up_at_;
  std::optional<MacAddress> known_mac;
  if (route_.link.has_neighbours)
    known_mac = read_neighbour(socket, route_.link.ifindex, next_hop());
  is_asking_ = route_.link.has_neighbours && !known_mac;
  if (is_asking_ && route_.link.has_carrier) {
    if (has_fallen_) forget_neighbour(socket, route_.link.ifindex, next_hop());
    ask_neighbour(next_hop(), route_.link);
  }
  if (known_mac || !has_fallen_) mac_ = known_mac;
  if (known_mac) has_fallen_ = false;
  update_ = make_update(route_.link, mac_);
  return success();
}

void PathFollower::note_fall() noexcept {
  update_.is_link_up = route_.link.has_carrier = was_up_ = false;
  has_fallen_ = true;
  came_up_at_.reset();
}

bool PathFollower::is_fall(const nlmsghdr* message) const noexcept {
  const auto link = parse_interface(bytes_of(message));
  return link && link->ifindex == route_.link.ifindex && !link->has_carrier;
}

bool PathFollower::is_relevant(const nlmsghdr* message) const {
  if (message->nlmsg_type != RTM_NEWNEIGH && message->nlmsg_type != RTM_DELNEIGH) return true;
  const auto entry = parse_neighbour(bytes_of(message));
  return entry && is_of(*entry, route_.link.ifindex, next_hop());
}

Nanos PathFollower::due_in(Instant now) const noexcept {
  if (is_read_due_) return Nanos{0};
  if (came_up_at_) return std::max<Nanos>(*came_up_at_ + settle_span - now, Nanos{0});
  return is_asking_ && update_.is_link_up
             ? std::max<Nanos>(read_at_ + retry_after(now) - now, Nanos{0})
             : Nanos::max();
}

Nanos PathFollower::retry_after(Instant now) const noexcept {
  return has_fallen_ && now - returned_at_ < return_span ? retry_period_at_return : retry_period;
}

std::optional<PathUpdate> PathFollower::poll(Instant now) {
  bool has_change = std::exchange(is_read_due_, false), has_fallen = false;
  const bool is_whole = events_.receive_pending([&](const nlmsghdr* message) {
    has_change = has_change || is_relevant(message);
    has_fallen = has_fallen || is_fall(message);
  });
  if (has_fallen && update_.is_link_up) {
    note_fall();
    is_read_due_ = true;  // it may be up again
    return update_;
  }
  const bool is_retry_due = is_asking_ && now - read_at_ >= retry_after(now);
  const bool has_settled = came_up_at_ && now - *came_up_at_ >= settle_span;
  if (has_settled) {
    came_up_at_.reset();
    returned_at_ = now;
  }
  if (!has_change && is_whole && !is_retry_due && !has_settled) return std::nullopt;
  read_at_ = now;
  const PathUpdate before = update_;
  // After the first time it fails only when netlink itself does. What was known stays.
  (void)read_path(now);
  if (before == update_) return std::nullopt;
  return update_;
}

}  // namespace onehop::session
