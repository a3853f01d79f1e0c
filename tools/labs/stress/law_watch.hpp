// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// LawWatch: what must hold of the law, tick for tick, from its own trace and from its inputs.
//
//   latch       a receiver's buffer takes part if it was busy in the last W = max(50 ms, 4 srtt);
//               without a sign of a backlog in that time it does not
//   rate        safe-range and auto grant no more than the least term that takes part
//   safe range  safe-range allows a backlog of X_max = max(2 v_1 srtt, 4.5 v_1 d_1) at most
//
//= [SMUFF] eq. (3), (6)  type=test
// One thread.
#pragma once

#include <array>

#include "engine/base/path.hpp"
#include "tools/labs/stress/broken.hpp"
#include "tools/labs/world/world.hpp"

namespace onehop::stress {

inline constexpr Nanos d_1 = 4ms;  ///< the control interval of the laws' defaults

class LawWatch {
 public:
  LawWatch(scenario::World& world, const scenario::WorldConfig& config, bool has_facts,
           Broken& broken);
  void after_tick(Instant now);

 private:
  struct Latch {
    Instant busy_at{}, maybe_at{};
    bool was_busy = false, was_maybe = false;
  };
  void check_latch(Instant now, std::size_t buffer, const QueueTelemetry& queue,
                   const PathReport& path);
  void check_grant(Instant now, const RateGrant& grant, const PathReport& path);

  scenario::World& world_;
  Broken& broken_;
  const bool has_latch_;      ///< the law runs safe-range inside
  const bool takes_least_;    ///< it follows the least term
  const bool is_safe_range_;  ///< it is safe-range
  std::array<Latch, 2> latches_{};
  Nanos srtt_min_{0};
};

}  // namespace onehop::stress
