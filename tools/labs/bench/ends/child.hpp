// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Child: one process of a measurement, on a host of the lab: an end of ours (a function) or a
// program. It is counted from its first instruction, and ends with the process that measures it.
// The caller has one thread.
#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/fd.hpp"
#include "engine/base/result.hpp"
#include "engine/base/units.hpp"
#include "tools/labs/bench/meters.hpp"

namespace onehop::bench {

class Child {
 public:
  /// start forks, moves to `host` (a namespace; empty: stays here) and calls `body`; its value is
  /// the exit code. `is_counted`: with cycles and instructions, see RunMode.
  [[nodiscard]] static Result<Child> start(const std::string& host, std::optional<int> cpu,
                                           bool is_counted, const std::function<int()>& body);
  /// start_program likewise, with a program whose standard output is kept (output()); its errors
  /// are ours.
  [[nodiscard]] static Result<Child> start_program(const std::string& host, std::optional<int> cpu,
                                                   bool is_counted,
                                                   const std::vector<std::string>& command);
  Child(Child&& other) noexcept;
  Child& operator=(Child&&) = delete;
  ~Child();  ///< SIGKILL where it still runs

  [[nodiscard]] pid_t pid() const noexcept { return pid_; }
  [[nodiscard]] bool is_running();
  /// wait waits so long at most; false: it still runs. exit_code() is 128 + signal where one ended
  /// it.
  [[nodiscard]] bool wait(Nanos patience);
  void end(int signal_number) noexcept;
  [[nodiscard]] int exit_code() const noexcept { return exit_code_; }
  [[nodiscard]] CpuTime cpu_time() const noexcept {
    return cpu_time_;
  }  ///< of its whole life; after wait()
  [[nodiscard]] std::optional<PerfCounters::Counts> counts()
      const;  ///< none where it is not counted, or cannot be
  [[nodiscard]] const std::string& counts_missing() const noexcept { return counts_missing_; }
  [[nodiscard]] std::string output();  ///< of a program, after wait()

 private:
  Child() = default;
  bool reap(int flags);
  pid_t pid_ = 0;
  bool has_ended_ = false;
  int exit_code_ = 0;
  CpuTime cpu_time_;
  std::optional<PerfCounters> counters_;
  std::string counts_missing_;
  Fd output_;
};

}  // namespace onehop::bench
