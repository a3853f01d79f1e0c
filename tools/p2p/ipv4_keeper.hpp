// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// A process of its own that gives IPv4 addresses in a group for as long as the group lasts, so that
// `p2p host` may end and `recv --p2p` may give up its privilege.
//
//   onehop p2p host ── address and socket are there ─▶ onehop-dhcp, until the interface has gone
//
// It keeps CAP_NET_ADMIN, to take the address back where the interface stays, and no other
// privilege: what it reads comes from strangers. SIGTERM ends it, too.
#pragma once

#include <string>

#include "engine/base/result.hpp"

namespace onehop::p2p {

/// keep_ipv4 starts it. Call it before there are threads.
/// Errors: those of GroupIpv4::open. Syscalls: fork, waitpid.
[[nodiscard]] Result<void> keep_ipv4(const std::string& interface);

}  // namespace onehop::p2p
