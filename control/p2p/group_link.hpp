// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// The IPv6 link of a group's interface: our own link-local address, which the kernel makes when the
// link comes up, and those of the other members, which answer an echo request to all nodes.
//
//   p2p-wlan0-0   fe80::a ── ICMPv6 echo request to ff02::1 ──▶ members
//                         ◀── echo reply from fe80::b ─────────
//
// An answer is a hint and no identity: the transfer proves the peer by its code. Any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/base/result.hpp"
#include "engine/base/units.hpp"

namespace onehop::p2p {

/// wait_for_link_local waits at most `limit` until the interface has a usable link-local address,
/// and returns it ("fe80::1", no scope). It turns IPv6 on there if it is off. `stop_fd` as in
/// form_group. Errors: io_unavailable, interrupted, timed_out, which may also mean that the group
/// has ended. Syscalls: open, read, write, poll.
[[nodiscard]] Result<std::string> wait_for_link_local(const std::string& interface, Nanos limit,
                                                      int stop_fd);

/// wait_for_members asks until a member answers, at most `limit`, and a moment longer for others.
/// Addresses are link-local, without scope. Errors: privilege_missing if neither an unprivileged
/// nor a raw ICMPv6 socket is permitted, timed_out, also if the group has ended, interrupted.
/// Syscalls: socket, setsockopt, bind, sendto, recvfrom, poll.
[[nodiscard]] Result<std::vector<std::string>> wait_for_members(const std::string& interface,
                                                                Nanos limit, int stop_fd);

/// link_local_of is the address that the kernel makes of an Ethernet address if addr_gen_mode is 0;
/// wait_for_link_local sets that. Empty: the address does not have six bytes. Pure.
//= RFC 4291 appendix A
[[nodiscard]] std::string link_local_of(std::span<const std::uint8_t> mac);

/// find_link_local reads one line after another as /proc/net/if_inet6 has them. Empty: none that
/// may be used. Pure.
//= Linux net/ipv6/addrconf.c, if6_seq_show()
[[nodiscard]] std::string find_link_local(const std::string& table, const std::string& interface);

}  // namespace onehop::p2p
