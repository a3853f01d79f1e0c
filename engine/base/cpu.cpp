// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "engine/base/cpu.hpp"

#include <sched.h>
#include <sys/prctl.h>

#include <algorithm>
#include <ctime>
#include <string>

namespace onehop {

Result<void> pin_this_thread(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (cpu >= 0 && cpu < CPU_SETSIZE) CPU_SET(static_cast<unsigned>(cpu), &set);
  if (::sched_setaffinity(0, sizeof set, &set) != 0)
    return errno_error(ExitCode::usage, "pin the engine to core " + std::to_string(cpu),
                       "Choose a core that 'taskset -p $$' lists");
  return success();
}

void name_this_thread(const char* name) noexcept { ::prctl(PR_SET_NAME, name, 0, 0, 0); }

void use_exact_timers() noexcept { ::prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0); }

Nanos thread_cpu_time() noexcept {
  timespec used{};
  (void)::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return std::chrono::seconds{used.tv_sec} + Nanos{used.tv_nsec};
}

int cpu_count() noexcept {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return std::max(1, CPU_COUNT(&set));
}

}  // namespace onehop
