// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Campaign: many schedules over several processes. A process and not a thread each, because an
// internal check ends the program: its parent then still knows which schedule it was.
//
//   parent ── fork ──▶ worker w plays first + w, first + w + jobs, ...
//                      and counts into its own Tally in shared memory
//
// The schedule that is reported is the first broken one whatever the number of workers: nobody
// stops before all lower ones are played.
#pragma once

#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "engine/base/result.hpp"
#include "tools/labs/stress/tally.hpp"

namespace onehop::stress {

struct CampaignOptions {
  std::uint64_t first = 0, count = 0;
  unsigned jobs = 1;
  std::FILE* series = nullptr;                         ///< rows of each schedule; then one worker
  std::function<Schedule(std::uint64_t)> schedule_of;  ///< by index
  std::function<void(std::uint64_t)> on_progress;      ///< played so far; about once a second
};

struct CampaignFailure {
  std::uint64_t index = 0;
  Nanos at{0};  ///< virtual time
  std::string what;
};

struct CampaignResult {
  Tally tally;
  std::optional<CampaignFailure> failure;
  double cpu_seconds = 0;  ///< of the workers, user and system
};

/// run_campaign blocks until all are played or one is broken. Syscalls: mmap, fork, waitpid,
/// getrusage.
[[nodiscard]] Result<std::unique_ptr<CampaignResult>> run_campaign(const CampaignOptions& options);

}  // namespace onehop::stress
