// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// The route that the kernel uses to an address, as text, and whether a nearer interface exists. A
// VPN may take over routes by policy rules that no routing table shows, so the code asks the kernel
// about the one address. Session thread only: a netlink request may wait for the kernel's rtnl
// lock.
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
  std::uint32_t table = 0;           ///< its routing table; 0: unknown
};

/// parse_route reads an RTM_NEWROUTE about an address of that family; of the link it fills in only
/// the number. parse_neighbour reads an RTM_NEWNEIGH or RTM_DELNEIGH of IPv4 or IPv6. Pure.
[[nodiscard]] std::optional<RouteInfo> parse_route(std::span<const std::byte> message, bool is_v6);
struct Neighbour {
  int ifindex = 0;
  std::uint16_t state = 0;  ///< NUD_*
  IpAddress address;
  std::optional<MacAddress> mac;
};
[[nodiscard]] std::optional<Neighbour> parse_neighbour(std::span<const std::byte> message);

/// find_route asks the kernel how it would reach `peer` (through `interface` if given). Before a
/// session it helps to choose interface and io. Errors: 3 without a route, 9 if `interface` does
/// not exist.
[[nodiscard]] Result<RouteInfo> find_route(const IpAddress& peer,
                                           const std::string& interface = {});
/// The same over the caller's socket.
[[nodiscard]] Result<RouteInfo> find_route_on(NetlinkSocket& socket, const IpAddress& peer,
                                              const std::string& interface);

/// route_text: "over wg0 (table 51820)", "over eth0 through the gateway 192.168.1.1 (table main)".
[[nodiscard]] std::string route_text(const RouteInfo& route);

/// NearLink: a local interface whose subnet contains an address.
struct NearLink {
  std::string interface;
  std::string subnet;  ///< "10.5.0.0/24"
};
/// find_nearer returns the interface whose subnet contains `peer`, if `route` leads over another
/// one without a subnet as narrow: into a tunnel, for instance. Syscalls: those of getifaddrs().
[[nodiscard]] std::optional<NearLink> find_nearer(const IpAddress& peer, const RouteInfo& route);
/// detour_warning says so, and what to do; empty if the route is the near one.
[[nodiscard]] std::optional<std::string> detour_warning(const IpAddress& peer,
                                                        const RouteInfo& route);

/// bind_to_device binds a socket to an interface, whatever the routes say. It needs CAP_NET_RAW
/// only if the socket is bound already. Syscalls: setsockopt.
[[nodiscard]] Result<void> bind_to_device(int socket, const std::string& interface);

}  // namespace onehop::session
