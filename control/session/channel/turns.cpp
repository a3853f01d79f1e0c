// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/session/channel/turns.hpp"

#include "control/session/progress_floor.hpp"
#include "engine/base/time.hpp"

namespace onehop::session {

namespace {

constexpr Nanos progress_interval = 1s;  // a tenth of the window that is judged

}  // namespace

Task<void> watch_progress(std::shared_ptr<RecvSession> session, const Turns& turns,
                          const RecvOptions& options) {
  const SessionLimits& limits = options.limits;
  ProgressFloor floor{limits.floor_bytes, limits.floor_window, monotonic_now()};
  while (turns.is_running(session)) {
    co_await wait_for(session->progress_timer(),
                      std::min(progress_interval, limits.floor_window / 4));
    if (!turns.is_running(session)) co_return;
    // While the host decides, another thread of it may be at work on what arrival() reads.
    const Arrival arrival =
        session->machine().is_deciding() ? Arrival{.is_up_to_us = true} : session->host().arrival();
    if (arrival.is_up_to_us) floor.excuse(monotonic_now());
    floor.note(arrival.bytes + session->machine().bytes_confirmed(), monotonic_now());
    // No sender is served after it
    const bool is_last = options.is_once && session->machine().has_offer();
    if (turns.waiting.empty() || is_last || !floor.is_below(monotonic_now())) continue;
    session->end_with(
        {ExitCode::timed_out, "receive files while another sender waits",
         "less than " + std::to_string(limits.floor_bytes / 1024) + " KiB came in " +
             std::to_string(limits.floor_window / 1s) + " s",
         "What arrived was kept; look at the link, then send the same again to go on"});
    co_return;
  }
}

}  // namespace onehop::session
