// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// RangeSet against one bool per byte.
#include <algorithm>
#include <catch2/catch.hpp>
#include <random>
#include <vector>

#include "engine/transfer/range_set.hpp"

using onehop::transfer::RangeSet;
using Relation = RangeSet::Relation;

namespace {

Relation relation_in(const std::vector<bool>& bytes, std::uint32_t first, std::uint32_t end) {
  std::uint32_t present = 0;
  for (std::uint32_t i = first; i < end; ++i) present += bytes[i] ? 1U : 0U;
  if (present == 0) return Relation::absent;
  return present == end - first ? Relation::present : Relation::partial;
}

std::size_t ranges_in(const std::vector<bool>& bytes) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i)
    if (bytes[i] && (i == 0 || !bytes[i - 1])) ++count;
  return count;
}

}  // namespace

TEST_CASE("RangeSet agrees with one bool per byte") {
  constexpr std::uint32_t size = 600;  // up to 300 ranges: the limit of 128 is met too
  const auto seed = GENERATE(range(1U, 21U));
  CAPTURE(seed);
  std::mt19937 random{seed};
  const std::uint32_t length_max = 1 + seed % 7;
  RangeSet set;
  std::vector<bool> bytes(size);
  for (int step = 0; step < 4000; ++step) {
    const std::uint32_t first = static_cast<std::uint32_t>(random() % size);
    const std::uint32_t end = std::min(size, first + 1 + static_cast<std::uint32_t>(random() % length_max));
    const Relation relation = set.relation(first, end);
    REQUIRE(relation == relation_in(bytes, first, end));
    if (relation == Relation::absent && set.can_add(first, end)) {
      set.add(first, end);
      for (std::uint32_t i = first; i < end; ++i) bytes[i] = true;
    }
    REQUIRE(set.size() == ranges_in(bytes));
    REQUIRE(set.size() <= RangeSet::ranges_max);
  }
  for (int round = 0; round < 2; ++round)  // what is missing is sent again, until all is there
    for (std::uint32_t i = 0; i < size; ++i)
      if (set.relation(i, i + 1) == Relation::absent && set.can_add(i, i + 1)) set.add(i, i + 1);
  REQUIRE(set.relation(0, size) == Relation::present);
  REQUIRE(set.size() == 1);
  set.clear();
  REQUIRE(set.relation(0, size) == Relation::absent);
}

TEST_CASE("RangeSet that is full still takes what joins a range") {
  RangeSet set;
  constexpr std::uint32_t frame = 100;
  for (std::uint32_t i = 0; i < RangeSet::ranges_max; ++i) set.add(2 * i * frame, (2 * i + 1) * frame);
  REQUIRE(set.size() == RangeSet::ranges_max);
  const std::uint32_t past_the_end = 2 * RangeSet::ranges_max * frame;
  CHECK_FALSE(set.can_add(past_the_end, past_the_end + frame));  // it would be a range of its own
  CHECK(set.can_add(frame, frame + 1));
  CHECK(set.can_add(2 * frame - 1, 2 * frame));
  REQUIRE(set.can_add(frame, 2 * frame));  // else a block with a gap in its middle could never be completed
  set.add(frame, 2 * frame);
  CHECK(set.size() == RangeSet::ranges_max - 1);
  CHECK(set.relation(0, 3 * frame) == Relation::present);
}

TEST_CASE("RangeSet treats an empty range as absent") {
  RangeSet set;
  set.add(5, 5);
  CHECK(set.size() == 0);
  set.add(0, 10);
  CHECK(set.relation(5, 5) == Relation::absent);
}
