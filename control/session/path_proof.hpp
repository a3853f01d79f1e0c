// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// PathProof: when a data path over which no frame of full size came back is taken for dead.
//
//   begin ─▶ round: the engine's PINGs, and one question on the control connection
//              ├─ a PING is answered ─────────────────────────────▶ proven
//              └─ none is, for 2 s at least (engine/run/loop_base.hpp)
//                   ├─ our link was down, or the question was not answered: another round
//                   ├─ this end has another port to try (--io auto): it takes that, another round
//                   └─ the second such round in a row ────────────▶ dead
//
// So a link that is down where the path opens is waited for, as one that falls later is: until the
// control connection has been silent for its limit. A firewall, or a driver that loses frames,
// leaves the control connection alive. The second round is the other end's time to take its other
// port. Pure: the caller gives the time.
#pragma once

#include "engine/base/units.hpp"

namespace onehop::session {

class PathProof {
 public:
  // Specification. As the engine's proof_limit. Shorter: a slow start is taken for a lost path.
  // Longer: a user waits for the port that works.
  static constexpr Nanos fall_back_after = 2s;
  /// A link that comes and goes is not waited for forever.
  static constexpr Nanos total_max = 120s;

  enum class Verdict : std::uint8_t { again, fall_back, dead };

  void begin(Instant now, bool is_link_up) noexcept {
    *this = {};
    begun_at_ = now;
    begin_round(now, is_link_up);
  }
  /// begin_round comes with a new proof of the engine's and a new question.
  void begin_round(Instant now, bool is_link_up) noexcept {
    round_at_ = now;
    was_link_down_ = !is_link_up;
  }
  void note_link(bool is_up) noexcept { was_link_down_ = was_link_down_ || !is_up; }
  void note_proven() noexcept { is_proven_ = true; }
  void note_peer_ready() noexcept { is_peer_ready_ = true; }

  [[nodiscard]] bool is_proven() const noexcept { return is_proven_; }
  /// is_over: both ends have had a frame answered.
  [[nodiscard]] bool is_over() const noexcept { return is_proven_ && is_peer_ready_; }
  /// is_fall_back_due: an end with another port does not wait for the engine's verdict, which is
  /// later where frames of the peer come in. `heard_at`: the control connection's last word.
  [[nodiscard]] bool is_fall_back_due(Instant now, Instant heard_at) const noexcept {
    return !is_proven_ && now - round_at_ >= fall_back_after && was_alive(heard_at);
  }
  /// end_round: no frame came back in this one.
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
