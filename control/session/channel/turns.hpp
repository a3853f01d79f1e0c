// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Turns: which sessions a receiver runs, and which waiting sender is next. Session thread. Internal
// to control/session.
#pragma once

#include <algorithm>
#include <deque>
#include <memory>
#include <vector>

#include "control/session/recv_session.hpp"

namespace onehop::session {

struct Turns {
  struct Waiting {
    std::shared_ptr<Channel> channel;
    SenderToken sender;
  };
  std::uint32_t sessions_max;
  std::vector<std::shared_ptr<RecvSession>> sessions{};
  std::deque<Waiting> waiting{};  ///< authenticated, until there is room

  [[nodiscard]] std::shared_ptr<RecvSession> session_of(const SenderToken& sender) const {
    const auto at = std::ranges::find_if(sessions, [&](auto& one) { return one->is_of(sender); });
    return at == sessions.end() ? nullptr : *at;
  }
  [[nodiscard]] bool is_running(const std::shared_ptr<RecvSession>& session) const {
    return std::ranges::find(sessions, session) != sessions.end();
  }
  [[nodiscard]] bool has_room_for(const SenderToken& sender) const {
    return sessions.size() < sessions_max && session_of(sender) == nullptr;
  }
  /// next is the first waiting sender that can be served now; null: none can.
  [[nodiscard]] std::shared_ptr<Channel> next() const {
    const auto at =
        std::ranges::find_if(waiting, [&](auto& one) { return has_room_for(one.sender); });
    return at == waiting.end() ? nullptr : at->channel;
  }
  void wake() const {
    for (const Waiting& one : waiting) one.channel->wake();
  }
};

/// watch_progress ends a session that hardly moves while others wait.
[[nodiscard]] Task<void> watch_progress(std::shared_ptr<RecvSession> session, const Turns& turns,
                                        const RecvOptions& options);

}  // namespace onehop::session
