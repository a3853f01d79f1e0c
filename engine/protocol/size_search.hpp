// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// SizeSearch: which frames still pass when data stops though the peer answers: an MTU fell.
//
// A search starts when data was sent, a PING behind it was answered, and a report after that shows
// nothing new. Data then waits, and rounds of PINGs go out, 8 sizes, each twice:
//
//   the largest is answered ─▶ it was loss: go on as before
//   some are                ─▶ another round between the largest answered and the next size, then
//                              frames of that size
//   none is                 ─▶ another round after twice the time, with one PING per size, until
//                              the session's limit on progress ends it
//
// While frames are smaller than they might be, a full one is tried now and then. It sends nothing
// itself. Pure. Called by the engine core through Sender. Sizes are bytes of a frame's body.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "engine/base/units.hpp"

namespace onehop::protocol {

class SizeSearch {
 public:
  // Implementation. Shorter than stuck_span: a burst of loss costs a round trip. Longer: a wait.
  static constexpr Nanos stuck_span = 300ms;
  static constexpr std::int64_t stuck_srtts = 8;
  static constexpr std::uint64_t stuck_frames = 4;  // sent since, and nothing of them came
  // A core that was away for longer, or a link that was down, has seen nothing.
  static constexpr Nanos tick_gap_max = 100ms;
  static constexpr std::size_t body_min = 256, body_step = 16;
  static constexpr std::size_t sizes = 8, copies = 2;
  static constexpr Nanos ping_spacing = 1ms, answer_min = 50ms, answer_max = 500ms;
  // A dead path gets two PINGs a second at most, beside the usual one.
  static constexpr Nanos round_gap_max = 4s;
  static constexpr Nanos retry_full = 10s;

  /// Seen: what tick() judges by. `sent_bytes`: file bytes given to the port, less what is
  /// still in our own queue.
  struct Seen {
    std::uint64_t sent_bytes = 0, arrived_bytes = 0, started_bytes = 0;
    Instant feedback_at{};              ///< the newest report
    Instant asked_at{}, answered_at{};  ///< the newest PING that was answered, and its answer
    Nanos srtt{};
    std::size_t body_max = 0;  ///< the largest frame that our own end takes
    bool can_ask = true;       ///< packet numbers are left for more than the usual PINGs
  };

  /// tick notices progress, or that there is none, and moves a search on.
  void tick(Instant now, const Seen& seen) noexcept {
    const bool was_away = now - std::exchange(ticked_at_, now) > tick_gap_max;
    if (was_away || seen.arrived_bytes != arrived_bytes_ ||
        seen.arrived_bytes >= seen.started_bytes) {
      arrived_bytes_ = seen.arrived_bytes;
      sent_bytes_ = seen.sent_bytes;
      progress_at_ = now;
      loaded_at_ = {};
    }
    if (loaded_at_ == Instant{} &&
        seen.sent_bytes >= sent_bytes_ + stuck_frames * body_limit(seen.body_max))
      loaded_at_ = now;
    if (is_searching_ && !seen.can_ask) return finish(now, 0);
    if (is_searching_) {
      if (pings_left_ == 0 && now >= round_ends_at_) end_round(now, seen.srtt);
      return;
    }
    // A PING takes its place behind the data: its answer says that the data is not still on its way
    // (a station may wait for its turn on the air for longer than any span).
    const bool is_overtaken = loaded_at_ != Instant{} && seen.asked_at > loaded_at_ &&
                              seen.feedback_at >= seen.answered_at;
    const bool is_stuck = seen.can_ask && is_overtaken &&
                          now - progress_at_ >= std::max(stuck_span, seen.srtt * stuck_srtts);
    if (is_stuck)
      start(now, body_limit(seen.body_max));
    else if (limit_ > 0 && now >= full_at_)
      try_full(now, seen.body_max);
  }

