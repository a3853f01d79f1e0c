// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/rate/rate_thread.hpp"

#include <poll.h>

#include <utility>

#include "engine/base/cpu.hpp"
#include "engine/base/thread.hpp"
#include "engine/base/time.hpp"

namespace onehop::rate {

Result<void> RateThread::start() {
  ONEHOP_TRY(wake, WakeFd::open());
  wake_ = std::move(wake);
  is_stopping_.store(false, std::memory_order_release);
  auto started = start_thread("control", [this] { run_loop(); });
  ONEHOP_TRYV(started);
  thread_ = std::move(started).value();
  return success();
}

void RateThread::stop() noexcept {
  if (!thread_.joinable()) return;
  is_stopping_.store(true, std::memory_order_release);
  wake();
  thread_.join();
}

void RateThread::run_loop() noexcept {
  name_this_thread("onehop-rate");
  use_short_slice();
  // Slack of 50 us is 10 % of the fastest tick and costs nothing at 4 ms: it is left as it is, for
  // shared wake-ups.
  for (;;) {
    const bool is_last = is_stopping_.load(std::memory_order_acquire);
    const Instant now = monotonic_now();
    if (loop_.has_trace()) loop_.set_cpu_total(process_cpu_time());
    loop_.tick(now);
    if (is_last) {
      loop_.publish_state(now);
      return;
    }
    const timespec timeout = timespec_of(loop_.next_tick_in());
    pollfd entry{.fd = wake_.get(), .events = POLLIN, .revents = 0};
    if (::ppoll(&entry, 1, &timeout, nullptr) == 1) wake_.clear();
  }
}

}  // namespace onehop::rate
