// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// StressFile: a schedule that somebody wrote (configs/stress/NAME.toml).
//
//   description = "..."               law = "safe-range"  qcut = true  repair = "lazy"
//   rate = "50Mbit"  delay_us = 200   queue_bytes = 65536  file_bytes = 700000  frame_bytes = 1472
//   ports = "rings" | "virtual"       tx_frames = 64  rx_frames = 128  blocks = 8  span_ms = 100
//   drop_tail = true                  facts = true
//
//   [[event]]   at_ms = 10  for_ms = 5  fault = "receiver-stall"  every_ms = 20 (until the end)
//   [random]    events = 200  faults = ["drain-down", ...]        drawn beside them, from the seed
//
// Strict: an unknown key, a wrong type and a value out of bounds are errors that name file, line
// and what would be allowed.
#pragma once

#include <string>

#include "engine/base/result.hpp"
#include "tools/labs/stress/schedule.hpp"

namespace onehop::stress {

struct StressFile {
  std::string description;
  Schedule schedule;   ///< without what is drawn
  DrawOptions random;  ///< events 0: none
};

[[nodiscard]] Result<StressFile> parse_stress_file(const std::string& text,
                                                   const std::string& path);
/// load_stress_file reads it from disk. Syscalls: open, read.
[[nodiscard]] Result<StressFile> load_stress_file(const std::string& path);

/// schedule_from: number `index` of a seed, as the file has it.
[[nodiscard]] Schedule schedule_from(const StressFile& file, std::uint64_t seed,
                                     std::uint64_t index);

}  // namespace onehop::stress
