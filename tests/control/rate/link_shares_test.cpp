// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Goal:   sessions over one link get even shares of it, and what one does not use is the others'.
// Method: senders that hold what they have, on a link of 600 Mbit/s, in virtual time: each wants
//         more than its share of the queue is, and gets what the offers and the others leave. What
//         a session has received is counted up to 5 ms late, at moments that are drawn from a seed.
//         No threads, no clock.
#include <catch2/catch.hpp>

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

#include "control/rate/link_shares.hpp"

namespace onehop::rate {
namespace {

constexpr double link_rate = 75e6;  // bytes a second
constexpr unsigned seed = 7;

/// Sender: what it pushes into the common queue is what it last had, and a tenth more each period.
struct Sender {
  double demand = link_rate;  // what it can use at most
  double pushed = 1e5;
  double rate = 0;
  double total = 0, counted = 0;
  bool is_there = true;
  int still = 0;  // periods for which what it has received is not counted
};

struct Link {
  std::vector<Sender> senders;
  LinkShares shares;
  Instant now{1s};
  BytesPerSecond level{};
  double capacity = link_rate;
  double stalls = 0;  // the part of the periods in which a session's count begins to stand still
  std::mt19937 random{seed};

  void step() {
    const double period = 0.05;
    std::uniform_real_distribution<double> late{0, 0.005}, part{0, 1};
    double wanted = 0;
    for (Sender& s : senders) {
      if (!s.is_there) continue;
      s.pushed = std::min(s.demand, std::max(s.rate * 1.3, 1e5));
      if (level > BytesPerSecond{0}) s.pushed = std::min(s.pushed, double(level.count));
      wanted += s.pushed;
    }
    std::vector<LinkShares::Arrived> arrived;
    std::uint64_t id = 0;
    for (Sender& s : senders) {
      ++id;
      if (!s.is_there) continue;
      s.rate = s.pushed * std::min(1.0, capacity / wanted);  // a FIFO: as they are in it
      s.total += s.rate * period;
      if (s.still > 0)
        --s.still;
      else if (part(random) < stalls)
        s.still = 1 + int(4 * part(random));
      if (s.still == 0) s.counted = std::max(s.counted, s.total - s.rate * late(random));
      arrived.push_back({id, Bytes{std::int64_t(s.counted)}});
    }
    now += LinkShares::period;
    level = shares.step(now, arrived);
  }
  void run(Nanos time) {
    for (const Instant end = now + time; now < end;) step();
  }
  /// Over the next `time`: Jain's index of those that are there, and the part of the link in use.
  std::pair<double, double> judge(Nanos time) {
    std::vector<double> before;
    for (const Sender& s : senders) before.push_back(s.total);
    run(time);
    double sum = 0, squares = 0;
    int count = 0;
    for (std::size_t i = 0; i < senders.size(); ++i) {
      if (!senders[i].is_there) continue;
      const double came = senders[i].total - before[i];
      sum += came;
      squares += came * came;
      ++count;
    }
    const double seconds = double(time.count()) * 1e-9;
    return {sum * sum / (count * squares), sum / seconds / capacity};
  }
};

}  // namespace

TEST_CASE("one session alone is never bounded", "[control][rate]") {
  Link link{.senders = std::vector<Sender>(1)};
  for (int i = 0; i < 100; ++i) {
    link.step();
    CHECK(link.level == BytesPerSecond{0});
  }
}

TEST_CASE("those that come later get an even share of a link that the first one fills",
          "[control][rate]") {
  const std::size_t count = GENERATE(2U, 3U, 4U, 8U);
  Link link{.senders = std::vector<Sender>(count)};
  for (std::size_t i = 1; i < count; ++i) link.senders[i].is_there = false;
  link.run(1s);
  for (std::size_t i = 1; i < count; ++i) {
    link.senders[i].is_there = true;
    link.run(300ms);
    CAPTURE(i, link.level.count);
    // What one that has just come brings is no sign that the link has more.
    CHECK(double(link.level.count) < 1.25 * link_rate / double(i + 1));
  }
  link.run(1s);
  const auto [jain, used] = link.judge(2s);
  CAPTURE(count, jain, used);
  CHECK(jain >= 0.98);
  CHECK(used >= 0.97);
}

/// What a machine that is busy with something else does to the counts.
constexpr double busy = 0.04;

TEST_CASE("counts that stand still now and then leave the shares even", "[control][rate]") {
  const std::size_t count = GENERATE(2U, 4U);
  double least_even = 1, least_used = 1;
  for (unsigned drawn = 1; drawn <= 20; ++drawn) {
    Link link{.senders = std::vector<Sender>(count), .stalls = busy, .random = std::mt19937{drawn}};
    for (std::size_t i = 1; i < count; ++i) link.senders[i].is_there = false;
    link.run(1s);
    for (Sender& s : link.senders) s.is_there = true;
    link.run(2s);
    const auto [jain, used] = link.judge(20s);
    least_even = std::min(least_even, jain);
    least_used = std::min(least_used, used);
  }
  CAPTURE(count, least_even, least_used);
  CHECK(least_even >= 0.998);
  CHECK(least_used >= 0.99);
}

TEST_CASE("a link that has become faster is full within two seconds", "[control][rate]") {
  Link link{.senders = std::vector<Sender>(3)};
  link.capacity = link_rate / 4;
  link.run(6s);
  link.capacity = link_rate;
  link.run(2s);
  const auto [jain, used] = link.judge(1s);
  CAPTURE(jain, used);
  CHECK(used >= 0.97);
  CHECK(jain >= 0.95);
}

TEST_CASE("what a session leaves at its end is the others' within a second", "[control][rate]") {
  Link link{.senders = std::vector<Sender>(4)};
  link.run(3s);
  link.senders[0].is_there = link.senders[2].is_there = false;
  link.run(500ms);
  const auto [jain, used] = link.judge(1s);
  CAPTURE(jain, used);
  CHECK(jain >= 0.98);
  CHECK(used >= 0.97);
}

TEST_CASE("a session that cannot use its share does not bound the others", "[control][rate]") {
  Link link{.senders = std::vector<Sender>(4)};
  for (std::size_t i = 1; i < 4; ++i) link.senders[i].demand = 1e6;
  link.run(3s);
  const auto [jain, used] = link.judge(4s);
  CAPTURE(used);
  CHECK(used >= 0.93);
}

TEST_CASE("sessions that can use their shares again get them back within 25 s", "[control][rate]") {
  const double stalls = GENERATE(0.0, busy);
  const unsigned drawn = GENERATE(range(1U, 6U));
  Link link{.senders = std::vector<Sender>(4), .stalls = stalls, .random = std::mt19937{drawn}};
  for (std::size_t i = 1; i < 4; ++i) link.senders[i].demand = 1e6;
  link.run(5s);
  for (Sender& s : link.senders) s.demand = link_rate;
  const auto [before, all] = link.judge(100ms);
  CHECK(before < 0.4);  // what they have holds itself
  link.run(25s);
  const auto [jain, used] = link.judge(2s);
  CAPTURE(stalls, drawn, before, jain, used);
  CHECK(jain >= 0.95);
  CHECK(used >= 0.97);
}

TEST_CASE("sessions that have brought little do not bound one that can bring much",
          "[control][rate]") {
  Link link{.senders = std::vector<Sender>(4)};
  for (Sender& s : link.senders) s.demand = 1e6;
  link.run(5s);
  link.senders[0].demand = link_rate;
  link.run(6s);
  const auto [jain, used] = link.judge(2s);
  CAPTURE(used);
  CHECK(used >= 0.9);
}

}  // namespace onehop::rate