  [[nodiscard]] bool is_searching() const noexcept { return is_searching_; }
  [[nodiscard]] Instant due_at() const noexcept {
    return pings_left_ > 0 ? ping_at_ : is_searching_ ? round_ends_at_ : Instant::max();
  }
  /// take_due is the size of the PING that is due, 0 where none is.
  [[nodiscard]] std::size_t take_due(Instant now) noexcept {
    if (pings_left_ == 0 || now < ping_at_) return 0;
    --pings_left_;
    ping_at_ = now + ping_spacing;
    if (pings_left_ == 0) round_ends_at_ = now + answer_wait_;
    return candidate(pings_left_ % sizes);
  }
  /// on_pong: a PING with a body of so many bytes has arrived.
  void on_pong(Instant now, std::size_t body_bytes) noexcept {
    if (full_ > 0 && body_bytes >= full_) limit_ = full_ = 0;
    if (!is_searching_ || body_bytes < std::min(body_min, top_))
      return;  // a usual PING says nothing of data
    best_ = std::max(best_, std::min(body_bytes, top_));
    if (best_ == top_ && is_first_) finish(now, 0);
  }

  /// body_limit is the largest body to send, `body_max` at most.
  [[nodiscard]] std::size_t body_limit(std::size_t body_max) const noexcept {
    return limit_ > 0 ? std::min(limit_, body_max) : body_max;
  }
  /// forget: this end's own path has changed.
  void forget() noexcept {
    limit_ = full_ = 0;
    is_searching_ = false;
    pings_left_ = 0;
  }

 private:
  /// candidate 0 is the smallest: PINGs count down, so the largest goes first.
  [[nodiscard]] std::size_t candidate(std::size_t i) const noexcept {
    return low_ + (top_ - low_) * i / (sizes - 1);
  }

  void start(Instant now, std::size_t body_max) noexcept {
    is_searching_ = is_first_ = true;
    best_ = 0;
    round_gap_ = answer_min;
    top_ = body_max;
    low_ = std::min(body_min, top_);
    start_round(now, copies);
  }
  void start_round(Instant at, std::size_t count) noexcept {
    pings_left_ = sizes * count;
    ping_at_ = at;
  }
  void end_round(Instant now, Nanos srtt) noexcept {
    answer_wait_ = std::clamp(2 * srtt + answer_min, answer_min, answer_max);
    if (best_ == 0) {
      round_gap_ = std::min(round_gap_ * 2, round_gap_max);
      return start_round(now + round_gap_, 1);
    }
    std::size_t above = top_;  // the smallest size that was not answered
    for (std::size_t i = sizes; i-- > 0;)
      if (candidate(i) > best_) above = candidate(i);
    if (best_ >= top_ || above - best_ <= body_step) return finish(now, best_);
    is_first_ = false;
    low_ = best_;
    top_ = above - 1;
    start_round(now, copies);
  }
  void finish(Instant now, std::size_t limit) noexcept {
    is_searching_ = false;
    pings_left_ = 0;
    if (limit > 0) limit_ = limit;
    full_at_ = now + retry_full;
    ticked_at_ = {};  // the next tick begins to count anew
  }
  void try_full(Instant now, std::size_t body_max) noexcept {
    full_ = low_ = top_ = body_max;
    pings_left_ = 1;
    ping_at_ = now;
    full_at_ = now + retry_full;
  }

  std::uint64_t arrived_bytes_ = 0, sent_bytes_ = 0;
  Instant loaded_at_{};  // when stuck_frames had left our own queue since the last progress
  Instant ticked_at_{}, progress_at_{}, ping_at_{}, round_ends_at_{}, full_at_{};
  Nanos answer_wait_ = answer_min, round_gap_ = answer_min;
  std::size_t limit_ = 0;  // 0: none was found
  std::size_t full_ = 0;   // tried beyond the limit; 0: not
  std::size_t low_ = 0, top_ = 0, best_ = 0;
  std::size_t pings_left_ = 0;
  bool is_searching_ = false, is_first_ = false;
};

}  // namespace onehop::protocol
