// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/rate/rate_thread.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>
#include <ctime>
#include <utility>

#include "engine/base/cpu.hpp"
#include "engine/base/thread.hpp"
#include "engine/base/time.hpp"

namespace onehop::rate {

Result<void> RateThread::start() {
  wake_fd_ = Fd{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  if (!wake_fd_.is_open())
    return errno_error(ExitCode::internal_error, "make the control thread's eventfd");
  is_stopping_.store(false, std::memory_order_release);
  auto started = start_thread("control", [this] { run_loop(); });
  ONEHOP_TRYV(started);
  thread_ = std::move(started).value();
  return success();
}

void RateThread::wake() noexcept {
  const std::uint64_t one = 1;
  // A full counter means that a wake-up is pending already, so a failed write loses nothing.
  [[maybe_unused]] const ssize_t rc = ::write(wake_fd_.get(), &one, sizeof one);
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
    const Nanos wait = loop_.next_tick_in();
    const timespec timeout{.tv_sec = wait / 1s, .tv_nsec = static_cast<long>((wait % 1s).count())};
    pollfd entry{.fd = wake_fd_.get(), .events = POLLIN, .revents = 0};
    if (::ppoll(&entry, 1, &timeout, nullptr) == 1) {
      std::uint64_t count = 0;
      [[maybe_unused]] const ssize_t rc = ::read(wake_fd_.get(), &count, sizeof count);
    }
  }
}

}  // namespace onehop::rate
