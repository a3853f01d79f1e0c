// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Pinning and naming of threads.
#pragma once

#include "engine/base/result.hpp"
#include "engine/base/units.hpp"

namespace onehop {

/// pin_this_thread restricts the calling thread to one CPU. Syscalls: sched_setaffinity.
[[nodiscard]] Result<void> pin_this_thread(int cpu);

/// name_this_thread sets what ps and perf show; at most 15 bytes are kept. Syscalls: prctl.
void name_this_thread(const char* name) noexcept;

/// use_exact_timers sets the calling thread's timer slack to 1 ns (the default of 50 us makes a
/// 50-us sleep last 114 us). Syscalls: prctl.
void use_exact_timers() noexcept;

/// use_short_slice asks the scheduler for the shortest slice (sched_setattr(2), sched_runtime of
/// SCHED_OTHER, honoured since Linux 6.12): a thread that wakes preempts one with a longer slice
/// instead of waiting for its end, and its share of the CPU stays the same. Older kernels take no
/// notice. Syscalls: sched_getattr, sched_setattr.
void use_short_slice() noexcept;

/// thread_cpu_time is the user and system time that the calling thread has used. Syscalls:
/// clock_gettime.
[[nodiscard]] Nanos thread_cpu_time() noexcept;

/// process_cpu_time is the same of all threads of this process. Syscalls: clock_gettime.
[[nodiscard]] Nanos process_cpu_time() noexcept;

/// cpu_count is the number of CPUs that this process may run on, at least 1. Syscalls:
/// sched_getaffinity.
[[nodiscard]] int cpu_count() noexcept;

}  // namespace onehop
