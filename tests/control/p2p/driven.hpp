// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Driven: a Formation with its clock and all that it asked for, and peers and groups to feed it.
#pragma once

#include <catch2/catch.hpp>

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>
#include <vector>

#include "control/p2p/formation.hpp"

namespace onehop::p2p {

inline const Peer box{
    .path = "/peers/1", .name = "box", .address = "02:00:00:00:01:00", .signal_dbm = -40};
inline const Peer desk{.path = "/peers/2", .name = "desk", .address = "02:00:00:00:02:00"};
inline const Peer owner{
    .path = "/peers/3", .name = "owner", .address = "02:00:00:00:03:00", .is_group_owner = true};
inline const Peer receiver{
    .path = "/peers/4", .name = "receiver", .address = "02:00:00:00:04:00", .is_accepting = true};
inline const Group group{.path = "/interfaces/1", .interface_name = "p2p-wlan0-0"};
inline const Group owned{.path = "/interfaces/2",
                         .object = "/groups/2",
                         .interface_name = "p2p-wlan0-1",
                         .role = Role::owner};

/// Driven is a Formation with its clock and everything that it asked for.
class Driven {
 public:
  explicit Driven(const Plan& plan) : formation_{plan} { feed(Begun{}); }

  void feed(const Event& event) {
    for (Action& action : formation_.step(now_, event)) actions_.push_back(std::move(action));
  }
  /// pass runs the clock on, with every wake-up that is asked for.
  void pass(Nanos span) {
    const Instant until = now_ + span;
    while (!formation_.is_ended() && formation_.next_wakeup() <= until) {
      now_ = std::max(now_, formation_.next_wakeup());
      feed(TimePassed{});
      REQUIRE(++steps_ < 1000);
    }
    now_ = until;
  }
  template <class A>
  [[nodiscard]] std::vector<A> all() const {
    std::vector<A> found;
    for (const Action& action : actions_)
      if (const auto* one = std::get_if<A>(&action)) found.push_back(*one);
    return found;
  }
  [[nodiscard]] const Ended& ended() const {
    REQUIRE_FALSE(actions_.empty());
    const auto* last = std::get_if<Ended>(&actions_.back());
    REQUIRE(last != nullptr);
    return *last;
  }
  [[nodiscard]] const Action& last() const { return actions_.back(); }
  [[nodiscard]] bool is_ended() const { return formation_.is_ended(); }

 private:
  Formation formation_;
  Instant now_{1000s};
  std::vector<Action> actions_;
  int steps_ = 0;
};

inline Plan plan_of(Plan::Task task, std::string peer = {}) {
  return {.task = task, .peer = std::move(peer)};
}
inline constexpr auto find_task = Plan::Task::find, connect_task = Plan::Task::connect,
                      accept_task = Plan::Task::accept, host_task = Plan::Task::host;

inline Error refused() { return {ExitCode::io_unavailable, "connect", "connect failed"}; }

inline Error wrong_channel() {
  Error error = refused();
  error.errno_value = ECHRNG;
  return error;
}

}  // namespace onehop::p2p
