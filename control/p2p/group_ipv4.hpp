// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// GroupIpv4: this machine's IPv4 address on the interface of a group that it owns, the .1 of a /24
// that none of its routes contains. The destructor removes it. One thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "engine/base/result.hpp"

namespace onehop::p2p {

/// Ipv4 is an address in host order: 192.168.49.1 is 0xc0a83101. 0: none.
using Ipv4 = std::uint32_t;

inline constexpr unsigned group_prefix_bits = 24;

/// Ipv4Route: a destination that the kernel has a route to.
struct Ipv4Route {
  Ipv4 prefix = 0;
  unsigned bits = 0;
};

/// choose_group_address returns the first address of a network that no route leads to. nullopt: all
/// candidates are taken. Pure.
[[nodiscard]] std::optional<Ipv4> choose_group_address(std::span<const Ipv4Route> routes);

class GroupIpv4 {
 public:
  /// open takes the address. Errors: privilege_missing (CAP_NET_ADMIN, CAP_NET_BIND_SERVICE),
  /// io_unavailable where a DHCP server has the interface, or all networks are in use.
  /// Syscalls: socket, setsockopt, bind, sendto, recvmsg.
  [[nodiscard]] static Result<GroupIpv4> open(const std::string& interface);
  ~GroupIpv4();
  GroupIpv4(GroupIpv4&& other) noexcept
      : interface_{std::move(other.interface_)},
        ifindex_{std::exchange(other.ifindex_, 0)},
        own_{other.own_} {}
  GroupIpv4& operator=(GroupIpv4&&) = delete;

  [[nodiscard]] const std::string& interface() const { return interface_; }
  [[nodiscard]] Ipv4 own() const { return own_; }
  /// has_server: a DHCP server has taken the interface. It needs CAP_NET_BIND_SERVICE.
  [[nodiscard]] bool has_server() const;
  /// is_over: the interface is gone or has no carrier, which is how a group ends.
  [[nodiscard]] bool is_over() const;
  /// abandon leaves the address in place: a forked process owns it now.
  void abandon() { ifindex_ = 0; }

 private:
  GroupIpv4(std::string interface, int ifindex, Ipv4 own)
      : interface_{std::move(interface)}, ifindex_{ifindex}, own_{own} {}

  std::string interface_;
  int ifindex_;  // 0: nothing to undo
  Ipv4 own_;
};

}  // namespace onehop::p2p
