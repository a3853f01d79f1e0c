// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// The links of this machine on which it looks for receivers, and the sockets for that. Loopback,
// tunnels and links without neighbours are left out: files do not travel over them in one hop.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "control/find/message.hpp"
#include "control/find/receivers.hpp"
#include "engine/base/fd.hpp"
#include "engine/base/result.hpp"
#include "engine/base/system/address.hpp"

namespace onehop::find {

inline constexpr std::uint16_t group_port = 7411;
inline constexpr std::string_view group_v4 = "239.255.74.11", group_v6 = "ff02::1";

struct Subnet {
  IpAddress address;  ///< ours
  IpAddress mask;
  bool operator==(const Subnet&) const = default;
};

struct Link {
  unsigned ifindex = 0;
  std::string name;
  Medium medium = Medium::cable;
  bool has_carrier = false;
  std::vector<Subnet> subnets;
  bool operator==(const Link&) const = default;

  /// is_near: link-local on this link, or of a subnet of ours there.
  [[nodiscard]] bool is_near(const IpAddress& address) const;
  [[nodiscard]] bool has_address(const IpAddress& address) const;
  [[nodiscard]] bool has_family(bool is_v6) const;
};

/// list_links: those that are up and can multicast, `interface` alone where it is not empty.
/// Syscalls: those of getifaddrs(); access.
[[nodiscard]] std::vector<Link> list_links(const std::string& interface = {});

/// open_group_socket receives what is sent to the group on that link, and nothing else: it is bound
/// to the group's address, so datagrams to this machine's address, such as data frames, do not
/// reach it. Several programs may have one. It sends from the group's port. Syscalls: socket,
/// setsockopt, bind.
[[nodiscard]] Result<Fd> open_group_socket(const Link& link, bool is_v6);
/// open_asking_socket gets a port from the kernel. Syscalls: socket, setsockopt, bind.
[[nodiscard]] Result<Fd> open_asking_socket(bool is_v6);

/// Reach: how far a datagram to the group goes.
enum class Reach : std::uint8_t { link, self };
/// send_to_group sends over that link. A datagram with Reach::self comes in through the link's
/// device as if another machine had sent it, and a firewall treats it so. False: errno has the
/// reason. Syscalls: setsockopt, sendto.
[[nodiscard]] bool send_to_group(int fd, const Link& link, bool is_v6, std::uint16_t port,
                                 std::span<const std::byte> datagram, Reach reach = Reach::link);
/// send_answer sends from `source`, if it is given. Syscalls: sendmsg.
void send_answer(int fd, const Endpoint& to, const std::optional<IpAddress>& source,
                 std::span<const std::byte> datagram);

struct Datagram {
  std::span<const std::byte> bytes;
  Endpoint from;
  unsigned ifindex = 0;  ///< the interface it arrived on
};
/// receive_datagram: nullopt if none waits. Syscalls: recvmsg.
[[nodiscard]] std::optional<Datagram> receive_datagram(int fd, std::span<std::byte> into);

}  // namespace onehop::find
