// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// StallWatch: whether a transfer moves, whatever small frames the peer still answers. While data is
// under way only its arrival counts; while the peer's credit is used up, what its disk takes and
// what it allows. A source that has nothing to send stalls nothing.
//
// Pure. Called by the engine core through Sender.
#pragma once

#include <cstdint>
#include <utility>

#include "engine/base/units.hpp"

namespace onehop::transfer {

class StallWatch {
 public:
  struct Limits {
    Nanos under_way{}, waiting{};
  };
  struct Seen {
    bool is_under_way = false;           ///< sent, and not known to have arrived
    bool is_waiting = false;             ///< something to send, and no credit for it
    std::uint64_t arrived_bytes = 0;     ///< as acknowledged
    std::uint64_t peer_moved_bytes = 0;  ///< credit and what left the peer's buffers
  };

  explicit StallWatch(const Limits& limits) noexcept : limits_{limits} {}

  void start(Instant now) noexcept { moved_at_ = now; }
  void tick(Instant now, const Seen& seen) noexcept {
    const bool is_peer_moving =
        seen.peer_moved_bytes != std::exchange(peer_moved_bytes_, seen.peer_moved_bytes);
    const bool is_arriving =
        seen.arrived_bytes != std::exchange(arrived_bytes_, seen.arrived_bytes);
    is_under_way_ = seen.is_under_way;
    if (is_arriving || (!is_under_way_ && (is_peer_moving || !seen.is_waiting))) moved_at_ = now;
  }
  [[nodiscard]] bool is_stalled(Instant now) const noexcept {
    return now - moved_at_ > (is_under_way_ ? limits_.under_way : limits_.waiting);
  }

 private:
  const Limits limits_;
  Instant moved_at_{};
  std::uint64_t arrived_bytes_ = 0, peer_moved_bytes_ = 0;
  bool is_under_way_ = false;
};

}  // namespace onehop::transfer
