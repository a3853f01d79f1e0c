// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// EngineThread: the one place where a loop meets real time. It pins itself, then turns the loop
// until it has closed, sleeping in the port's wait. Then nothing on it allocates.
#pragma once

#include <sys/resource.h>

#include <optional>
#include <thread>
#include <utility>

#include "engine/base/alloc_guard.hpp"
#include "engine/base/system/cpu.hpp"
#include "engine/base/system/thread.hpp"
#include "engine/base/time.hpp"
#include "engine/run/links.hpp"

namespace onehop::run {

enum class Poll : std::uint8_t { adaptive, busy };

struct EngineThreadConfig {
  Poll poll = Poll::adaptive;
  std::optional<int> core;  ///< none: the scheduler chooses
  const char* name = "onehop-engine";
};

class EngineThread {
 public:
  /// start runs `loop` over `port` on a thread of its own. Both outlive join(). A core that cannot
  /// be had is reported by the caller beforehand (choose_core()); here a failed pin only leaves the
  /// thread unpinned. Error: the system refuses a thread.
  template <class Loop, class PortType>
  [[nodiscard]] Result<void> start(Loop& loop, PortType& port, const EngineThreadConfig& config) {
    auto started = start_thread("engine", [this, &loop, &port, config] {
      name_this_thread(config.name);
      use_exact_timers();
      use_short_slice();
      if (config.core) (void)pin_this_thread(*config.core);
      const AllocGuard guard;
      while (!loop.is_closed()) {
        const NextWakeup next = loop.turn(monotonic_now());
        if (config.poll == Poll::busy || loop.is_closed()) continue;
        if (next.deadline <= monotonic_now()) continue;
        (void)port.wait(next.deadline, next.is_rx_wanted);
        loop.count_wakeup();
      }
      cpu_time_ = thread_cpu_time();
    });
    ONEHOP_TRYV(started);
    thread_ = std::move(started).value();
    return success();
  }

  /// join waits for the loop to close (Command finish).
  void join() {
    if (thread_.joinable()) thread_.join();
  }
  /// cpu_time is what the thread used, user and system; after join().
  [[nodiscard]] Nanos cpu_time() const noexcept { return cpu_time_; }
  ~EngineThread() { join(); }

 private:
  std::thread thread_;
  Nanos cpu_time_{0};  // written by the thread, read after join()
};

}  // namespace onehop::run
