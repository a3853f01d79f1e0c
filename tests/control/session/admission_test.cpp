// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Goal:   strangers are bounded in number, and their guesses in rate, without keeping anybody else
//         out; memory is bounded, too.
// Method: Admission and ProgressFloor alone, in a time that the test makes.
#include <catch2/catch.hpp>

#include <set>

#include "control/session/channel/admission.hpp"
#include "control/session/progress_floor.hpp"

using namespace onehop;
using namespace onehop::session;

namespace {

IpAddress address(std::uint32_t number) {
  IpAddress made;
  made.bytes[2] = static_cast<std::byte>(number >> 8);
  made.bytes[3] = static_cast<std::byte>(number & 0xff);
  return made;
}

/// Door: its connections are numbered, from 0.
struct Door {
  Admission admission{1s};
  std::vector<Admission::Ticket> tickets;
  std::optional<std::size_t> given_way;  ///< for the newest
  std::size_t enter(std::uint32_t from) {
    given_way.reset();
    const std::size_t number = tickets.size();
    tickets.push_back(admission.enter(address(from), [this, number] {
      REQUIRE_FALSE(given_way);
      given_way = number;
    }));
    return number;
  }
};

}  // namespace

TEST_CASE("N7 the oldest half-open connection of an address gives way to its next one",
          "[control][session]") {
  Door door;
  for (int i = 0; i < 4; ++i) {
    door.enter(1);
    CHECK_FALSE(door.given_way);
  }
  door.enter(1);
  CHECK(door.given_way == 0);
  door.admission.leave(door.tickets[0]);  // it had its place no longer
  door.enter(1);
  CHECK(door.given_way == 1);
  door.admission.leave(door.tickets[2]);
  door.enter(1);
  CHECK_FALSE(door.given_way);
  CHECK(door.admission.half_open() == 4);
}

TEST_CASE("N7 where all places are taken, the address that holds the most loses its oldest",
          "[control][session]") {
  Door door;
  const std::size_t honest = door.enter(100);
  std::set<std::size_t> strangers;
  for (std::uint32_t i = 0; i < 15; ++i) strangers.insert(door.enter(1 + i % 4));
  REQUIRE(door.admission.half_open() == 16);
  // Four addresses go on connecting: they push out each other, never the one that has a single
  // connection.
  for (std::uint32_t i = 0; i < 10'000; ++i) {
    const std::size_t number = door.enter(1 + i % 4);
    REQUIRE(door.given_way);
    REQUIRE(*door.given_way != honest);
    REQUIRE(strangers.erase(*door.given_way) == 1);
    strangers.insert(number);
    REQUIRE(door.admission.half_open() <= 16);
  }
  door.enter(200);
  CHECK(door.given_way);  // and another sender gets in at once
}

TEST_CASE("N7 connections give way to those of their own standing alone", "[control][session]") {
  Door door;
  const auto rise = [&door](std::size_t number, Standing standing) {
    door.given_way.reset();
    door.admission.rise(door.tickets[number], standing);
  };
  const std::size_t proven = door.enter(1);
  rise(proven, Standing::proven);
  for (std::uint32_t i = 0; i < 10'000; ++i) {  // of the same address, and of others
    door.enter(1 + i % 40);
    REQUIRE(door.given_way != proven);
    REQUIRE(door.admission.half_open() <= 17);
  }
  // They, too, are bounded: by address, and in all.
  for (std::uint32_t i = 0; i < 40; ++i) rise(door.enter(100 + i), Standing::proven);
  CHECK(door.admission.half_open() <= 32);
  rise(proven, Standing::proven);  // it has given way by now, and stays away
  CHECK_FALSE(door.given_way);
}

TEST_CASE("N7 what left is counted no more, however often it comes", "[control][session]") {
  Door door;
  for (int i = 0; i < 10'000; ++i) {
    const std::size_t number = door.enter(1);
    REQUIRE_FALSE(door.given_way);
    door.admission.leave(door.tickets[number]);
  }
  CHECK(door.admission.half_open() == 0);
}

TEST_CASE("K3 after a wrong code an address tries one a second, and the others at once",
          "[control][session]") {
  Admission admission{1s};
  Instant now{};
  now += 1h;
  CHECK_FALSE(admission.begin_attempt(address(1), now));
  admission.note_wrong_code(address(1), now);
  CHECK(admission.begin_attempt(address(1), now) == now + 1s);
  CHECK_FALSE(admission.begin_attempt(address(2), now));
  // Asking does not use up a turn, so connections that give way meanwhile do not push the next one
  // away.
  for (int i = 0; i < 100'000; ++i) CHECK(admission.begin_attempt(address(1), now) == now + 1s);
  int attempts = 0;
  for (Nanos t{0}; t < 60s; t += 10ms)
    if (!admission.begin_attempt(address(1), now + t)) ++attempts;
  CHECK(attempts <= 60);
  CHECK(attempts >= 58);
  admission.note_right_code(address(1));
  for (int i = 0; i < 3; ++i) CHECK_FALSE(admission.begin_attempt(address(1), now));
}

TEST_CASE("K3 the memory of guessers is bounded, and the newest are in it", "[control][session]") {
  Admission admission{1s};
  Instant now{};
  for (std::uint32_t i = 0; i < 5'000; ++i) admission.note_wrong_code(address(i), now += 1ms);
  std::size_t remembered = 0;
  for (std::uint32_t i = 0; i < 5'000; ++i)
    remembered += admission.begin_attempt(address(i), now) ? 1 : 0;
  CHECK(remembered <= 1'024);
  CHECK(admission.begin_attempt(address(4'999), now));
}

// Goal:   a session that hardly moves is told from one that moves, stands still for a moment, or
//         cannot move for our sake.
TEST_CASE("the floor of progress counts what came in a window, however it is spread",
          "[control][session]") {
  constexpr std::uint64_t floor_bytes = 160 * 1024;
  constexpr Nanos window = 10s;
  Instant start{};
  start += 1h;
  const auto first_below = [&](auto bytes_at, auto is_excused) -> std::optional<Nanos> {
    ProgressFloor floor{floor_bytes, window, start};
    for (Nanos t = 1s; t <= 120s; t += 1s) {
      floor.note(bytes_at(t), start + t);
      if (is_excused(t)) floor.excuse(start + t);
      if (floor.is_below(start + t)) return t;
    }
    return std::nullopt;
  };
  const auto at_rate = [](std::uint64_t bytes_per_s) {
    return [=](Nanos t) { return bytes_per_s * static_cast<std::uint64_t>(t / 1s); };
  };
  const auto never = [](Nanos) { return false; };
  CHECK(first_below(at_rate(0), never) == window);
  CHECK(first_below(at_rate(2'500), never) == window);  // 20 kbit/s
  CHECK_FALSE(first_below(at_rate(20'000), never));
  // An outage of 8 s in a transfer of 1 Mbit/s is none of it.
  CHECK_FALSE(first_below(
      [](Nanos t) {
        return 125'000 *
               static_cast<std::uint64_t>((t % 28s < 20s ? t % 28s : 20s) / 1s + 20 * (t / 28s));
      },
      never));
  CHECK(first_below(at_rate(0), [](Nanos t) { return t <= 60s; }) == 60s + window);
  // Counting from nothing again, as after a restart, is no progress.
  CHECK(first_below(
            [](Nanos t) { return t / 1s % 2 == 0 ? std::uint64_t{0} : std::uint64_t{100'000}; },
            never) == window);
}
