// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// PacedGrowth: the rate where no lower queue pushes back (plain veth, loopback, an own ring whose bottom is not seen).
//
// There is no X_1, so nothing measures the link. The rate r doubles per control latency while it is used, at most to
// twice the measured injection; loss beyond what the path always has (its least loss in 10 s, plus 2 %) takes
// 15 % off, at most once per round trip, and from then on r grows by 2 % per round trip. This rule holds in this scope
// only: wherever a queue can be read, loss moves no rate. Nor does an outage: the rate is then what it was when the peer was
// last heard, and what was lost in it is not counted. Called by the law; owns its counters; reads no clock.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "engine/base/units.hpp"

namespace onehop::law {

struct PacedGrowthParams {
  BytesPerSecond rate_start{12'500'000};
  BytesPerSecond rate_min{150'000};
  BytesPerSecond rate_max{12'500'000'000};
  Nanos interval{4ms};  ///< d_1
};

struct PacedGrowthInput {
  Instant at{};
  Bytes sent_total{};
  std::uint64_t packets_told_total = 0;  ///< those that reports have spoken for
  std::uint64_t packets_lost_total = 0;
  Nanos srtt{0};
  Instant feedback_at{};         ///< when the peer was last heard
  bool is_outage = false;        ///< what is told now is of an outage (OutageWatch)
};

class PacedGrowth {
 public:
  explicit PacedGrowth(const PacedGrowthParams& params) noexcept : params_{params}, rate_{params.rate_start}, rate_heard_{params.rate_start} {}
  /// step takes one reading (same unit of bytes as the rates) and returns the rate.
  BytesPerSecond step(const PacedGrowthInput& input) noexcept;
  [[nodiscard]] BytesPerSecond injection() const noexcept { return injection_; }
  [[nodiscard]] BytesPerSecond rate() const noexcept { return rate_; }

 private:
  static constexpr std::size_t slices_max = 100;  // derived: 10 s in slices of 100 ms
  void follow_loss(const PacedGrowthInput& input, Nanos rtt) noexcept;
  void close_slice(const PacedGrowthInput& input) noexcept;
  [[nodiscard]] std::int64_t usual_loss_permille() const noexcept;

  PacedGrowthParams params_;
  BytesPerSecond rate_;
  BytesPerSecond rate_heard_;   // the rate when the peer was last heard
  Instant heard_at_{};
  BytesPerSecond injection_{};
  PacedGrowthInput grown_{};   // reading at the last growth step
  PacedGrowthInput judged_{};  // reading at the last loss check
  PacedGrowthInput sliced_{};
  std::array<std::int64_t, slices_max> slices_{};  // loss in permille
  std::size_t slice_next_ = 0;
  std::size_t slice_count_ = 0;
  BytesPerSecond rate_at_loss_{};
  bool has_reading_ = false;
  bool has_seen_loss_ = false;
};

}  // namespace onehop::law
