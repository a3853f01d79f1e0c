// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// OutageWatch: whether the current reports cover an outage. What was sent while no report came is
// lost because the link was away, and says nothing of the rate.
//
//   report ─▶ silence > silence_limit ─▶ report ─▶ ... ─▶ reports cover all that was sent ─▶ over
//             └────────────────────────── outage ───────────────────────────────────────┘
//
// Pure; called once per step.
#pragma once

#include <algorithm>
#include <cstdint>

#include "engine/base/path.hpp"
#include "engine/base/units.hpp"

namespace onehop::law {

/// silence_limit: a peer whose last report is older is silent, and the path may be gone
/// (algorithm's edge case d). Shorter: a late report is an outage. `feedback_interval` is as
/// granted; 0: the default.
[[nodiscard]] constexpr Nanos silence_limit(Nanos srtt, Nanos feedback_interval) noexcept {
  // Ours. Low: a core that was away for long is an outage. High: what is sent into one counts as
  // loss.
  constexpr Nanos least{200ms};
  return std::max({srtt * 4, least, feedback_interval * 3});
}

class OutageWatch {
 public:
  [[nodiscard]] bool step(Instant now, const PathReport& path, Nanos feedback_interval) noexcept {
    const bool was_out = is_out_;
    const bool is_silent = path.feedback_at != Instant{} &&
                           now - path.feedback_at > silence_limit(path.srtt, feedback_interval);
    if (is_silent) {
      is_out_ = true;
      sent_into_it_ = path.packets_sent_total;
    } else if (path.packets_reported_total >= sent_into_it_) {
      is_out_ = false;  // from the next step on: the losses in this report are the outage's
    }
    return is_silent || was_out;
  }

 private:
  bool is_out_ = false;
  std::uint64_t sent_into_it_ = 0;
};

}  // namespace onehop::law
