// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Meters: what a process costs, read from outside it: CPU time by thread from /proc, cycles and
// instructions from the CPU's own counters, energy from RAPL. What cannot be read says why, and is
// never zero instead.
//
// Called by the one thread of the process that measures.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/fd.hpp"
#include "engine/base/result.hpp"

namespace onehop::bench {

/// ThreadTime: CPU time of one thread. Without CONFIG_IRQ_TIME_ACCOUNTING system_s contains the
/// softirqs that ran in it.
struct ThreadTime {
  pid_t tid = 0;
  std::string name;  ///< empty: a main thread that has none of its own
  double user_s = 0, system_s = 0;
};

/// read_threads reads all threads of `pid` that are there: the sum from schedstat (ns), split into
/// user and system as their ticks are. Empty where the process is gone. Syscalls: reads of
/// /proc/PID/task.
[[nodiscard]] std::vector<ThreadTime> read_threads(pid_t pid);

/// CpuTime of a process: threads that ended are in it.
struct CpuTime {
  double user_s = 0, system_s = 0;
  std::uint64_t voluntary_switches = 0;
};

/// PerfCounters counts cycles and instructions of a process and of all threads it makes from then
/// on.
class PerfCounters {
 public:
  struct Counts {
    std::uint64_t cycles = 0, instructions = 0;
  };
  /// open fails where the machine or its policy gives no counters. Syscalls: perf_event_open.
  [[nodiscard]] static Result<PerfCounters> open(pid_t pid);
  /// Syscalls: read.
  [[nodiscard]] std::optional<Counts> read() const;

 private:
  Fd cycles_, instructions_;
};

/// EnergyMeter sums RAPL's packages (/sys/class/powercap). They count all of the machine, not this
/// program alone.
class EnergyMeter {
 public:
  EnergyMeter();
  /// missing says why there is none; empty: there is.
  [[nodiscard]] const std::string& missing() const noexcept { return missing_; }
  /// joules_since gives what was used since the readings `before`, wraps taken into account.
  struct Reading {
    std::vector<std::uint64_t> microjoules;
  };
  [[nodiscard]] Reading read() const;
  [[nodiscard]] std::optional<double> joules(const Reading& before, const Reading& after) const;

 private:
  struct Package {
    std::string path;
    std::uint64_t range_microjoules = 0;
  };
  std::vector<Package> packages_;
  std::string missing_;
};

}  // namespace onehop::bench
