// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// GroupDoor keeps the group of `recv --p2p` open while it waits. A sender that came without the
// right code, or died, comes back to a group that exists: it asks to join, and GroupDoor presses
// the button for it. It also reports when the group has ended for good, which no other part
// notices.
//
// It owns the connection to wpa_supplicant and a thread; the callbacks are called on that.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "control/p2p/supplicant.hpp"
#include "engine/base/result.hpp"

namespace onehop::p2p {

class GroupDoor {
 public:
  struct Callbacks {
    std::function<void(const std::string&)> on_text;
    std::function<void()> on_gone;  ///< once: the group has not been there for gone_limit
    /// A transfer outlives its link by 30 s, so a group that ends is given more than that.
    Nanos gone_limit = 40s;
  };

  /// open starts the thread. Error: the system refuses one.
  [[nodiscard]] static Result<std::unique_ptr<GroupDoor>> open(Supplicant supplicant, Group group,
                                                               Callbacks callbacks);
  GroupDoor(const GroupDoor&) = delete;
  GroupDoor& operator=(const GroupDoor&) = delete;

 private:
  GroupDoor(Supplicant supplicant, Group group, Callbacks callbacks)
      : supplicant_{std::move(supplicant)},
        group_{std::move(group)},
        callbacks_{std::move(callbacks)} {}
  void serve(const std::stop_token& stop);
  /// let_in lets in who has asked; false, and said: the bus is lost.
  [[nodiscard]] bool let_in();

  Supplicant supplicant_;
  const Group group_;
  const Callbacks callbacks_;
  std::jthread thread_;
};

}  // namespace onehop::p2p
