// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Under which addresses another machine reaches this one: what recv tells its user, and what it
// binds early.
#pragma once

#include <string>
#include <vector>

#include "control/transfer/settings.hpp"
#include "engine/base/system/address.hpp"

namespace onehop::transfer {

struct LocalAddress {
  std::string interface;
  IpAddress address;
  bool is_p2p = false;  ///< link-local, of a Wi-Fi Direct group
};

/// local_addresses lists those of interfaces that are up, loopback left out. Which of them are of a
/// group is what the kernel says of each (nl80211), whatever their names. Syscalls: those of
/// getifaddrs() and of link::Nl80211Socket.
[[nodiscard]] std::vector<LocalAddress> local_addresses();

/// with_scope completes what recv prints of a link-local address, "[fe80::1%IF]", and one without
/// any interface: with `interface`, or where that is empty with the only one of `all` that has such
/// an address. Any other text stays as it is.
[[nodiscard]] std::string with_scope(const std::string& text, const std::string& interface,
                                     const std::vector<LocalAddress>& all);

/// listens_on_all: no address was named, or one that stands for all of them.
[[nodiscard]] bool listens_on_all(const Endpoint& listen);

/// reachable picks from `all` what a sender can name when we listen there, over `interface` alone
/// where it is not empty: IPv4 where there is any, else IPv6, else what is link-local; this in any
/// case of a Wi-Fi Direct group's interface. `listen` itself where it names an address.
[[nodiscard]] std::vector<LocalAddress> reachable(const std::vector<LocalAddress>& all,
                                                  const Endpoint& listen,
                                                  const std::string& interface);

/// to_text is what follows --to on the other machine, with the port where it is not the default
/// one. The scope of a link-local address is the other machine's interface, which only its user
/// knows: it reads IF, which with_scope() fills in there.
[[nodiscard]] std::string to_text(const IpAddress& address, std::uint16_t port);

}  // namespace onehop::transfer
