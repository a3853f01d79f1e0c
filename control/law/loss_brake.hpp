// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// LossBrake: tells loss on the air from loss by overload, and brakes for the second alone.
//
//   L   = lost / told over a window of one srtt, one report and 200 packets; told: what reports have spoken for
//   F   = EWMA_1/8 of the MAC's failed / sent frames where it counts them, else L_min + 1 %; at least L_min,
//         the least L of the last 10 s: what the path always loses is no overload
//   L <= 1.5 F + 3 sigma, sigma = sqrt(L (1 - L) / n)   ->  the air: no change
//   above                                               ->  v <- max(0.85 v, 0.85 (1 - L) v_1)   once per srtt
//   the receiver's kernel dropped                       ->  v <- 0.85 v                           once per srtt
//   else                                                ->  v <- 1.02 v until it no longer binds
//
// And braking is a measurement: from rate w with loss L_0 down to r w, an overload falls to L_o = 1 - (1 - L_0) / r.
//
//   r <= 0.6 and L > max((L_0 + L_o) / 2, L_o + 3 sigma)  ->  the loss does not depend on the rate, so it is the air's:
//                                                             for 10 s v does not limit the rate
//
// Source: [FWP], loss discrimination. The floor is ours: on one hop v_1 is measured, and what drains and arrives cannot be
// an overload; without it a fade would brake once per round trip, 2 ms, down to nothing. So is the measurement: without it a
// loss that sets in while the MAC tells nothing brakes for 10 s, down to the least rate.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "control/law/link_facts.hpp"

namespace onehop::law {

struct LossReading {
  Instant at{};
  std::uint64_t packets_told_total = 0;
  std::uint64_t packets_lost_total = 0;
  std::uint64_t receiver_drops_total = 0;
  const MacCounters* mac = nullptr;   ///< null: the MAC tells nothing
  bool is_outage = false;             ///< what is told now is of an outage (OutageWatch): nobody's overload
  Nanos srtt{0};
  Nanos feedback_interval{0};         ///< as granted; 0: the peer's default
  BytesPerSecond wanted{};            ///< what the law would send without the brake
  BytesPerSecond drain{};             ///< v_1; 0: unknown
  BytesPerSecond rate_min{};
};

class LossBrake {
 public:
  /// step returns the cap, or nothing while the brake is off.
  [[nodiscard]] std::optional<BytesPerSecond> step(const LossReading& reading) noexcept;
  /// overload_total: lost packets that were judged, and not put down to the air.
  [[nodiscard]] std::uint64_t overload_total() const noexcept { return overload_total_; }

 private:
  static constexpr std::size_t slices_max = 100;  // derived: `memory` in slices
  /// Seen: a loss ratio and when it was measured.
  struct Seen {
    Instant at{};
    double loss = 0;
  };
  /// Trial: what braking began with.
  struct Trial {
    double loss = 0;
    double packets_per_s = 0;
  };
  [[nodiscard]] std::optional<double> least_loss(Instant now) const noexcept;
  [[nodiscard]] std::optional<double> expected_loss(Instant now) const noexcept;
  [[nodiscard]] bool is_same_at_any_rate(double loss, double sigma, double packets_per_s) const noexcept;
  void follow_mac(const MacCounters* mac) noexcept;
  void close_slice(const LossReading& reading) noexcept;
  void release(const LossReading& reading) noexcept;
  void brake(const LossReading& reading, BytesPerSecond floor) noexcept;

  std::optional<BytesPerSecond> cap_;
  LossReading window_{};   // its beginning
  LossReading slice_{};
  MacCounters mac_{};
  std::uint64_t overload_total_ = 0;
  double mac_loss_ = 0;
  bool has_mac_ = false, has_mac_loss_ = false, has_reading_ = false;
  std::optional<Trial> trial_;
  std::optional<Seen> air_;   // shown by a trial
  std::array<Seen, slices_max> slices_{};
  std::size_t slice_next_ = 0, slice_count_ = 0;
};

}  // namespace onehop::law
