// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// LeftOutFailures: entries that a sender left out although they were to be sent. They make a run
// that otherwise succeeded a failure.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "control/session/session.hpp"
#include "engine/base/display_name.hpp"
#include "engine/list/tree_scan.hpp"

namespace onehop::transfer {

class LeftOutFailures {
 public:
  void note(std::span<const list::ScanProblem> problems) {
    for (const list::ScanProblem& problem : problems) {
      if (!list::is_failure(problem) || count_++ > 0) continue;
      first_ = {ExitCode::partly_done, "send " + display_name(problem.path), problem.cause,
                "All else was sent. --report FILE lists what was left out", 0};
    }
  }
  void end_with(session::SessionEnd& end) const {
    if (end.code != ExitCode::done || count_ == 0) return;
    end.code = ExitCode::partly_done;
    end.error = first_;
    if (count_ > 1)
      end.error.cause += " (and " + std::to_string(count_ - 1) + " more were left out)";
  }

 private:
  std::uint64_t count_ = 0;
  Error first_;
};

}  // namespace onehop::transfer
