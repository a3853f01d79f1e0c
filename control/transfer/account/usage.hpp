// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// What a run cost: CPU of this process, of the kernel's softirq threads, and of the whole system.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace onehop::transfer {

/// UsageMeter reads the system's counters. Session thread only. Syscalls: getrusage, and reads of
/// /proc.
class UsageMeter {
 public:
  /// open_span starts the span that system time is counted over (at the first data frame).
  void open_span();
  /// open_softirq starts the span of softirq time, once: later than the other, because it searches
  /// the list of all processes for threads. A session that ends earlier has no such figure, which
  /// the kernel counts in steps of 10 ms.
  void open_softirq();
  void close_span();

  [[nodiscard]] static double
  cpu_seconds();  ///< user + system of this process and its children, since its start
  [[nodiscard]] std::optional<double> softirq_seconds()
      const;  ///< ksoftirqd on all cores; none where unreadable, or not opened
  [[nodiscard]] std::optional<double> system_busy_seconds() const;  ///< non-idle time of all cores
  [[nodiscard]] static std::uint64_t rss_bytes_max();               ///< VmHWM
  [[nodiscard]] static std::uint64_t voluntary_switches_total();    ///< all threads
  /// thread_cpu_seconds: user + system by thread ("read", "write", "rate"; "plane" is the main
  /// one), of those that are there. Empty where the kernel does not keep schedstat.
  [[nodiscard]] static std::map<std::string, double> thread_cpu_seconds();

 private:
  [[nodiscard]] std::optional<double> read_softirq() const;
  std::optional<std::vector<int>> softirq_pids_;
  struct Reading {
    std::optional<double> softirq, busy;
  };
  Reading start_, end_;
};

}  // namespace onehop::transfer
