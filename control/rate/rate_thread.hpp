// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// RateThread: the control thread. Owns the thread and its wait; the loop decides when the next tick
// is due. It is not pinned: the engine core needs its CPU for itself, and a tick that comes a
// millisecond late is harmless.
#pragma once

#include <atomic>
#include <thread>

#include "control/rate/rate_loop.hpp"
#include "engine/base/wake_fd.hpp"

namespace onehop::rate {

class RateThread {
 public:
  /// `loop` must outlive the thread; nobody else may call its tick() while it runs.
  explicit RateThread(RateLoop& loop) noexcept : loop_{loop} {}
  ~RateThread() { stop(); }
  RateThread(const RateThread&) = delete;
  RateThread& operator=(const RateThread&) = delete;

  /// start runs the thread. Syscalls: eventfd, clone.
  [[nodiscard]] Result<void> start();
  /// wake makes the next tick due now: call it when a session starts, so that an idle wait of 20 ms
  /// is not lost. Any thread but the engine core. Syscalls: write.
  void wake() noexcept { wake_.wake(); }
  /// stop ends the thread after a last tick and waits for it. The state it published last holds the
  /// whole session.
  void stop() noexcept;

 private:
  void run_loop() noexcept;
  RateLoop& loop_;
  WakeFd wake_;
  std::atomic<bool> is_stopping_{false};  // release in stop(), acquire in run_loop()
  std::thread thread_;
};

}  // namespace onehop::rate
