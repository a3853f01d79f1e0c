// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// DhcpServer: IPv4 addresses for the plain stations of a group, as a state machine without I/O: the
// time and a message go in, the answer comes out. It is the one server of its link.
//
//   a lease:  free ── DISCOVER ─▶ offered ── REQUEST ─▶ bound ── its time, RELEASE ─▶ free
//                 ◀── its time ──                          ◀── REQUEST: longer
//                                                    DECLINE ─▶ set aside for a while ─▶ free
//
// There is one place for each address of the pool, and no more is kept of clients: who makes up
// hardware addresses takes the pool and nothing else. A lease that has run out, or was only
// offered, goes to the next client; one that is bound stays. One thread.
//
//= RFC 2131 §4.3
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>

#include "control/p2p/dhcp_message.hpp"
#include "engine/base/units.hpp"

namespace onehop::p2p {

inline constexpr unsigned group_prefix_bits = 24;
inline constexpr Ipv4 group_mask = ~Ipv4{0} << (32 - group_prefix_bits);

class DhcpServer {
 public:
  /// Addresses from own + 9 (.10) on; those below are left for who sets one by hand. Drivers take 8
  /// to 32 stations, and phones come with a new hardware address each time. Fewer: such a phone
  /// finds the pool full of its former selves.
  static constexpr Ipv4 pool_offset = 9;
  static constexpr std::size_t pool_addresses = 32;
  /// Longer: devices that have left keep the pool full. Shorter: sleeping ones wake up to renew, at
  /// half of it.
  static constexpr Nanos lease_span = 600s;
  /// From an offer to the request. Clients send that at once, and again for about ten seconds.
  static constexpr Nanos offer_span = 15s;
  /// An address that a client has found in use.
  static constexpr Nanos declined_span = 300s;

  struct Answer {
    DhcpBytes bytes;
    std::size_t size = 0;
    Ipv4 to = 0;  ///< all ones: to all on the link

    [[nodiscard]] std::span<const std::byte> message() const {
      return std::span{bytes}.first(size);
    }
  };

  /// `own` is this machine's address, the first of its /24.
  explicit DhcpServer(Ipv4 own) : own_{own} {}

  /// answer takes what has come from port 68, of any content. Nothing: there is no answer to it.
  [[nodiscard]] std::optional<Answer> answer(Instant now, std::span<const std::byte> message);

 private:
  struct Lease {
    std::string client;  ///< who has it, or had it last; empty: nobody
    Instant until{};
    bool is_bound = false;
  };
  [[nodiscard]] Lease* lease_of(const std::string& client);
  [[nodiscard]] Lease* lease_at(Ipv4 address);
  [[nodiscard]] Ipv4 address_of(const Lease& lease) const;
  [[nodiscard]] Lease* choose(Instant now, const DhcpRequest& request);

  [[nodiscard]] std::optional<Answer> offer(Instant now, const DhcpRequest& request);
  [[nodiscard]] std::optional<Answer> grant(Instant now, const DhcpRequest& request);
  void release(Instant now, const DhcpRequest& request);
  [[nodiscard]] Answer reply(const DhcpRequest& request, DhcpType type, Ipv4 address) const;

  const Ipv4 own_;
  std::array<Lease, pool_addresses> leases_;
};

}  // namespace onehop::p2p
