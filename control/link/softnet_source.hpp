// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// SoftnetSource: frames that this host's network stack dropped, from /proc/net/softnet_stat.
// Control thread only; no privilege.
#pragma once

#include <string_view>

#include "control/link/fact_source.hpp"
#include "control/link/poll_budget.hpp"
#include "engine/base/fd.hpp"

namespace onehop::link {

/// parse_softnet sums the lines, one per CPU: hexadecimal columns, of which the second is dropped
/// and the third time_squeeze (net/core/net-procfs.c). Nothing where a line has fewer columns or
/// something else in them.
[[nodiscard]] std::optional<law::HostCounters> parse_softnet(std::string_view text);

class SoftnetSource final : public FactSource {
 public:
  static constexpr Nanos period = 100ms;

  /// Syscalls: open.
  [[nodiscard]] static Result<SoftnetSource> open(Stopwatch stopwatch,
                                                  const char* path = "/proc/net/softnet_stat");
  [[nodiscard]] std::string_view name() const noexcept override { return "softnet"; }
  /// Syscalls: pread (3 us).
  void read(Instant now, law::LinkFacts& facts) override;

 private:
  SoftnetSource(Fd&& file, Stopwatch stopwatch)
      : file_{std::move(file)}, stopwatch_{std::move(stopwatch)} {}
  Fd file_;
  Stopwatch stopwatch_;
  PollBudget budget_{period};
};

}  // namespace onehop::link
