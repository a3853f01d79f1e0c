// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// SoftirqMeter: time in softirqs by the thread that they interrupted. The kernel's own account puts
// it into that thread's system time, and that of an idle CPU nowhere; so two raw tracepoints count
// it (softirq.bpf.c), for about 0.2 us per softirq. Needs CAP_BPF and CAP_PERFMON; thread ids are
// those of the first pid namespace.
#pragma once

#include <sys/types.h>

#include <map>
#include <memory>

#include "engine/base/result.hpp"

namespace onehop::bench {

class SoftirqMeter {
 public:
  /// attach counts from here on, until destruction. Error: privilege_missing.
  [[nodiscard]] static Result<SoftirqMeter> attach();
  SoftirqMeter(SoftirqMeter&&) noexcept;
  SoftirqMeter& operator=(SoftirqMeter&&) noexcept;
  ~SoftirqMeter();

  /// read gives seconds by thread; thread 0 is all idle CPUs.
  [[nodiscard]] std::map<pid_t, double> read() const;

 private:
  struct Impl;
  explicit SoftirqMeter(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace onehop::bench
