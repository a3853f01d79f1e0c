// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// GroupIpv4: IPv4 on the interface of a group that this machine owns. Stations that are no onehop
// ask for an address by DHCP, and leave where none comes.
//
//   phone ── DISCOVER, REQUEST ─▶ port 67, bound to p2p-wlan0-0 ─▶ DhcpServer
//         ◀─ OFFER, ACK ─────────
//
// This machine takes the .1 of a /24 that is in none of its routes. Both the address and the socket
// are gone with the object. One thread.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "control/p2p/dhcp_message.hpp"
#include "engine/base/fd.hpp"
#include "engine/base/result.hpp"

namespace onehop::p2p {

/// Ipv4Route: a destination that the kernel has a route to.
struct Ipv4Route {
  Ipv4 prefix = 0;
  unsigned bits = 0;
};

/// choose_group_address returns the first address of a network that no route leads to. Nothing:
/// all candidates are taken. Pure.
[[nodiscard]] std::optional<Ipv4> choose_group_address(std::span<const Ipv4Route> routes);

class GroupIpv4 {
 public:
  /// open takes the address and the port. Errors: privilege_missing (CAP_NET_ADMIN,
  /// CAP_NET_BIND_SERVICE), io_unavailable where another program has the port, or all networks are
  /// in use. Syscalls: socket, setsockopt, bind, sendto, recvmsg.
  [[nodiscard]] static Result<GroupIpv4> open(const std::string& interface);
  ~GroupIpv4();
  GroupIpv4(GroupIpv4&&) noexcept = default;
  GroupIpv4& operator=(GroupIpv4&&) = delete;

  [[nodiscard]] int fd() const { return socket_.get(); }

  /// serve answers until `stop_fd` is readable, or the interface is gone or has no carrier, which
  /// is how a group ends. Syscalls: poll, recvfrom, sendto.
  void serve(int stop_fd);
  /// abandon leaves the address where it is: a forked process has it now.
  void abandon() { socket_.close(); }

 private:
  GroupIpv4(int ifindex, Ipv4 own, Fd socket)
      : ifindex_{ifindex}, own_{own}, socket_{std::move(socket)} {}

  int ifindex_;
  Ipv4 own_;
  Fd socket_;  // closed: nothing is to be undone
};

}  // namespace onehop::p2p
