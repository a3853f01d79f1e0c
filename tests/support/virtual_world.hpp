// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// VirtualWorld: runs everything that decides at `now` in virtual time, until nothing is left or a
// time is reached.
//
//   actors: turn(now) ─▶ next deadline      link: next_event()      ─▶ the earliest moves time on
//
// An actor is a callable: turn(now) does its work and returns when it wants its next turn
// (Instant::max(): never by itself). An actor over a VirtualPort gives the port too, so that a
// frame that arrives while its wait() wants frames brings its turn forward. Order within an instant
// is that of add(): runs repeat exactly. One thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

#include "engine/base/check.hpp"
#include "tools/labs/world/virtual_port.hpp"

namespace onehop::test {

class VirtualWorld {
 public:
  using Turn = std::function<Instant(Instant now)>;
  /// Turns in one instant before the world is taken to be stuck: an actor that always asks for
  /// `now` never lets time go.
  static constexpr std::uint32_t turns_per_instant_max = 100'000;

  explicit VirtualWorld(VirtualLink& link) : link_{&link} {}

  void add(Turn turn) { actors_.push_back({std::move(turn), nullptr, link_->now()}); }
  /// add an actor that sleeps in `port`: its next turn is when the port's wait returns, or at the
  /// deadline it returned.
  void add(Turn turn, const VirtualPort& port) {
    actors_.push_back({std::move(turn), &port, link_->now()});
  }
  /// at runs `event` once, for example a change of the link.
  void at(Instant when, std::function<void()> event) {
    events_.push_back({when, std::move(event)});
  }

  [[nodiscard]] Instant now() const noexcept { return link_->now(); }

  /// run_until returns true when everything is idle (nothing will ever happen again), false at
  /// `end`.
  bool run_until(Instant end) {
    std::uint32_t turns = 0;
    while (true) {
      const Instant next = next_time();
      if (next == Instant::max()) return true;
      if (next > end) {
        link_->run_until(end);
        return false;
      }
      turns = next > now() ? 0 : turns + 1;
      ONEHOP_CHECK(turns < turns_per_instant_max);
      link_->run_until(std::max(next, now()));
      run_due();
    }
  }

  /// run_while runs on in steps while `condition` holds; false when `end` or idleness came first.
  bool run_while(const std::function<bool()>& condition, Instant end, Nanos step = 1ms) {
    while (condition()) {
      if (now() >= end) return false;
      if (run_until(std::min(end, now() + step))) return !condition();
    }
    return true;
  }

 private:
  struct Actor {
    Turn turn;
    const VirtualPort* port;
    Instant next;
    [[nodiscard]] Instant due() const {
      return port == nullptr ? next : std::min(next, port->ready_at());
    }
  };
  struct Event {
    Instant when;
    std::function<void()> run;
  };

  [[nodiscard]] Instant next_time() const {
    Instant next = link_->next_event();
    for (const Actor& actor : actors_) next = std::min(next, actor.due());
    for (const Event& event : events_) next = std::min(next, event.when);
    return next;
  }

  void run_due() {
    for (std::size_t i = 0; i < events_.size();) {
      if (events_[i].when > now()) {
        i += 1;
        continue;
      }
      const auto run = std::move(events_[i].run);
      events_.erase(events_.begin() + static_cast<std::ptrdiff_t>(i));
      run();
    }
    for (Actor& actor : actors_) {
      if (actor.due() <= now()) actor.next = actor.turn(now());
    }
  }

  VirtualLink* link_;
  std::vector<Actor> actors_;
  std::vector<Event> events_;
};

}  // namespace onehop::test
