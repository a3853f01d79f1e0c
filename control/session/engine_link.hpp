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
  /// When to look at the ring again while commands wait. Longer: a ring of 1024 digests per look is
  /// all that a comparison gets. Shorter: wake-ups while the engine sleeps.
  static constexpr Nanos retry_pause = 2ms;

  explicit EngineLink(const EngineRings& rings) : rings_{rings} {}

  void push(const Command& command) {
    waiting_.push_back(command);
    flush();
  }
  /// flush moves waiting commands into the ring, as many as fit.
  void flush() {
    while (!waiting_.empty() && rings_.commands->push(waiting_.front())) waiting_.pop_front();
  }
  [[nodiscard]] bool has_waiting() const noexcept { return !waiting_.empty(); }
  [[nodiscard]] bool has_room() const noexcept { return waiting_.size() < waiting_max; }
  [[nodiscard]] bool pop(Event& event) noexcept { return rings_.events->pop(event); }

 private:
  EngineRings rings_;
  std::deque<Command> waiting_;
};

}  // namespace onehop::session
