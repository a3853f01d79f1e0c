// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "engine/run/placement.hpp"

#include <sched.h>

namespace onehop::run {

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

}  // namespace onehop::run
