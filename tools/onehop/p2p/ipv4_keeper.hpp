// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// IPv4 in a group that this machine owns, for as long as the group lasts, so that `p2p host` may
// end and `recv --p2p` may give up its privilege. Stations that are no onehop ask for an address by
// DHCP, and leave where none comes. dnsmasq answers them, as in NetworkManager's own groups.
//
//   onehop p2p host ── takes the address ──▶ onehop-dhcp, until the interface has gone
//                   ◀── dnsmasq has the port, or why not ──   └─▶ dnsmasq, which ends with it
//
// Neither is root: onehop-dhcp keeps CAP_NET_ADMIN, to take the address back where the interface
// stays. dnsmasq, which reads what strangers send, has this one, for its answers to stations
// without an address, and CAP_NET_BIND_SERVICE. SIGTERM ends both.
#pragma once

#include <string>

#include "engine/base/result.hpp"

namespace onehop::p2p {

/// keep_ipv4 starts them. Call it before there are threads.
/// Errors: those of GroupIpv4::open; io_unavailable where dnsmasq is not there or does not start.
/// Syscalls: fork, execve, waitpid.
[[nodiscard]] Result<void> keep_ipv4(const std::string& interface);

}  // namespace onehop::p2p
