// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// What whole transfers in virtual time share.
#pragma once

#include <catch2/catch.hpp>
#include <cstdlib>
#include <string>
#include <vector>

#include "tools/labs/world/world.hpp"

namespace onehop::scenario {

/// seeds: ONEHOP_SEEDS multiplies them (default 1), ONEHOP_SEED is one alone.
inline std::vector<std::uint64_t> seeds(std::uint64_t count) {
  if (const char* one = std::getenv("ONEHOP_SEED")) return {std::stoull(one)};
  const char* factor = std::getenv("ONEHOP_SEEDS");
  if (factor != nullptr) count *= std::stoull(factor);
  std::vector<std::uint64_t> list;
  for (std::uint64_t i = 1; i <= count; ++i) list.push_back(i);
  return list;
}

inline WorldConfig world_of(std::uint64_t seed, std::uint64_t bytes, BytesPerSecond rate) {
  WorldConfig config;
  config.seed = seed;
  config.file_sizes = {bytes};
  config.forward = {
      .rate = rate, .queue_capacity = Bytes{1'500'000}, .delay = 200us, .ring_frames = 4096};
  config.backward = config.forward;
  return config;
}

inline void check_whole(World& world) {
  CAPTURE(static_cast<int>(world.outcome().failure), world.outcome().bytes_checked,
          world.sender().totals().packets_sent, world.sender().totals().packets_lost,
          world.receiver().totals().lists);
  REQUIRE_FALSE(world.outcome().has_failed);
  REQUIRE(world.outcome().is_finished);
  REQUIRE(world.outcome().bytes_wrong == 0);
}

}  // namespace onehop::scenario
