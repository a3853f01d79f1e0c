// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "engine/port/dpdk/interrupt_gate.hpp"

#include <rte_alarm.h>

#include <thread>

#include "engine/base/units.hpp"

namespace onehop::dpdk {

namespace {
// How long the thread may look around in service_once(). Shorter than its wake-up: it hears
// nothing. Longer: the engine core stands still for so long.
constexpr Nanos service_span{300us};
// How long a caller waits for it to be parked. Shorter: a thread that is busy is taken for one that
// does not come, and left alone. Longer: so is the engine core, where it does not come.
constexpr Nanos patience{100ms};
}  // namespace

// Called on EAL's interrupt thread: alarms are one of its interrupts.
void InterruptGate::park(void* argument) {
  auto& gate = *static_cast<InterruptGate*>(argument);
  std::unique_lock lock{gate.mutex_};
  gate.is_parked_ = true;
  gate.changed_.notify_all();
  gate.changed_.wait(lock, [&] { return !gate.is_wanted_; });
  gate.is_parked_ = false;
  gate.changed_.notify_all();
}

InterruptGate::~InterruptGate() {
  open();
  (void)rte_eal_alarm_cancel(&InterruptGate::park, this);  // waits for one that runs
}

bool InterruptGate::close() {
  if (is_closed_) return true;
  {
    const std::lock_guard lock{mutex_};
    is_wanted_ = true;
  }
  if (rte_eal_alarm_set(1, &InterruptGate::park, this) != 0) return false;
  is_closed_ = true;
  std::unique_lock lock{mutex_};
  if (changed_.wait_for(lock, patience, [&] { return is_parked_; })) return true;
  lock.unlock();
  open();
  return false;
}

void InterruptGate::open() {
  if (!is_closed_) return;
  std::unique_lock lock{mutex_};
  is_wanted_ = false;
  changed_.notify_all();
  (void)changed_.wait_for(lock, patience, [&] { return !is_parked_; });
  is_closed_ = false;
}

bool InterruptGate::service_once() {
  open();
  std::this_thread::sleep_for(service_span);
  return close();
}

}  // namespace onehop::dpdk
