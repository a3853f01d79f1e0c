// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// The small nouns of engine/protocol against plain models: a bitmap, a set, a count.
#include <bitset>
#include <catch2/catch.hpp>
#include <random>
#include <set>

#include "engine/protocol/gap_list.hpp"
#include "engine/protocol/in_flight.hpp"
#include "engine/protocol/pacer.hpp"
#include "engine/protocol/ping_schedule.hpp"
#include "engine/protocol/range_set.hpp"
#include "engine/protocol/tail_probe.hpp"

namespace onehop::protocol {
namespace {

constexpr Instant at(Nanos t) { return Instant{t}; }

}  // namespace

TEST_CASE("a RangeSet agrees with a bitmap", "[transfer][range_set]") {
  constexpr std::uint32_t bytes = 600;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 draw{seed};
    BlockRanges set;
    std::bitset<bytes> present;
    for (int i = 0; i < 2000; ++i) {
      const auto first = static_cast<std::uint32_t>(draw() % bytes);
      const auto end =
          std::min<std::uint32_t>(bytes, first + 1 + static_cast<std::uint32_t>(draw() % 4));
      std::size_t held = 0;
      for (std::uint32_t b = first; b < end; ++b) held += present[b];
      const auto expected = held == 0             ? BlockRanges::Relation::absent
                            : held == end - first ? BlockRanges::Relation::present
                                                  : BlockRanges::Relation::partial;
      REQUIRE(set.relation(first, end) == expected);
      if (expected != BlockRanges::Relation::absent) continue;
      if (!set.can_add(first, end)) {
        REQUIRE(set.size() == BlockRanges::ranges_max);
        continue;
      }
      set.add(first, end);
      for (std::uint32_t b = first; b < end; ++b) present.set(b);
    }
    std::size_t ranges = 0;
    for (std::uint32_t b = 0; b < bytes; ++b) ranges += present[b] && (b == 0 || !present[b - 1]);
    REQUIRE(set.size() == ranges);
    set.clear();
    REQUIRE(set.relation(0, bytes) == BlockRanges::Relation::absent);
  }
}

TEST_CASE("a full RangeSet still takes what touches a neighbour", "[transfer][range_set]") {
  BlockRanges set;
  for (std::uint32_t i = 0; i < BlockRanges::ranges_max; ++i) set.add(4 * i + 2, 4 * i + 4);
  REQUIRE(set.size() == BlockRanges::ranges_max);
  constexpr std::uint32_t last_end = 4 * BlockRanges::ranges_max;
  CHECK_FALSE(set.can_add(0, 1));  // stands alone
  CHECK_FALSE(set.can_add(last_end + 1, last_end + 2));
  CHECK(set.can_add(last_end, last_end + 1));  // behind the last
  CHECK(set.can_add(1, 2));                    // before the first
  REQUIRE(set.can_add(4, 5));                  // behind the first
  set.add(4, 5);
  CHECK(set.size() == BlockRanges::ranges_max);
  REQUIRE(set.can_add(5, 6));  // closes the hole
  set.add(5, 6);
  CHECK(set.size() == BlockRanges::ranges_max - 1);
  CHECK(set.relation(2, 8) == BlockRanges::Relation::present);
}

TEST_CASE("a GapList agrees with a set of numbers", "[transfer][gap_list]") {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 draw{seed};
    const std::uint64_t first = seed % 2 == 0 ? 1 : (std::uint64_t{1} << 63) - 300;  // T2
    GapList list{4096};
    std::set<std::uint64_t> received;
    std::uint64_t settled = first, next = first;
    list.settle(first);
    for (int i = 0; i < 2000; ++i) {
      const std::uint64_t number =
          draw() % 3 == 0 ? settled + draw() % (next - settled + 4) : next + draw() % 4;
      const bool is_new = number >= settled && received.insert(number).second;
      REQUIRE(list.on_number(at(Nanos{i}), number) == is_new);
      next = std::max(next, number + 1);
      if (draw() % 16 == 0) {
        settled = std::max(settled, next - std::min<std::uint64_t>(next - settled, draw() % 64));
        list.settle(settled);
      }
      std::set<std::uint64_t> missing;
      std::uint64_t before = 0;
      for (const GapList::Gap& gap : list.gaps()) {
        REQUIRE(gap.range.first <= gap.range.last);
        REQUIRE((before == 0 || gap.range.first > before + 1));  // ascending, not adjacent
        before = gap.range.last;
        for (std::uint64_t n = gap.range.first; n <= gap.range.last; ++n) missing.insert(n);
      }
      for (std::uint64_t n = settled; n < next; ++n)
        REQUIRE(missing.count(n) == 1 - received.count(n));
      REQUIRE(missing.size() <= next - settled);
    }
  }
}

