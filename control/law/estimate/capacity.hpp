// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// CapacityStep, exchange_time and turn_rate: what the physical rate C says to a law. Pure.
//
//   alpha = C_now / C_last,  clamped; 1 while either is unknown
//   rtt   = wait for the medium + data + acknowledgement = overhead + L / C
//   R_win = L / rtt,  what leaves while we win the medium turn after turn
#pragma once

#include <algorithm>
#include <cstdlib>

#include "control/law/link_facts.hpp"

namespace onehop::law {

/// Derived, the fixed part of a frame exchange: AIFS 43 us, mean backoff of 7.5 slots of 9 us, HE
/// preamble 52 us, SIFS 16 us, Block Ack 32 us (EDCA defaults for best effort at 5 GHz). Low: L/rtt
/// is above what a link carries. High: the core looks too rarely.
inline constexpr Nanos exchange_overhead{210'500};

/// The laws' windows and polls, in exchanges.
// Ours. Low: one aggregate more or less is a third of the rate. High: a change of rate is seen
// late.
inline constexpr std::int64_t exchanges_per_window = 4;
// Derived: two polls see one aggregate leave at most. Low: aggregates are slept through. High:
// wake-ups, for nothing.
inline constexpr std::int64_t polls_per_exchange = 2;
/// How fast to refill a queue that a port's backlog limit holds. Derived: the winner of the medium
/// may win it again after AIFS and a mean backoff. Low: bursts that no link takes. High: of several
/// senders' second turns each finds half an aggregate (ns-3, eight greedy: 0.967 of UDP for 0.984).
inline constexpr Nanos refill_span{110us};
inline constexpr Gain refill_max{10'000};  // derived, of v_1; low and high: as above

/// lone_exchange is an exchange without other senders on the medium.
[[nodiscard]] constexpr Nanos lone_exchange(Bytes aggregate, BytesPerSecond phy) noexcept {
  return exchange_overhead + std::min<Nanos>(time_for(aggregate, phy), 20ms);
}

/// turn_rate is R_win; zero where no physical rate is known.
[[nodiscard]] constexpr BytesPerSecond turn_rate(Bytes aggregate,
                                                 const BytesPerSecond* phy) noexcept {
  if (phy == nullptr || *phy <= BytesPerSecond{0}) return {};
  return aggregate / lone_exchange(aggregate, *phy);
}

/// exchange_time is the fact where there is one, else computed; without a physical rate `drain`
/// stands in for it.
[[nodiscard]] constexpr Nanos exchange_time(const LinkFacts& facts, Instant now, Bytes aggregate,
                                            BytesPerSecond drain) noexcept {
  if (const Nanos* known = fresh(facts.exchange, now); known != nullptr && *known > Nanos{0})
    return *known;
  const BytesPerSecond* phy = fresh(facts.phy_rate, now);
  const BytesPerSecond rate = phy != nullptr && *phy > BytesPerSecond{0} ? *phy : drain;
  if (rate <= BytesPerSecond{0}) return exchange_overhead;
  return lone_exchange(aggregate, rate);
}

/// Derived, of R_win or of an aggregate in each exchange: one other sender takes half. Low: two
/// senders are each alone. High: aggregates that repeat a frame have company.
inline constexpr Gain alone_min{750};

class CapacityStep {
 public:
  struct Bounds {
    Gain lowest{250}, highest{4000};
    std::int64_t threshold_permille = 0;  ///< smaller changes are ignored and add up
  };
  explicit CapacityStep(const Bounds& bounds) noexcept : bounds_{bounds} {}

  /// step returns alpha. `rate` is null while the physical rate is unknown; the last one is then
  /// forgotten.
  [[nodiscard]] Gain step(const BytesPerSecond* rate) noexcept {
    if (rate == nullptr || *rate <= BytesPerSecond{0}) {
      last_ = {};
      return {};
    }
    if (last_ <= BytesPerSecond{0}) {
      last_ = *rate;
      return {};
    }
    const Gain alpha{
        static_cast<std::int64_t>(static_cast<Wide>(rate->count) * 1000 / last_.count)};
    if (std::abs(alpha.permille - 1000) <= bounds_.threshold_permille) return {};
    last_ = *rate;
    return std::clamp(alpha, bounds_.lowest, bounds_.highest);
  }

 private:
  Bounds bounds_;
  BytesPerSecond last_{};
};

}  // namespace onehop::law
