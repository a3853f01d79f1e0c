// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/rate/rate_thread.hpp"

#include <condition_variable>
#include <mutex>
#include <stop_token>

#include "engine/base/system/cpu.hpp"
#include "engine/base/system/thread.hpp"
#include "engine/base/time.hpp"

namespace onehop::rate {

namespace {

void run_loop(RateLoop& loop, const std::stop_token& stop) {
  name_this_thread("onehop-rate");
  use_short_slice();
  std::mutex mutex;
  std::condition_variable_any stopped;
  std::unique_lock lock{mutex};
  // Slack of 50 us is 10 % of the fastest tick and costs nothing at 4 ms: it is left as it is, for
  // shared wake-ups.
  for (;;) {
    const bool is_last = stop.stop_requested();
    const Instant now = monotonic_now();
    loop.tick(now, process_cpu_time);
    if (is_last) return loop.publish_state(now);
    (void)stopped.wait_for(lock, stop, loop.next_tick_in(), [] { return false; });
  }
}

}  // namespace

Result<std::jthread> start_rate_thread(RateLoop& loop) {
  return start_thread<std::jthread>("control",
                                    [&loop](const std::stop_token& stop) { run_loop(loop, stop); });
}

}  // namespace onehop::rate