TEST_CASE("N5 a full GapList reports more as missing, never less, and does not grow",
          "[transfer][gap_list]") {
  GapList list{8};
  list.settle(1);
  for (std::uint64_t n = 2; n <= 200; n += 2) REQUIRE(list.on_number(at(0ns), n));
  CHECK(list.gaps().size() == 8);
  for (std::uint64_t n = 1; n < 200; n += 2) {
    bool is_listed = false;
    for (const auto& gap : list.gaps()) is_listed |= gap.range.first <= n && n <= gap.range.last;
    CHECK(is_listed);
  }
  CHECK(list.gaps().back().range.last == 199);
  list.settle(201);
  CHECK(list.gaps().empty());
  CHECK(list.largest() == 200);
}

TEST_CASE("N5 a jump to the largest number is one gap and no loop", "[transfer][gap_list]") {
  GapList list{16};
  list.settle(5);
  REQUIRE(list.on_number(at(0ns), 5));
  REQUIRE(list.on_number(at(0ns), ~std::uint64_t{0} - 1));
  REQUIRE(list.gaps().size() == 1);
  CHECK(list.gaps()[0].range.first == 6);
  CHECK(list.gaps()[0].range.last == ~std::uint64_t{0} - 2);
}

TEST_CASE("settled passes what was resolved or skipped, oldest only what was resolved",
          "[transfer][in_flight]") {
  InFlight ring{64, 100};
  (void)ring.push({}, PacketState::in_flight);  // 100
  (void)ring.push({}, PacketState::skipped);    // 101
  (void)ring.push({}, PacketState::in_flight);  // 102
  CHECK(ring.settled() == 100);
  ring.at(100).state = PacketState::resolved;
  ring.settle();
  CHECK(ring.oldest() == 101);
  CHECK(ring.settled() == 102);
  CHECK(ring.span() == 2);
  ring.at(101).state = ring.at(102).state = PacketState::resolved;
  ring.settle();
  CHECK(ring.oldest() == 103);
  CHECK(ring.settled() == 103);
  for (int i = 0; i < 64; ++i) (void)ring.push({}, PacketState::in_flight);
  CHECK(ring.is_full());
}

// Bounds: exact to the byte, at any turn length; a late wake-up finds the whole depth and no more.
TEST_CASE("a pacer grants its rate exactly, however short the turns", "[transfer][pacer]") {
  const auto turn = GENERATE(1us, 20us, 333us);
  const BytesPerSecond rate = mbit_per_s(1);
  Pacer pacer;
  pacer.set(rate, {5000}, at(0ns));
  pacer.spend({5000});
  Bytes granted{};
  Nanos t{0};
  while (t < 1s) {
    t += turn;
    const Bytes now = pacer.allowance(at(t));
    granted += now;
    pacer.spend(now);
  }
  CHECK(granted == rate * t);
}

