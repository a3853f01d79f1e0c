// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Recovery: how soon a real link was full again after a fault, and the report of many of them.
//
//   fault ends ─▶ look each millisecond at what has passed
//                 └─▶ the first window of 20 ms that carries 90 % of what the link can
//
// A look that comes late proves nothing: such a recovery is not trusted, unless it was in time all
// the same. One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "engine/base/units.hpp"

namespace onehop::stress {

struct Recovery {
  std::uint64_t schedule = 0;
  std::string io, fault;
  double span_ms = 0, recovery_ms = 0;
  bool is_trusted = true, is_recovered = true;

  static constexpr Nanos allowed = 100ms;
  [[nodiscard]] bool is_in_time() const {
    return is_recovered && recovery_ms <= static_cast<double>(allowed / 1ms);
  }
  /// with_earlier: both must be well; the later one counts.
  [[nodiscard]] Recovery with_earlier(const Recovery& earlier) const;
};

/// Flow is what is watched: wire bytes that have passed so far, and whether the transfer still
/// runs.
struct Flow {
  std::function<std::uint64_t()> bytes;
  std::function<bool()> is_running;
};

/// watch_recovery blocks until the link is full, for a second at most. `rate`: what it can carry,
/// wire bytes; `since`: when it could again, at the earliest.
[[nodiscard]] Recovery watch_recovery(const Flow& flow, BytesPerSecond rate, Instant since);
/// measure_rate blocks for `span` and tells what passed.
[[nodiscard]] BytesPerSecond measure_rate(const Flow& flow, Nanos span);

/// RecoveryReport prints each as it comes, and all of them at the end.
class RecoveryReport {
 public:
  RecoveryReport(std::uint64_t seed, std::string again, bool is_json, bool is_quiet)
      : seed_{seed}, again_words_{std::move(again)}, is_json_{is_json}, is_quiet_{is_quiet} {}
  void add(const Recovery& recovery);
  /// count_again: a schedule was played again because this machine could not look in time.
  void count_again() { ++again_; }
  /// finish prints the verdict and returns the exit code: 1 where something came late, or nothing
  /// could be judged.
  [[nodiscard]] int finish(std::uint64_t schedules) const;

 private:
  const std::uint64_t seed_;
  const std::string again_words_;  ///< to which " --only N" is added
  const bool is_json_, is_quiet_;
  std::vector<Recovery> all_;
  std::size_t again_ = 0;
};

}  // namespace onehop::stress
