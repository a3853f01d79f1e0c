// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Route, neighbour, MTU and link of the path to the peer: found by rtnetlink, followed by its notifications.
//
//   RTM_GETROUTE(peer) ─▶ interface, gateway, source ─▶ RTM_GETLINK: address, MTU, state ─▶ RTM_GETNEIGH: peer's MAC
//                                          └───────────────▶ PathUpdate (header template) ─▶ Command{path_update}
//
// Ports speak no netlink, so a raw port lives on what comes from here. Plane thread only: a netlink request may wait
// for the kernel's rtnl lock. It never changes a route, and of neighbours only what the kernel could not
// resolve. The TCP connection to the peer keeps the neighbour entry alive; where there is none on a link that is up, an empty datagram makes the kernel look for it.
//
// When a link loses its carrier the kernel forgets its neighbours. The first packet after that, from anybody, asks for the peer's MAC
// in vain, and from then on the kernel asks once a second (retrans_time_ms), up to a second after the link's return, whoever sends
// meanwhile. So a fall is told before anything else is looked at, a raw port goes on with the MAC that it had, and where it is allowed
// (CAP_NET_ADMIN) the unresolved entry is removed at the return, so that the question leaves then.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "control/plane/address.hpp"
#include "engine/base/message.hpp"
#include "engine/base/netlink.hpp"
#include "engine/base/result.hpp"

namespace onehop::plane {

struct LinkInfo {
  int ifindex = 0;
  std::string name;
  std::string kind;                       ///< "veth", "macvlan"; empty for hardware
  std::array<std::byte, 6> mac{};
  std::uint16_t mtu_bytes = 0;
  bool is_up = false;                     ///< IFF_UP and a carrier
  bool has_neighbours = true;             ///< false: loopback, tunnels: no address to resolve
};

struct RouteInfo {
  LinkInfo link;
  std::optional<IpAddress> gateway;       ///< set: more than one hop
  IpAddress source;                       ///< as the kernel would choose; all zero: not told
  [[nodiscard]] bool has_gateway() const noexcept { return gateway.has_value(); }
};

/// find_route asks the kernel how it would reach `peer` (through `interface` if given). Before a session it serves to
/// choose interface and io. Errors: 3 without a route, 9 where `interface` is not there.
[[nodiscard]] Result<RouteInfo> find_route(const IpAddress& peer, const std::string& interface = {});

struct PathOptions {
  Endpoint local;                         ///< address of the TLS connection, our data port
  Endpoint peer;                          ///< address of the TLS peer, its data port
  std::string interface;
  std::uint8_t dscp = 0;
};

class PathFollower {
 public:
  [[nodiscard]] static Result<PathFollower> open(const PathOptions& options);

  [[nodiscard]] const RouteInfo& route() const noexcept { return route_; }
  [[nodiscard]] const PathUpdate& update() const noexcept { return update_; }
  /// poll reads pending notifications, looks again if one concerns the path (and every second while the kernel does not know the
  /// neighbour), and returns the new PathUpdate if it differs; the caller polls again until there is none. That the link is down is
  /// returned at once, and the next poll looks at the rest. Without news it costs one recv().
  [[nodiscard]] std::optional<PathUpdate> poll(Instant now);
  /// due_in is how long poll() may wait without notifications: a link that came up is taken when its queue is open.
  [[nodiscard]] Nanos due_in(Instant now) const noexcept;
  /// fd becomes readable when there are notifications for poll(). To wait for, not to read.
  [[nodiscard]] int fd() const noexcept { return events_.fd(); }

 private:
  PathFollower(NetlinkSocket events, PathOptions options) : events_{std::move(events)}, options_{std::move(options)} {}
  /// look finds everything afresh. When there is no route the last one stays, with is_link_up false.
  [[nodiscard]] Result<void> look(Instant now);
  /// is_news: every notification but those of other neighbours, of which a busy network has many.
  [[nodiscard]] bool is_news(const nlmsghdr* message) const;
  [[nodiscard]] const IpAddress& next_hop() const noexcept { return route_.gateway ? *route_.gateway : options_.peer.address; }
  [[nodiscard]] PathUpdate make_update(const LinkInfo& link, const std::optional<std::array<std::byte, 6>>& mac) const;
  /// is_fall: our link has lost its carrier, or was taken down.
  [[nodiscard]] bool is_fall(const nlmsghdr* message) const noexcept;
  void note_fall() noexcept;
  /// retry_after is how long an unknown neighbour is waited for before it is asked for again.
  [[nodiscard]] Nanos retry_after(Instant now) const noexcept;

  NetlinkSocket events_;
  PathOptions options_;
  RouteInfo route_;
  PathUpdate update_;
  Instant looked_at_{};
  std::optional<Instant> came_up_at_;  // the link came up less than settle_span ago, and counts as down
  Instant returned_at_{};              // took frames again after a fall
  bool was_up_ = true;                 // before the first look: a link that is found up takes frames
  std::optional<std::array<std::byte, 6>> mac_;  // of the next hop. Outlives a fall of the link until the kernel names one again
  bool has_fallen_ = false;            // since the kernel last named it
  bool is_asking_ = false;             // the kernel knows no usable neighbour
  bool is_look_due_ = false;
};

}  // namespace onehop::plane