TEST_CASE("a pacer refills its depth in one burst after a late wake-up", "[transfer][pacer]") {
  Pacer pacer;
  pacer.set(mbit_per_s(800), {500'000}, at(0ns));
  pacer.spend({500'000});
  CHECK(pacer.allowance(at(1ms)) == Bytes{100'000});
  CHECK(pacer.allowance(at(10s)) == Bytes{500'000});
  CHECK(pacer.allowance(at(5s)) == Bytes{500'000});  // T1: back in time gives and takes nothing
  pacer.set(mbit_per_s(800), {200'000}, at(10s));
  CHECK(pacer.allowance(at(10s)) == Bytes{200'000});
  pacer.spend({300'000});
  CHECK(pacer.allowance(at(10s)) == Bytes{-100'000});
  const Instant ready = pacer.ready_at({1500});
  CHECK(pacer.allowance(ready - 1ns) < Bytes{1500});
  CHECK(pacer.allowance(ready) >= Bytes{1500});
  CHECK(pacer.ready_at({200'001}) == Instant::max());
  pacer.set({0}, {200'000}, ready);
  CHECK(pacer.ready_at({200'000}) == Instant::max());
}

TEST_CASE("N5 a pacer at the largest rate and span does not overflow", "[transfer][pacer]") {
  Pacer pacer;
  pacer.set({std::int64_t{1} << 40}, {std::int64_t{1} << 40}, at(0ns));
  pacer.spend({std::int64_t{1} << 41});
  CHECK(pacer.allowance(Instant::max()) == Bytes{std::int64_t{1} << 40});
}

//= RFC 6298 §2 type=test
TEST_CASE("srtt moves by an eighth, and absurd samples are refused", "[transfer][rtt]") {
  PingSchedule pings{10ms, 100ms};
  const auto srtt_after = [&](Nanos sample, Nanos hold = 0ns) {
    pings.send_extra(at(1min));
    pings.on_pong(at(1min + sample + hold),
                  {.id = pings.id(), .hold_ns = static_cast<std::uint64_t>(hold.count())});
    return pings.srtt();
  };
  CHECK(srtt_after(0ns) == 0ns);
  CHECK(srtt_after(-1ms, 2ms) == 0ns);
  CHECK(srtt_after(11s) == 0ns);
  CHECK(srtt_after(8ms) == 8ms);
  CHECK(srtt_after(16ms, 1ms) == 9ms);
  CHECK(srtt_after(0ns) == 9ms);
  CHECK(pings.rtt() == 16ms);
}

// Goal:   a path longer than the PING period gives samples: several pings are always under way on
// it.
TEST_CASE("srtt is sampled on a path longer than the ping period", "[transfer][ping]") {
  const auto delay = GENERATE(3ms, 45ms, 250ms, 700ms);
  PingSchedule pings{10ms, 100ms};
  pings.start();
  std::vector<std::pair<Instant, std::uint64_t>> under_way;
  std::size_t head = 0;
  for (Nanos t{1s}; t < 6s; t += 1ms) {
    if (pings.is_due(at(t)))
      (void)pings.send(at(t)), under_way.emplace_back(at(t + delay), pings.id());
    while (head < under_way.size() && under_way[head].first <= at(t))
      pings.on_pong(at(t), {.id = under_way[head++].second, .hold_ns = 1'000'000});
  }
  CHECK(pings.srtt() == delay - 1ms);
}

TEST_CASE("N4 N5 a pong to a ping that was never sent, or a second one, changes nothing",
          "[transfer][ping]") {
  PingSchedule pings{10ms, 100ms};
  pings.prove(1400);
  REQUIRE(pings.is_due(at(0ns)));
  CHECK(pings.send(at(0ns)) == 1400);
  pings.on_pong(at(5ms), {.id = 2});
  pings.on_pong(at(5ms), {.id = 0});
  CHECK_FALSE(pings.is_proven());
  pings.on_pong(at(5ms), {.id = 1, .received_bytes = ~std::uint64_t{0}});
  CHECK(pings.is_proven());
  CHECK(pings.proven_frame_bytes() == 1400 + wire::overhead_bytes);
  CHECK(pings.srtt() == 5ms);
  pings.on_pong(at(500ms), {.id = 1});
  CHECK(pings.srtt() == 5ms);
  REQUIRE(pings.is_due(at(100ms)));
  CHECK(pings.send(at(100ms)) == wire::ping_body_bytes_min);  // proven: small ones
  pings.on_pong(at(101ms), {.id = 2, .hold_ns = ~std::uint64_t{0}});
  CHECK(pings.srtt() == 5ms);
}

// Bounds: every 10 ms at first, at most one per second when nothing answers.
TEST_CASE("N11 unanswered pings back off to one per second", "[transfer][ping]") {
  PingSchedule pings{10ms, 100ms};
  pings.start();
  std::vector<Nanos> sent;
  for (Nanos t{0}; t < 30s; t += 1ms)
    if (pings.is_due(at(t))) (void)pings.send(at(t)), sent.push_back(t);
  CHECK(sent.size() <= 45);
  CHECK(sent[1] - sent[0] == 10ms);
  CHECK(sent.back() - sent[sent.size() - 2] == 1s);
}

TEST_CASE("N11 a tail probe waits two srtt, backs off, and never fires over a standing queue",
          "[transfer][tail]") {
  TailProbe probe;
  probe.on_sent(at(1s));
  probe.on_news(at(1s));
  CHECK_FALSE(probe.tick(at(1s), true, {0}, 20ms));
  CHECK(probe.deadline() == at(1040ms));
  CHECK_FALSE(probe.tick(at(1039ms), true, {0}, 20ms));
  probe.on_news(at(1039ms));
  CHECK_FALSE(probe.tick(at(1078ms), true, {0}, 20ms));
  CHECK(probe.tick(at(1079ms), true, {0}, 20ms));
  CHECK_FALSE(probe.tick(at(1158ms), true, {0}, 20ms));
  CHECK(probe.tick(at(1159ms), true, {0}, 20ms));  // 80 ms later
  // A queue that stands for seconds is a blackout of the link below us and no loss.
  for (Nanos t{1160ms}; t < 5s; t += 10ms) CHECK_FALSE(probe.tick(at(t), true, {1}, 20ms));
  CHECK(probe.deadline() == Instant::max());
  CHECK_FALSE(probe.tick(at(5s), true, {0}, 20ms));
  CHECK_FALSE(probe.tick(at(5020ms), true, {0}, 20ms));  // at least a round trip after it is empty
  Nanos fired{0}, gap{0};
  for (Nanos t{5020ms}; t < 30s; t += 1ms)
    if (probe.tick(at(t), true, {0}, 20ms)) gap = t - fired, fired = t;
  CHECK(gap == 1s);
  CHECK_FALSE(probe.tick(at(40s), false, {0}, 20ms));  // not armed
}

TEST_CASE("before the first srtt a tail probe waits 100 ms, and never less than 10 ms",
          "[transfer][tail]") {
  TailProbe slow, fast;
  slow.on_sent(at(0ns));
  fast.on_sent(at(0ns));
  CHECK_FALSE(slow.tick(at(0ns), true, {0}, 0ns));
  CHECK(slow.deadline() == at(100ms));
  CHECK_FALSE(fast.tick(at(0ns), true, {0}, 100us));
  CHECK(fast.deadline() == at(10ms));
}

}  // namespace onehop::protocol
