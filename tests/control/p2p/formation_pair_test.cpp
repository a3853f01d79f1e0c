// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Goal:   `connect` and `accept` come to a group whatever wpa_supplicant refuses now and then, and
//         where they cannot, both end by their limit with nothing running.
// Method: two Formations in virtual time over a model of two wpa_supplicants: searches see the peer
//         after a random time, Connect is refused and negotiations fail at random from a seed; a
//         group may come of one at the owner alone, which full searches see, and end after 10 s.
// Bounds: with a third of all calls and attempts failing, 120 s hold more than 20 attempts; all of
//         200 seeds must form a group. The seed is printed on failure.
#include <catch2/catch.hpp>

#include <array>
#include <optional>
#include <random>

#include "control/p2p/formation.hpp"

using namespace onehop;
using namespace onehop::p2p;

namespace {

struct Faults {
  double refuse = 0, fail = 0, half = 0;
  bool is_deaf = false;  // the two never see each other
};

/// Side is one machine: its Formation, and what its wpa_supplicant is at.
struct Side {
  explicit Side(Plan plan) : formation{std::move(plan)} {}

  Formation formation;
  Peer other;
  bool is_finding = false, is_connecting = false, is_joining = false;
  bool has_seen = false;                 // in the search that runs
  bool is_social = true;                 // and where it looks
  std::optional<Instant> group_ends_at;  // that it owns, and the other is not in
  bool is_open = false;                  // its button is pressed
  std::optional<Ended> ended;
};

class Air {
 public:
  Air(std::uint64_t seed, Faults faults, Plan first, Plan second)
      : random_{seed}, faults_{faults}, sides_{Side{std::move(first)}, Side{std::move(second)}} {
    sides_[0].other = {.path = "/peers/b", .name = "b", .address = "02:00:00:00:00:0b"};
    sides_[1].other = {.path = "/peers/a", .name = "a", .address = "02:00:00:00:00:0a"};
    for (Side& side : sides_) feed(side, Begun{});
  }

  void run(Nanos span) {
    const Instant until = now_ + span;
    for (; now_ < until && !(sides_[0].ended && sides_[1].ended); now_ += 100ms) {
      for (Side& side : sides_) {
        if (side.formation.next_wakeup() <= now_) feed(side, TimePassed{});
        if (side.group_ends_at && *side.group_ends_at <= now_) {
          side.group_ends_at.reset();
          side.is_open = false;
          feed(side, GroupFinished{group_path});
        }
        search(side);
      }
      meet();
    }
  }
  [[nodiscard]] const std::array<Side, 2>& sides() const { return sides_; }

 private:
  bool happens(double share) { return std::uniform_real_distribution{0.0, 1.0}(random_) < share; }
  Side& other(const Side& side) { return &side == sides_.data() ? sides_[1] : sides_[0]; }

  void feed(Side& side, const Event& event) {
    for (const Action& action : side.formation.step(now_, event)) {
      if (const auto* find = std::get_if<Find>(&action)) {
        side.is_finding = true;
        side.has_seen = false;
        side.is_social = find->is_social;
      }
      if (std::holds_alternative<Authorize>(action)) side.is_open = true;
      if (std::holds_alternative<StopFind>(action)) side.is_finding = false;
      if (std::holds_alternative<Cancel>(action)) side.is_connecting = side.is_finding = false;
      if (const auto* ended = std::get_if<Ended>(&action)) side.ended = *ended;
      if (const auto* connect = std::get_if<Connect>(&action)) {
        side.is_finding = false;
        side.is_joining = connect->is_join;
        side.is_connecting = !happens(faults_.refuse);
        const auto refused = Error{ExitCode::io_unavailable, "connect", "refused"};
        const bool is_done = side.is_connecting;
        feed(side, CallDone{is_done ? std::nullopt : std::optional{refused}});
      }
    }
  }
  /// A search of a second sees a peer that searches or waits as well with one chance in three.
  void search(Side& side) {
    Side& peer = other(side);
    const bool has_group = peer.group_ends_at.has_value();
    if (has_group && side.is_social) return;
    if (faults_.is_deaf || !side.is_finding || side.has_seen || peer.ended || !happens(0.04))
      return;
    side.has_seen = true;
    Peer found = side.other;
    found.is_group_owner = has_group;
    feed(side, PeerFound{found});
  }
  void meet() {
    for (Side& side : sides_) {
      Side& peer = other(side);
      if (side.is_connecting && side.is_joining) return join(side, peer);
      if (side.is_connecting && peer.is_finding && !faults_.is_deaf && happens(0.1))
        feed(peer, PeerAsked{peer.other.path});
    }
    if (!sides_[0].is_connecting || !sides_[1].is_connecting || !happens(0.05)) return;
    const bool is_failed = happens(faults_.fail), is_half = !is_failed && happens(faults_.half);
    for (Side& side : sides_) {
      const bool is_owner = &side == &sides_[1];  // who accepts
      side.is_connecting = false;
      if (is_owner && is_half) side.group_ends_at = now_ + 10s;
      if (!is_failed) feed(side, Negotiated{5180});
      if (is_failed || (is_half && !is_owner))
        feed(side, AttemptFailed{"failed"});
      else
        feed(side, GroupStarted{group_of(is_owner)});
    }
    if (!is_failed && !is_half) feed(sides_[1], PeerJoined{group_object});
  }
  /// A peer that joins asks for the button, waits until it is pressed, and may find the group gone.
  void join(Side& side, Side& owner) {
    if (!owner.group_ends_at) {
      side.is_connecting = false;
      return feed(side, AttemptFailed{"no such group"});
    }
    if (!owner.is_open && happens(0.1)) feed(owner, JoinAsked{owner.other.path});
    if (!owner.is_open || !happens(0.05)) return;
    side.is_connecting = false;
    owner.group_ends_at.reset();
    feed(side, GroupStarted{group_of(false)});
    feed(owner, PeerJoined{group_object});
  }
  static Group group_of(bool is_owner) {
    return {
        .path = group_path, .object = group_object, .role = is_owner ? Role::owner : Role::client};
  }
  static constexpr const char *group_path = "/interfaces/1", *group_object = "/groups/1";

  std::mt19937_64 random_;
  Faults faults_;
  Instant now_{1s};
  std::array<Side, 2> sides_;
};

Plan plan_of(Plan::Task task) { return {.task = task}; }

}  // namespace

TEST_CASE("connect and accept form a group though calls fail now and then", "[control][p2p]") {
  const auto seed = GENERATE(range(std::uint64_t{1}, std::uint64_t{201}));
  CAPTURE(seed);
  const Faults faults =
      seed % 2 == 0 ? Faults{} : Faults{.refuse = 0.33, .fail = 0.33, .half = 0.33};
  const auto second = seed % 3 == 0 ? Plan::Task::connect : Plan::Task::accept;
  Air air{seed, faults, plan_of(Plan::Task::connect), plan_of(second)};
  air.run(130s);
  for (const Side& side : air.sides()) {
    REQUIRE(side.ended);
    CHECK(side.ended->group);
    CHECK_FALSE(side.is_finding);
  }
}

TEST_CASE("two that never hear each other end by their limit, with nothing running",
          "[control][p2p]") {
  Air air{7, {.is_deaf = true}, plan_of(Plan::Task::connect), plan_of(Plan::Task::accept)};
  air.run(130s);
  for (const Side& side : air.sides()) {
    REQUIRE(side.ended);
    REQUIRE(side.ended->error);
    CHECK_FALSE(side.is_finding);
    CHECK_FALSE(side.is_connecting);
  }
}
