// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Capacity: what a link could carry, and when, told from outside of a trace: `onehop lab run
// --rate-log`, or a number.
#pragma once

#include <istream>
#include <string>
#include <vector>

#include "engine/base/result.hpp"
#include "engine/base/units.hpp"

namespace onehop::plot {

/// RateStep: from `at`, on the clock of the traces, to the next step. Rates count whole frames.
struct RateStep {
  Nanos at{0};
  BytesPerSecond rate{};
};

class Capacity {
 public:
  Capacity() = default;  ///< not known
  /// steady is the same at any time.
  [[nodiscard]] static Capacity steady(BytesPerSecond rate) { return Capacity{{{Nanos{0}, rate}}}; }
  /// read reads the columns t_ns and rate_bytes_per_s. Errors as read_trace().
  [[nodiscard]] static Result<Capacity> read(std::istream& in, const std::string& name);

  [[nodiscard]] bool is_known() const noexcept { return !steps_.empty(); }
  /// between gives the steps of a span; the first one is at `from`. Empty where the capacity is
  /// told from a later time on.
  [[nodiscard]] std::vector<RateStep> between(Nanos from, Nanos until) const;

 private:
  explicit Capacity(std::vector<RateStep> steps) : steps_{std::move(steps)} {}
  std::vector<RateStep> steps_;  // in order of time
};

}  // namespace onehop::plot
