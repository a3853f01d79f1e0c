// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// PathFollower finds route, neighbour, MTU and link of the path to the peer by rtnetlink, and
// follows their changes by its notifications.
//
//   RTM_GETROUTE(peer) ─▶ interface, gateway, source ─┐
//   RTM_GETLINK        ─▶ its address, MTU, state     ─┼─▶ PathUpdate (header template)
//   RTM_GETNEIGH       ─▶ the peer's MAC              ─┘    └─▶ Command{path_update}
//
// Ports use no netlink, so a raw port depends on these updates. Session thread only: a netlink
// request may wait for the kernel's rtnl lock. It never changes a route, and removes only neighbour
// entries that the kernel could not resolve. The TCP connection to the peer keeps the neighbour
// entry alive; if there is none on a link that is up, an empty datagram makes the kernel look for
// it.
//
// When a link loses its carrier the kernel forgets its neighbours. The next packet to the peer, of
// any process, starts a neighbour query that gets no answer. From then on the kernel repeats it
// once a second (retrans_time_ms), so that the next one may come up to a second after the link's
// return, whatever is sent meanwhile. So the follower reports a fall of the link before it reads
// anything else, a raw port goes on with the MAC that it had, and with CAP_NET_ADMIN the unresolved
// entry is removed at the return, so that the query leaves then.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "control/session/channel/route.hpp"
#include "engine/base/message.hpp"
#include "engine/base/result.hpp"
#include "engine/base/system/address.hpp"
#include "engine/base/system/interface.hpp"

namespace onehop::session {

struct PathOptions {
  Endpoint local;  ///< address of the TLS connection, our data port
  Endpoint peer;   ///< address of the TLS peer, its data port
  std::string interface;
  std::uint8_t dscp = 0;
};

class PathFollower {
 public:
  [[nodiscard]] static Result<PathFollower> open(const PathOptions& options);

  [[nodiscard]] const RouteInfo& route() const noexcept { return route_; }
  [[nodiscard]] const PathUpdate& update() const noexcept { return update_; }
  /// poll reads pending notifications. If one concerns the path (and every second while the kernel
  /// does not know the neighbour) it reads the path again, and returns the new PathUpdate if it
  /// differs; the caller polls again until it returns none. It returns at once that the link is
  /// down, and the next poll reads the rest. Without notifications it costs one recv().
  [[nodiscard]] std::optional<PathUpdate> poll(Instant now);
  /// due_in is how long poll() may wait without notifications: a link that came up counts as up
  /// only when its queue is open.
  [[nodiscard]] Nanos due_in(Instant now) const noexcept;
  /// fd becomes readable when poll() has notifications to read. The caller only waits for it.
  [[nodiscard]] int fd() const noexcept { return events_.fd(); }

 private:
  PathFollower(NetlinkSocket events, PathOptions options)
      : events_{std::move(events)}, options_{std::move(options)} {}
  /// read_path reads the whole path again. Without a route the last one stays, with is_link_up
  /// false.
  [[nodiscard]] Result<void> read_path(Instant now);
  /// is_relevant: true for all notifications but those about other neighbours, which are many in a
  /// busy network.
  [[nodiscard]] bool is_relevant(const nlmsghdr* message) const;
  [[nodiscard]] const IpAddress& next_hop() const noexcept {
    return route_.gateway ? *route_.gateway : options_.peer.address;
  }
  [[nodiscard]] PathUpdate make_update(const Interface& link,
                                       const std::optional<MacAddress>& mac) const;
  /// is_fall: our link has lost its carrier, or was taken down.
  [[nodiscard]] bool is_fall(const nlmsghdr* message) const noexcept;
  void note_fall() noexcept;
  /// retry_after is how long to wait before an unknown neighbour is queried again.
  [[nodiscard]] Nanos retry_after(Instant now) const noexcept;

  NetlinkSocket events_;
  PathOptions options_;
  RouteInfo route_;
  PathUpdate update_;
  Instant read_at_{};
  // The link came up less than settle_span ago, and counts as down.
  std::optional<Instant> came_up_at_;
  Instant returned_at_{};  // when it took frames again after a fall
  bool was_up_ = true;     // at first: a link that is up when found takes frames
  // Of the next hop. It outlives a fall of the link until the kernel reports one again.
  std::optional<MacAddress> mac_;
  bool has_fallen_ = false;  // since the kernel last reported it
  bool is_asking_ = false;   // the kernel knows no usable neighbour
  bool is_read_due_ = false;
};

}  // namespace onehop::session
