// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// The addresses by which another machine reaches this one: what recv prints, and what it binds
// early.
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

/// local_addresses lists those of interfaces that are up, without loopback. Nl80211 reports which
/// of them belong to a group, whatever their names. Syscalls: those of getifaddrs() and of
/// link::Nl80211Socket.
[[nodiscard]] std::vector<LocalAddress> local_addresses();

/// with_scope completes a link-local address as recv prints it, "[fe80::1%IF]", or without an
/// interface: with `interface`, or if that is empty with the only interface of `all` that has such
/// an address. Any other text stays as it is.
[[nodiscard]] std::string with_scope(const std::string& text, const std::string& interface,
                                     const std::vector<LocalAddress>& all);

/// listens_on_all: no address was named, or the wildcard address.
[[nodiscard]] bool listens_on_all(const Endpoint& listen);

/// reachable picks from `all` the addresses that a sender can use when we listen there, over
/// `interface` alone if it is not empty: IPv4 if there is any, else IPv6, else link-local;
/// link-local ones of a Wi-Fi Direct group always. If `listen` names an address, it returns that
/// one.
[[nodiscard]] std::vector<LocalAddress> reachable(const std::vector<LocalAddress>& all,
                                                  const Endpoint& listen,
                                                  const std::string& interface);

/// to_text is the argument of --to on the other machine, with the port if it is not the default
/// one. The scope of a link-local address is the other machine's interface, which only its user
/// knows: the text says IF, and with_scope() replaces it there.
[[nodiscard]] std::string to_text(const IpAddress& address, std::uint16_t port);

}  // namespace onehop::transfer
