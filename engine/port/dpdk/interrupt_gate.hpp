// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// InterruptGate parks EAL's interrupt thread, on which net_memif learns that its peer came or went.
// When the peer goes, that thread unmaps the rings at once (DPDK 22.11), while a core still polls
// them or another thread closes the device: both crash.
//
//   link up    close(): the thread waits here ─▶ data flows ─▶ nothing received for a while
//              ─▶ service_once(): it handles what waits, and is parked again
//   tear-down  close() ─▶ rte_eth_dev_close ─▶ open()
//
// One device per process uses it. close() and service_once() block for a fraction of 1 ms.
#pragma once

#include <condition_variable>
#include <mutex>

namespace onehop::dpdk {

class InterruptGate {
 public:
  ~InterruptGate();

  /// close parks the thread; true when it is. Syscalls: futex, timerfd_settime.
  bool close();
  /// open lets it go.
  void open();
  /// service_once lets it handle what waits, and parks it again.
  bool service_once();
  [[nodiscard]] bool is_closed() const noexcept { return is_closed_; }

 private:
  static void park(void* gate);

  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_wanted_ = false;  // under the mutex: the thread is to stay
  bool is_parked_ = false;  // under the mutex
  bool is_closed_ = false;
};

}  // namespace onehop::dpdk
