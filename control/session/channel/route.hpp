// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// The way that the kernel takes to an address, in words, and whether it is the near one. A VPN may
// take routes by policy rules that no table of routes shows, so the kernel is asked about the one
// address. Session thread only: a netlink request may wait for the kernel's rtnl lock.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "engine/base/result.hpp"
#include "engine/base/system/address.hpp"
#include "engine/base/system/interface.hpp"

namespace onehop::session {

struct RouteInfo {
  Interface link;                    ///< MTU at most 65,535
  std::optional<IpAddress> gateway;  ///< set: more than one hop
  IpAddress source;                  ///< as the kernel would choose; all zero: unknown
  std::uint32_t table = 0;           ///< the routing table that it stands in; 0: not known
};

/// parse_route reads an RTM_NEWROUTE about an address of that family; of the link it knows the
/// number alone. parse_neighbour reads an RTM_NEWNEIGH or RTM_DELNEIGH of IPv4 or IPv6. Pure.
[[nodiscard]] std::optional<RouteInfo> parse_route(std::span<const std::byte> message, bool is_v6);
struct Neighbour {
  int ifindex = 0;
  std::uint16_t state = 0;  ///< NUD_*
  IpAddress address;
  std::optional<MacAddress> mac;
};
[[nodiscard]] std::optional<Neighbour> parse_neighbour(std::span<const std::byte> message);

/// find_route asks the kernel how it would reach `peer` (through `interface` if given). Before a
/// session it serves to choose interface and io. Errors: 3 without a route, 9 where `interface` is
/// not there.
[[nodiscard]] Result<RouteInfo> find_route(const IpAddress& peer,
                                           const std::string& interface = {});
/// The same over a socket of the caller's.
[[nodiscard]] Result<RouteInfo> find_route_on(NetlinkSocket& socket, const IpAddress& peer,
                                              const std::string& interface);

/// route_text: "over wg0 (table 51820)", "over eth0 through the gateway 192.168.1.1 (table main)".
[[nodiscard]] std::string route_text(const RouteInfo& route);

/// NearLink: an interface of ours that has an address's subnet.
struct NearLink {
  std::string interface;
  std::string subnet;  ///< "10.5.0.0/24"
};
/// find_nearer gives the interface whose subnet `peer` is in, where `route` leads over another one
/// that has no subnet as narrow: into a tunnel, for instance. Syscalls: those of getifaddrs().
[[nodiscard]] std::optional<NearLink> find_nearer(const IpAddress& peer, const RouteInfo& route);
/// detour_warning says so, and what to do; nothing where the way is the near one.
[[nodiscard]] std::optional<std::string> detour_warning(const IpAddress& peer,
                                                        const RouteInfo& route);

/// bind_to_device keeps a socket to an interface, whatever the routes say; no privilege is needed
/// but where it is bound already (CAP_NET_RAW). Syscalls: setsockopt.
[[nodiscard]] Result<void> bind_to_device(int socket, const std::string& interface);

}  // namespace onehop::session
