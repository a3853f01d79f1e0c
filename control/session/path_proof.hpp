// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// PathProof decides when a data path that returned no full-size frame is dead.
//
//   begin ─▶ round: the engine's PINGs, and one question on the control connection
//              ├─ a PING is answered ─────────────────────────────▶ proven
//              └─ none is, for 2 s at least (engine/run/loop_base.hpp)
//                   ├─ our link was down, or the question was not answered: another round
//                   ├─ this end has another port to try (--io auto): it takes that, another round
//                   └─ the second such round in a row ────────────▶ dead
//
// So the session waits for a link that is down when the path opens, as for one that goes down
// later, until the control connection has been silent for its limit. A firewall, or a driver that
// loses frames, leaves the control connection alive. The second round gives the other end time to
// switch to its other port. Pure: the caller gives the time.
#pragma once

#include "engine/base/units.hpp"

namespace onehop::session {

class PathProof {
 public:
  // Specification. Equals the engine's proof_limit. Shorter: a slow start looks like a dead path.
  // Longer: a user waits longer for the port that works.
  static constexpr Nanos fall_back_after = 2s;
  /// Limits the wait for a link that comes and goes.
  static constexpr Nanos total_max = 120s;

  enum class Verdict : std::uint8_t { again, fall_back, dead };

  void begin(Instant now, bool is_link_up) noexcept {
    *this = {};
    begun_at_ = now;
    begin_round(now, is_link_up);
  }
  /// begin_round starts when the engine begins a new proof and a new question is sent.
  void begin_round(Instant now, bool is_link_up) noexcept {
    round_at_ = now;
    was_link_down_ = !is_link_up;
  }
  void note_link(bool is_up) noexcept { was_link_down_ = was_link_down_ || !is_up; }
  void note_proven() noexcept { is_proven_ = true; }
  void note_peer_ready() noexcept { is_peer_ready_ = true; }

  [[nodiscard]] bool is_proven() const noexcept { return is_proven_; }
  /// is_over: a frame of each end has been answered.
  [[nodiscard]] bool is_over() const noexcept { return is_proven_ && is_peer_ready_; }
  /// is_fall_back_due: an end with another port does not wait for the engine's verdict, which comes
  /// later if frames of the peer arrive. `heard_at`: when the control connection last received.
  [[nodiscard]] bool is_fall_back_due(Instant now, Instant heard_at) const noexcept {
    return !is_proven_ && now - round_at_ >= fall_back_after && was_alive(heard_at);
  }
  /// end_round: no frame came back in this round.
  [[nodiscard]] Verdict end_round(Instant now, Instant heard_at, bool can_fall_back) noexcept {
    if (now - begun_at_ > total_max) return Verdict::dead;
    if (!was_alive(heard_at)) {
      dead_rounds_ = 0;
      return Verdict::again;
    }
    if (can_fall_back) return Verdict::fall_back;
    return ++dead_rounds_ < dead_rounds_max ? Verdict::again : Verdict::dead;
  }

 private:
  static constexpr unsigned dead_rounds_max = 2;
  [[nodiscard]] bool was_alive(Instant heard_at) const noexcept {
    return !was_link_down_ && heard_at >= round_at_;
  }

  Instant begun_at_{}, round_at_{};
  unsigned dead_rounds_ = 0;
  bool was_link_down_ = false, is_proven_ = false, is_peer_ready_ = false;
};

}  // namespace onehop::session
