// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// LinkShares: how a receiver of several sessions divides a link among them. Their senders' laws do
// not: each holds as much of a common queue as it drains, so whatever share a session has, it
// keeps, and the first one keeps all of it.
//
//   r_i  what arrived of session i in the last 0.4 s; N sessions that bring anything
//   S    what arrived of all, those that have ended meanwhile, too
//   C    the highest S of the last 2 s
//   L    the level: what each session is offered; at least 1.015 C / N, the even share
//
// There is no level while S grows after the start. From then on trials of 0.5 s find it:
//
//   up    1.15 L, then 2 L. S grows where the link has more than C, or where some cannot use their
//         shares (a slow disk) and the others can
//   down  0.9 L. S stays where those that could not use their shares now can
//
// A trial that was right is followed by another one at once; one that was wrong is taken back, and
// the next one, of the other kind, is 2 s later, then 4, 8, 16 s. It is at once where there must be
// room: all are at L, S falls below 0.9 C, or none was at L and now one is. So L is about the
// lowest level at which the link is full: the share that is even in the sense of max and min.
//
// On a busy machine counts stand still and catch up, and S grows by chance. Where none is at L a
// higher one changes nothing, so there is no trial up; and after 2 s of it L becomes the most that
// one had, which takes nothing from anybody. "At L": at the lowest one that was in force while r_i
// came. One session alone is never bounded. Pure; wire bytes; the caller's clock.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/base/units.hpp"

namespace onehop::rate {

class LinkShares {
 public:
  /// Ours. Low: more work. High: the first bound of a session that joins comes later.
  static constexpr Nanos period{50ms};

  struct Arrived {
    std::uint64_t session = 0;  ///< never used again for another one
    Bytes total{};              ///< grows
  };

  /// step takes what has arrived of each session that is under way, once per period, and returns
  /// what each may bring; 0: there is no bound.
  [[nodiscard]] BytesPerSecond step(Instant now, std::span<const Arrived> arrived);

 private:
  static constexpr std::size_t rate_steps = 8;    // r_i; of one period each
  static constexpr std::size_t sum_steps = 40;    // C
  static constexpr std::size_t trial_steps = 10;  // longer than r_i looks back

  struct Reading {
    Instant at{};
    Bytes total{};
  };
  /// Meter: the rate at which a total has grown.
  struct Meter {
    std::array<Reading, rate_steps> readings{};  // a ring
    std::size_t count = 0;                       // of all readings
    Instant moved_at{};                          // the total grew

    Bytes read(Instant now, Bytes total) noexcept;  // what came since the last one
    [[nodiscard]] BytesPerSecond rate() const noexcept;
  };
  struct Session {
    std::uint64_t id = 0;
    Meter meter;
  };
  /// Trial: what was before it.
  struct Trial {
    bool is_up = true;
    BytesPerSecond level{}, sum{};
    std::size_t steps = 0;
  };

  void read(Instant now, std::span<const Arrived> arrived);
  [[nodiscard]] bool is_growing() noexcept;
  void judge(BytesPerSecond sum, BytesPerSecond even, bool is_bound, bool has_room) noexcept;
  void begin_trial(bool is_up, BytesPerSecond sum, Gain part) noexcept;

  std::vector<Session> sessions_;
  Meter sum_;  // S
  Bytes total_{};
  std::array<BytesPerSecond, sum_steps> sums_{};  // a ring
  std::size_t steps_ = 0;
  bool is_starting_ = true;
  BytesPerSecond level_{};
  std::array<BytesPerSecond, rate_steps> levels_{};  // a ring: those in force while r_i came
  std::optional<Trial> trial_;
  bool was_up_ = false;            // the last trial
  std::size_t steps_still_ = 0;    // since the last trial
  std::size_t steps_between_ = 0;  // of two trials
  std::size_t steps_unbound_ = 0;  // since a session was at the level
  BytesPerSecond most_unbound_{};  // the most that one had meanwhile
  std::size_t count_ = 0;          // N of the last step
};

}  // namespace onehop::rate
