// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "engine/base/system/cpu.hpp"

#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <ctime>
#include <string>

namespace onehop {

Result<std::optional<int>> choose_core(std::optional<int> wish) {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (::sched_getaffinity(0, sizeof allowed, &allowed) != 0)
    return errno_error(ExitCode::internal_error, "read the CPUs this process may use");
  if (wish) {
    if (*wish < 0 || *wish >= CPU_SETSIZE || !CPU_ISSET(static_cast<unsigned>(*wish), &allowed))
      return Error{ExitCode::usage, "pin the engine to core " + std::to_string(*wish),
                   "this process may not run there", "Choose one that 'taskset -cp $$' lists"};
    return wish;
  }
  constexpr int pin_from_cpus = 3;
  if (CPU_COUNT(&allowed) < pin_from_cpus) return std::optional<int>{};
  for (int cpu = CPU_SETSIZE - 1; cpu >= 0; --cpu)
    if (CPU_ISSET(static_cast<unsigned>(cpu), &allowed)) return std::optional<int>{cpu};
  return std::optional<int>{};
}

bool pin_this_thread(int cpu) noexcept {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (cpu >= 0 && cpu < CPU_SETSIZE) CPU_SET(static_cast<unsigned>(cpu), &set);
  return ::sched_setaffinity(0, sizeof set, &set) == 0;
}

void name_this_thread(const char* name) noexcept { ::prctl(PR_SET_NAME, name, 0, 0, 0); }

void use_exact_timers() noexcept { ::prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0); }

namespace {
// struct sched_attr, version 0 (sched_setattr(2)). glibc 2.36 has none, and the kernel's clashes.
struct SchedulerAttributes {
  std::uint32_t size;
  std::uint32_t policy;
  std::uint64_t flags;
  std::int32_t nice;
  std::uint32_t priority;
  std::uint64_t runtime_ns, deadline_ns, period_ns;
};
constexpr std::uint64_t shortest_slice_ns = 100'000;
}  // namespace

void use_short_slice() noexcept {
  SchedulerAttributes attributes{};
  if (::syscall(SYS_sched_getattr, 0, &attributes, sizeof attributes, 0) != 0 ||
      attributes.policy != SCHED_OTHER)
    return;
  attributes.runtime_ns = shortest_slice_ns;
  (void)::syscall(SYS_sched_setattr, 0, &attributes, 0);
}

namespace {
Nanos time_of(clockid_t clock) noexcept {
  timespec used{};
  (void)::clock_gettime(clock, &used);
  return std::chrono::seconds{used.tv_sec} + Nanos{used.tv_nsec};
}
}  // namespace

Nanos thread_cpu_time() noexcept { return time_of(CLOCK_THREAD_CPUTIME_ID); }
Nanos process_cpu_time() noexcept { return time_of(CLOCK_PROCESS_CPUTIME_ID); }

}  // namespace onehop
