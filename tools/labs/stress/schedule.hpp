// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Schedule: what one hostile transfer is like: its world, and its faults in order of time. Values
// only.
//
// draw_schedule makes schedule number `index` of a seed, the same one for ever: a failure is named
// by the two numbers.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/units.hpp"
#include "tools/labs/stress/fault.hpp"
#include "tools/labs/world/world.hpp"

namespace onehop::stress {

struct FaultEvent {
  Nanos at{0};
  Nanos span{0};
  Fault fault = Fault::jitter;
};

struct Schedule {
  std::uint64_t seed = 1;
  std::uint64_t index = 0;
  scenario::WorldConfig world;
  FaultSet kinds = 0;              ///< what occurs in it
  std::vector<FaultEvent> events;  ///< in order of time
  Nanos span{0};                   ///< of the hostile part; what follows is undisturbed
  Nanos limit{0};                  ///< the transfer has ended by then
  bool has_facts = false;          ///< the link tells of itself from the start
};

/// The longest that a transfer may take when nothing disturbs it any more: what is probed for backs
/// off to once a second, and a ring of a few frames takes many rounds.
inline constexpr Nanos limit_after = 60s;

struct DrawOptions {
  FaultSet kinds = every_fault;  ///< to draw from
  std::size_t events = 200;
  Nanos span{100ms};
  std::string law;  ///< empty: drawn
};

[[nodiscard]] Schedule draw_schedule(std::uint64_t seed, std::uint64_t index,
                                     const DrawOptions& options);

/// apply_world_faults gives a world that somebody described what its kinds of fault ask of it:
/// rings, and small ones.
void apply_world_faults(Schedule& schedule);

/// laws to draw from; "+qcut" stands for the gate around one.
inline constexpr std::array<std::string_view, 6> law_names{"auto",        "safe-range", "wdtcp",
                                                           "wdtcp:paper", "cupid",      "fixed"};

}  // namespace onehop::stress
