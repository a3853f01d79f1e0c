// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// EngineLink: the plane's end of the two rings to the engine core. Commands wait here while the ring is full; events
// are polled, nothing wakes the plane. Plane thread only.
#pragma once

#include <cstddef>
#include <deque>

#include "control/plane/session.hpp"

namespace onehop::plane {

class EngineLink {
 public:
  /// Commands that may wait before the session must stop reading its control connection.
  static constexpr std::size_t waiting_max = 4096;

  explicit EngineLink(const EngineRings& rings) : rings_{rings} {}

  void push(const Command& command) {
    waiting_.push_back(command);
    flush();
  }
  void push(CommandKind kind) { push(Command{.kind = kind}); }
  void push_file(BlockKind kind, std::uint32_t file, std::uint64_t block, const Digest& digest) {
    Command command{.kind = CommandKind::file_message};
    command.block.kind = kind;
    command.block.file = file;
    command.block.offset = block * block_bytes;
    command.block.digest = digest;
    push(command);
  }
  /// flush moves waiting commands into the ring, as many as fit.
  void flush() {
    while (!waiting_.empty() && rings_.commands->push(waiting_.front())) waiting_.pop_front();
  }
  [[nodiscard]] bool has_room() const noexcept { return waiting_.size() < waiting_max; }
  [[nodiscard]] bool pop(Event& event) noexcept {
    if (!rings_.events->pop(event)) return false;
    is_closed_ = is_closed_ || event.kind == EventKind::closed;
    return true;
  }
  [[nodiscard]] bool is_closed() const noexcept { return is_closed_; }

 private:
  EngineRings rings_;
  std::deque<Command> waiting_;
  bool is_closed_ = false;
};

}  // namespace onehop::plane
