// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// InFlight.
#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <random>

#include "engine/protocol/in_flight.hpp"

using namespace onehop::protocol;

TEST_CASE("T2 InFlight agrees with a map, also across 2^32") {
  const auto seed = GENERATE(range(1U, 9U));
  const std::uint64_t first =
      GENERATE(std::uint64_t{1}, (std::uint64_t{1} << 32) - 500, (std::uint64_t{1} << 61) + 3);
  CAPTURE(seed, first);
  std::mt19937_64 random{seed};
  InFlight packets{64, first};
  std::map<std::uint64_t, PacketState> reference;
  std::uint64_t next = first;
  for (int step = 0; step < 3000; ++step) {
    if (!packets.is_full() && random() % 2 == 0) {
      const PacketState state = random() % 10 == 0 ? PacketState::skipped : PacketState::in_flight;
      REQUIRE(packets.next() == next);
      packets.push({}, state).length = static_cast<std::uint32_t>(next);
      reference[next++] = state;
    } else if (packets.span() > 0) {
      const std::uint64_t number = packets.oldest() + random() % packets.span();
      packets.at(number).state = PacketState::resolved;
      reference[number] = PacketState::resolved;
      packets.settle();
    }
    const auto oldest = std::find_if(reference.begin(), reference.end(),
                                     [](auto& p) { return p.second != PacketState::resolved; });
    REQUIRE(packets.oldest() == (oldest == reference.end() ? next : oldest->first));
    const auto settled = std::find_if(reference.begin(), reference.end(),
                                      [](auto& p) { return p.second == PacketState::in_flight; });
    REQUIRE(packets.settled() == (settled == reference.end() ? next : settled->first));
    REQUIRE(packets.is_full() == (packets.span() == 64));
    for (std::uint64_t n = packets.oldest(); n < next; ++n) {
      const bool is_same = packets.at(n).state == reference[n] &&
                           packets.at(n).length == static_cast<std::uint32_t>(n);
      if (!is_same) FAIL("packet " << n << " differs");
    }
    reference.erase(reference.begin(), reference.lower_bound(packets.oldest()));
  }
  REQUIRE(next > first + 600);
}
