// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// LossDiscriminator: tells loss on the air from loss by overload, and caps the rate for the second
// alone.
//
//   L = lost / reported    over a window of one srtt, one report and 200 packets
//   F                      what the air is expected to lose: EWMA_1/8 of the MAC's failed / sent
//                          frames where it counts them, else L_min + 1 %; at least L_min, the least
//                          L of the last 10 s: what the path always loses is no overload
//   sigma = sqrt(L (1 - L) / n)
//
//   L <= 1.5 F + 3 sigma            the air: no change
//   above                           v <- max(0.85 v, 0.85 (1 - L) v_1)    once per window
//   the receiver's kernel dropped   v <- 0.85 v                           once per window
//   else                            v <- 1.02 v, until v no longer limits the rate; in the n-th
//                                   such window n times, at most once per srtt that it took: a low
//                                   rate, where 200 packets take long, is not low for a minute
//
// To slow down is also a measurement: from rate w with loss L_0 down to rate r w, an overload falls
// to L_o = 1 - (1 - L_0) / r.
//
//   r <= 0.6 and L > max((L_0 + L_o) / 2, L_o + 3 sigma)
//        the loss does not depend on the rate, so it is the air's: v is not used for 10 s
//
// Source: [FWP], loss discrimination. The floor 0.85 (1 - L) v_1 is ours: on one hop v_1 is
// measured, and what drains and arrives is no overload. Without it a fade would cost 15 % in each
// round trip. The measurement is ours as well: without it a loss on the air that no MAC counter
// shows would hold the rate down for 10 s.
#pragma once

#include <cstdint>
#include <optional>

#include "control/law/estimate/least_loss.hpp"
#include "control/law/link_facts.hpp"

namespace onehop::law {

struct LossReading {
  Instant at{};
  std::uint64_t packets_reported_total = 0;
  std::uint64_t packets_lost_total = 0;
  std::uint64_t receiver_drops_total = 0;
  bool is_outage = false;  ///< what is reported now is of an outage (OutageWatch)
  Nanos srtt{0};
  Nanos feedback_interval{0};  ///< as granted; 0: the peer's default
  BytesPerSecond wanted{};     ///< what the law would send without the cap
  BytesPerSecond drain{};      ///< v_1; 0: unknown
  BytesPerSecond rate_min{};
};

class LossDiscriminator {
 public:
  /// step returns the cap, or nothing while there is none. `mac` is null where the MAC counts
  /// nothing.
  [[nodiscard]] std::optional<BytesPerSecond> step(const LossReading& reading,
                                                   const MacCounters* mac) noexcept;
  /// overload_total counts lost packets of the windows that were taken for overload.
  [[nodiscard]] std::uint64_t overload_total() const noexcept { return overload_total_; }

 private:
  /// AirLoss: a loss ratio that a trial has shown to be the air's.
  struct AirLoss {
    Instant at{};
    double loss = 0;
  };
  /// Trial: the window in which slowing down began.
  struct Trial {
    double loss = 0;
    double packets_per_s = 0;
  };
  [[nodiscard]] std::optional<double> expected_loss(Instant now) const noexcept;
  [[nodiscard]] bool is_same_at_any_rate(double loss, double sigma,
                                         double packets_per_s) const noexcept;
  void update_mac_loss(const MacCounters* mac) noexcept;
  void close_slice(const LossReading& reading) noexcept;
  void speed_up(const LossReading& reading, std::int64_t times) noexcept;
  void slow_down(const LossReading& reading, BytesPerSecond floor) noexcept;

  std::optional<BytesPerSecond> cap_;
  LossReading window_{};  // its beginning
  LossReading slice_{};
  std::optional<MacCounters> mac_;
  std::optional<double> mac_loss_;
  std::uint64_t overload_total_ = 0;
  std::int64_t calm_windows_ = 0;  // since the last that slowed down
  bool has_reading_ = false;
  std::optional<Trial> trial_;
  std::optional<AirLoss> air_;
  LeastLoss least_loss_;
};

}  // namespace onehop::law
