// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// EngineLink: the session's end of the two rings to the engine core. Commands wait here while the
// ring is full; events are polled, nothing wakes the session. Session thread only.
#pragma once

#include <cstddef>
#include <deque>

#include "control/session/session.hpp"

namespace onehop::session {

class EngineLink {
 public:
  /// Commands that may wait before the session must stop reading its control connection.
  static constexpr std::size_t waiting_max = 4096;

  explicit EngineLink(const EngineRings& rings) : rings_{rings} {}

  void push(const Command& command) {
    waiting_.push_back(command);
    flush();
  }
  /// flush moves waiting commands into the ring, as many as fit.
  void flush() {
    while (!waiting_.empty() && rings_.commands->push(waiting_.front())) waiting_.pop_front();
  }
  [[nodiscard]] bool has_room() const noexcept { return waiting_.size() < waiting_max; }
  [[nodiscard]] bool pop(Event& event) noexcept { return rings_.events->pop(event); }

 private:
  EngineRings rings_;
  std::deque<Command> waiting_;
};

}  // namespace onehop::session
