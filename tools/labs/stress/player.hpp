// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Player: plays one schedule in virtual time, watches it, and counts.
//
//   Schedule ─▶ World (loops, transfer core, rate loop, law, rings) ─▶ faults at their time
//                  │ each turn, each frame                              └─▶ the rest undisturbed
//                  └─▶ SendWatch, ReceiveWatch, LawWatch                    └─▶ whole?
//                        └─▶ the first thing broken
//
// One thread; nothing is kept between schedules but memory.
#pragma once

#include <cstdio>
#include <string>

#include "tools/labs/stress/broken.hpp"
#include "tools/labs/stress/schedule.hpp"
#include "tools/labs/stress/tally.hpp"

namespace onehop::stress {

/// play_schedule adds to `tally` and says what broke, if anything. `series`, where given, gets a
/// row per control tick.
[[nodiscard]] Broken play_schedule(const Schedule& schedule, Tally& tally, std::FILE* series);

/// series_header is the first row.
[[nodiscard]] std::string series_header();

}  // namespace onehop::stress
