// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// GroupSession: the group that `send --p2p` and `recv --p2p` form, use and leave.
//
//   form(): find, negotiate, addresses ─▶ transfer over interface() ─▶ ~GroupSession: leave
//
// The receiver owns the group, and makes it before anybody asks: whoever has no Wi-Fi Direct joins
// it by its passphrase. A sender looks for it. Who is on the link is no proof of anything: both
// ends prove the code to each other before a name is told. Main thread, before there are others.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "control/p2p/types.hpp"
#include "tools/onehop/p2p/group_door.hpp"
#include "tools/onehop/p2p/group_keeper.hpp"
#include "tools/onehop/text/report.hpp"

namespace onehop::p2p {

class GroupSession {
 public:
  struct Options {
    bool is_sending = false;
    std::string interface;  ///< of the radio; empty: the first
    std::string peer;       ///< sending: name or address; empty: the only one
  };
  /// form blocks until there is a group with addresses; sending, until the other end is seen there.
  /// A group that ends before that is formed again. Ctrl-C ends it. Errors: those of
  /// Supplicant::open, form_group, wait_for_link_local and receiver_of.
  [[nodiscard]] static Result<GroupSession> form(const Options& options,
                                                 const tool::Reporter& reporter);

  /// keep_open lets senders in that ask to join, and calls `on_gone` on a thread of its own when
  /// the group has ended, for as long as what it returns lives. Call it once.
  [[nodiscard]] Result<std::shared_ptr<GroupDoor>> keep_open(const tool::Reporter& reporter,
                                                             std::function<void()> on_gone);

  [[nodiscard]] const std::string& interface() const { return group_.interface_name; }
  [[nodiscard]] const Group& group() const { return group_; }
  /// Our address there, and sending the receiver's: "[fe80::1%p2p-wlan0-0]".
  [[nodiscard]] std::string own_address() const { return scoped(own_); }
  [[nodiscard]] std::string peer_address() const { return scoped(peer_); }

 private:
  GroupSession(GroupKeeper keeper, Supplicant supplicant, Group group)
      : keeper_{std::move(keeper)}, supplicant_{std::move(supplicant)}, group_{std::move(group)} {}
  [[nodiscard]] std::string scoped(const std::string& address) const {
    return "[" + address + "%" + group_.interface_name + "]";
  }

  GroupKeeper keeper_;
  std::optional<Supplicant> supplicant_;  // until the door has it
  Group group_;
  std::string own_, peer_;
};

/// receiver_of picks the receiver's address: `owner`, the group's owner as a connected client knows
/// it (empty: unknown), also if the echo is not permitted or not answered; a firewall may drop it.
/// `members`: the result of wait_for_members. Error: its own; usage, if several answer. Pure.
[[nodiscard]] Result<std::string> receiver_of(const Result<std::vector<std::string>>& members,
                                              const std::string& owner);

}  // namespace onehop::p2p
