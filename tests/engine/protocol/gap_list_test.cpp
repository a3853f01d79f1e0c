// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// GapList against a std::set of the numbers that arrived.
#include <algorithm>
#include <catch2/catch.hpp>
#include <random>
#include <set>

#include "engine/protocol/gap_list.hpp"
#include "engine/wire/frame.hpp"

using namespace onehop;
using protocol::GapList;

namespace {

std::set<std::uint64_t> missing_of(const GapList& list) {
  std::set<std::uint64_t> missing;
  std::uint64_t end = 0;
  for (const GapList::Gap& gap : list.gaps()) {
    // Ascending, disjoint, not adjacent. (One assertion for all: they are many.)
    if (gap.range.first > gap.range.last || (end != 0 && gap.range.first <= end))
      FAIL("gaps out of order");
    end = gap.range.last + 1;
    for (std::uint64_t n = gap.range.first; n <= gap.range.last; ++n) missing.insert(n);
  }
  return missing;
}

struct Reference {
  std::set<std::uint64_t> arrived;
  std::uint64_t settled = 0, largest = 0;
  bool has_any = false;
  [[nodiscard]] std::set<std::uint64_t> missing() const {
    std::set<std::uint64_t> numbers;
    if (has_any)
      for (std::uint64_t n = settled; n <= largest; ++n)
        if (!arrived.contains(n)) numbers.insert(n);
    return numbers;
  }
};

}  // namespace

TEST_CASE("T2 GapList agrees with a set of numbers, also across 2^32") {
  const auto seed = GENERATE(range(1U, 13U));
  const std::uint64_t start =
      GENERATE(std::uint64_t{0}, (std::uint64_t{1} << 32) - 200, (wire::packet_number_max - 3000));
  CAPTURE(seed, start);
  std::mt19937_64 random{seed};
  GapList list{4096};
  list.settle(start);
  Reference reference;
  reference.settled = start;
  std::uint64_t next = start;
  for (int step = 0; step < 1200; ++step) {
    // A window of 40 numbers around the newest, so that late, repeated and settled numbers all
    // occur.
    next += random() % 3;
    const std::uint64_t number = next - std::min<std::uint64_t>(random() % 40, next - start);
    const bool is_new = number >= reference.settled && !reference.arrived.contains(number);
    REQUIRE(list.on_number(Instant{Nanos{step}}, number) == is_new);
    if (number >= reference.settled) {
      reference.arrived.insert(number);
      reference.largest = std::max(reference.has_any ? reference.largest : 0, number);
      reference.has_any = true;
    }
    if (random() % 8 == 0 && reference.has_any) {
      const std::uint64_t settled =
          reference.largest - std::min<std::uint64_t>(random() % 30, reference.largest);
      list.settle(settled);
      reference.settled = std::max(reference.settled, settled);
    }
    REQUIRE(missing_of(list) == reference.missing());
    REQUIRE(list.settled() == reference.settled);
    if (reference.has_any) REQUIRE(list.largest() == reference.largest);
  }
}

TEST_CASE("GapList that overflows reports too much as missing, never too little") {
  const auto seed = GENERATE(range(1U, 9U));
  CAPTURE(seed);
  std::mt19937_64 random{seed};
  GapList list{8};
  Reference reference;
  bool has_overflown = false;
  for (std::uint64_t base = 0; base < 3000; base += 3) {
    const std::uint64_t number = base > 60 && random() % 4 == 0 ? base - random() % 60 : base;
    (void)list.on_number(Instant{}, number);
    if (number >= reference.settled) {
      reference.arrived.insert(number);
      reference.largest = std::max(reference.largest, number);
      reference.has_any = true;
    }
    if (random() % 16 == 0) {
      reference.settled = std::max<std::uint64_t>(
          reference.settled, reference.largest > 50 ? reference.largest - 50 : 0);
      list.settle(reference.settled);
    }
    REQUIRE(list.gaps().size() <= 8);
    const auto missing = missing_of(list);
    const auto truly = reference.missing();
    REQUIRE(std::includes(missing.begin(), missing.end(), truly.begin(), truly.end()));
    has_overflown = has_overflown || missing.size() > truly.size();
  }
  REQUIRE(has_overflown);
}

TEST_CASE("GapList keeps when a gap opened, and settle never goes back") {
  GapList list{16};
  (void)list.on_number(Instant{1ms}, 0);
  (void)list.on_number(Instant{2ms}, 10);
  (void)list.on_number(Instant{3ms}, 5);
  REQUIRE(list.gaps().size() == 2);
  CHECK(list.gaps()[1].seen_at == Instant{2ms});
  list.settle(8);
  list.settle(3);
  CHECK(list.settled() == 8);
  REQUIRE(list.gaps().size() == 1);
  CHECK(list.gaps()[0].range.first == 8);
}

// Bounds: exact; 16 gaps that end unfilled leave (15/16)^16 = 0.36 of it.
TEST_CASE("GapList knows how late numbers came, and forgets it with the gaps that nothing fills") {
  GapList list{64};
  for (std::uint64_t i = 0; i < 20; ++i) (void)list.on_number(Instant{1ms * i}, 2 * i);
  CHECK(list.late_by() == 0ns);
  CHECK(list.older_than(Instant{19ms}, 0ns) == 19);
  CHECK(list.older_than(Instant{19ms}, 10ms) == 9);
  (void)list.on_number(Instant{19ms}, 21);  // seen to be missing at 11 ms
  CHECK(list.late_by() == 8ms);
  (void)list.on_number(Instant{19ms}, 37);  // 0 ms ago: less
  CHECK(list.late_by() == 8ms);
  list.settle(20);
  CHECK(list.late_by() < 5ms);
  list.settle(34);
  CHECK(list.late_by() > 2800us);
  CHECK(list.late_by() < 3ms);
}
