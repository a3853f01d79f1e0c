// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// InterfaceDrops: frames that the interface we send through, and those below it, dropped during a
// session.
//
//   our port ─▶ queue discipline ─▶ macvlan, vlan ... ─▶ driver )))
//               drops of its own    tx_dropped          tx_dropped: a veth's full ring, no carrier
//
// A port learns some of them: a drop within its call counts as refused. Others show as loss on the
// path. The kernel counts per interface and not per program, so frames of others are included. A
// frame that one interface of a stack drops may be counted by the one above as well, so the counts
// of two are never added. It reads twice per session, so it costs a transfer nothing. The session's
// thread calls it; no privilege.
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

  /// follow takes the first reading of `ifindex` and of the interfaces below it in this namespace,
  /// in addition to those that are followed already. It forgets an interface that is gone, whose
  /// drops are not known. Syscalls: as read_interface.
  [[nodiscard]] Result<void> follow(int ifindex);

  /// since_followed returns what each of them has dropped since, from the top, without those that
  /// dropped nothing. It fails if one is gone, or counts from zero again: zero would claim too
  /// much. Syscalls: as read_interface.
  [[nodiscard]] Result<Drops> since_followed() const;

 private:
  struct Start {
    int ifindex = 0;
    std::uint64_t dropped_total = 0;
  };
  std::vector<Start> starts_;
};

}  // namespace onehop::link
