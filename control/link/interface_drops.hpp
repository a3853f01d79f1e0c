// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// InterfaceDrops: frames that the interface we send through, and those below it, threw away during
// a session.
//
//   our port ─▶ queue discipline ─▶ macvlan, vlan ... ─▶ driver )))
//               drops of its own    tx_dropped          tx_dropped: a veth's full ring, no carrier
//
// A port is told of some of it: what dropped a frame within its call counts as refused. Elsewhere
// it shows as loss on the way. The kernel counts per interface and not per program: what others
// sent is in it. A frame that one interface of a stack drops may be counted by the one above as
// well, so the counts of two are never added. Two readings per session, so it costs a transfer
// nothing. The session's thread calls it; no privilege.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/result.hpp"

namespace onehop::link {

class InterfaceDrops {
 public:
  using Drops = std::vector<std::pair<std::string, std::uint64_t>>;  ///< interfaces, and frames

  /// follow takes the first reading of `ifindex` and of what lies below it in this namespace,
  /// beside those that are followed already. What an interface that is gone has dropped is not
  /// known, and it is forgotten. Syscalls: as read_interface.
  [[nodiscard]] Result<void> follow(int ifindex);

  /// since_followed is what each of them has dropped since, from the top; those that dropped
  /// nothing are left out. It fails where one is gone, or counts from nothing again: zero would say
  /// too much. Syscalls: as read_interface.
  [[nodiscard]] Result<Drops> since_followed() const;

 private:
  struct Start {
    int ifindex = 0;
    std::uint64_t dropped_total = 0;
  };
  std::vector<Start> starts_;
};

}  // namespace onehop::link
