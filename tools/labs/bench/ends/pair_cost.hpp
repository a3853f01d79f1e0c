// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// PairCosts: two readings of a pair, and the metrics that come of them. Arithmetic, but for
// read_machine().
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "control/transfer/account/usage.hpp"
#include "tools/labs/bench/ends/board.hpp"
#include "tools/labs/bench/ends/pair.hpp"
#include "tools/labs/bench/meters.hpp"
#include "tools/labs/bench/softirq_meter.hpp"

namespace onehop::bench {

struct EndReading {
  Moved moved;
  std::vector<ThreadTime> threads;
  std::optional<PerfCounters::Counts> counts;
};

struct MachineReading {
  std::map<pid_t, double> softirq_s;  ///< by thread; 0: idle CPUs
  EnergyMeter::Reading energy;
};

struct Reading {
  std::vector<EndReading> ends;
  MachineReading machine;
};

class PairCosts {
 public:
  [[nodiscard]] MachineReading read_machine() const;
  [[nodiscard]] RunResult result(const PairSpec& spec) const;

  /// What an end used before its first byte counts, as in the program's end event
  bool is_whole_life = true;
  MachineReading at_start;  ///< before there was any end
  Reading first, last;      ///< first.ends is empty where is_whole_life
  transfer::UsageMeter usage;
  EnergyMeter energy;
  std::optional<SoftirqMeter> softirq;
  std::string softirq_missing, counts_missing;

 private:
  void add_threads(const PairSpec& spec, RunResult& result) const;
  void add_ends(const PairSpec& spec, RunResult& result, double bytes) const;
  void add_counts(RunResult& result, double bytes) const;
  void add_machine(RunResult& result, double bytes) const;
  [[nodiscard]] Moved moved(std::size_t i) const;
};

}  // namespace onehop::bench
