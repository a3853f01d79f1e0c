// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// PacedGrowth: the rate where no lower queue pushes back (plain veth, loopback, an own ring whose
// bottom is not seen).
//
//   nothing lost yet   r <- max(r, 2 injection)   per control latency, while the rate is used
//   after a loss       r <- 1.02 r                per round trip, while the rate is used
//   L > L_min + 2 %    r <- 0.85 r                at most once per round trip
//
// There is no X_1, so nothing measures the link. L_min is the path's least loss in the 10 s up to
// the newest slice that is the path's own. At a high rate loss is not counted as such, and L_min
// stays what it was. This rule holds here only: wherever a queue can be read, loss moves no rate.
// What an outage has lost is not counted, and after it the rate is what it was when the peer was
// last heard. Source: ours. Pure.
#pragma once

#include <cstdint>

#include "control/law/estimate/least_loss.hpp"
#include "control/law/safe_range_params.hpp"

namespace onehop::law {

struct PacedGrowthInput {
  Instant at{};
  Bytes sent_total{};
  std::uint64_t packets_reported_total = 0;  ///< of those sent, what reports cover
  std::uint64_t packets_lost_total = 0;
  Nanos srtt{0};
  Instant feedback_at{};   ///< when the last report came
  bool is_outage = false;  ///< what is reported now is of an outage (OutageWatch)
};

class PacedGrowth {
 public:
  explicit PacedGrowth(const SafeRangeParams& params) noexcept
      : params_{params}, rate_{params.rate_start}, rate_received_{params.rate_start} {}
  /// step takes one reading (same unit of bytes as the rates) and returns the rate.
  BytesPerSecond step(const PacedGrowthInput& input) noexcept;
  [[nodiscard]] BytesPerSecond injection() const noexcept { return injection_; }

 private:
  void update_loss(const PacedGrowthInput& input, Nanos rtt) noexcept;
  void close_slice(const PacedGrowthInput& input) noexcept;

  SafeRangeParams params_;
  BytesPerSecond rate_;
  BytesPerSecond rate_received_;  // the rate when the last report came
  Instant received_at_{};
  BytesPerSecond injection_{};
  PacedGrowthInput grown_{};       // reading at the last growth step
  PacedGrowthInput loss_begin_{};  // reading at the last loss check
  PacedGrowthInput slice_{};
  LeastLoss least_loss_;
  std::int64_t usual_loss_permille_ = 0;  // L_min
  BytesPerSecond rate_at_loss_{};
  bool has_reading_ = false;
  bool has_seen_loss_ = false;
};

}  // namespace onehop::law
