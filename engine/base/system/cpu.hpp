// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Pinning and naming of threads.
#pragma once

#include <optional>

#include "engine/base/result.hpp"
#include "engine/base/units.hpp"

namespace onehop {

/// choose_core answers --core: the one asked for if this process may use it (else an error with
/// exit code 2). Without a wish there is no pin on a machine of up to two CPUs: there a pinned
/// engine fights the other end's softirq or its own file thread for one core while the other idles.
/// On larger machines it is the last allowed CPU. Syscalls: sched_getaffinity.
[[nodiscard]] Result<std::optional<int>> choose_core(std::optional<int> wish);

/// pin_this_thread restricts the calling thread to one CPU; false: the system refuses. Syscalls:
/// sched_setaffinity.
[[nodiscard]] bool pin_this_thread(int cpu) noexcept;

/// name_this_thread sets what ps and perf show; at most 15 bytes are kept. Syscalls: prctl.
void name_this_thread(const char* name) noexcept;

/// use_exact_timers sets the timer slack to 1 ns (the default makes 50 us last 114). Syscalls:
/// prctl.
void use_exact_timers() noexcept;

/// use_short_slice asks the scheduler for the shortest slice (sched_setattr(2), sched_runtime of
/// SCHED_OTHER, honoured since Linux 6.12): a thread that wakes preempts one with a longer slice
/// instead of waiting for its end, and its share of the CPU stays the same. Older kernels take no
/// notice. Syscalls: sched_getattr, sched_setattr.
void use_short_slice() noexcept;

/// User and system time of the calling thread, or of the process. Syscalls: clock_gettime.
[[nodiscard]] Nanos thread_cpu_time() noexcept;
[[nodiscard]] Nanos process_cpu_time() noexcept;

}  // namespace onehop
