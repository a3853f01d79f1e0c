// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// RepairRounds: when a lazy sender repairs, and when it asks what is missing.
//
//   window:  first copies ──▶ boundary │ first copies of the next window ...
//                 │ list
//                 ▼
//            round 1 ─ask─▶ list ─▶ round 2 ─ask─▶ list ─▶ ... until every repair has arrived
//
// While a window's repairs are under way, what the next window lost waits for its own turn; its
// first copies fill the link meanwhile. A sender that can send nothing ends the window at once.
//
//= [FWP] lazy repair
// The windows and the asking are ours. No time-out is needed. Called by the engine core through
// Sender.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "engine/base/check.hpp"

namespace onehop::protocol {

/// lost_by_count: what the peer has missed, by its own count, less the numbers skipped on purpose.
[[nodiscard]] constexpr std::uint64_t lost_by_count(std::uint64_t missing_total,
                                                    std::uint64_t sent_total,
                                                    std::uint64_t skipped_total) noexcept {
  const std::uint64_t missing = std::min(missing_total, sent_total);
  return missing - std::min(missing, skipped_total);
}

class RepairRounds {
 public:
  explicit RepairRounds(bool is_lazy) noexcept : is_lazy_{is_lazy} {}

  [[nodiscard]] bool is_lazy() const noexcept { return is_lazy_; }
  /// is_asking: each frame carries the request until a list answers it.
  [[nodiscard]] bool is_asking() const noexcept { return is_asking_; }
  /// round tells the requests of one round from the next's: only the first makes a list.
  [[nodiscard]] bool round() const noexcept { return round_; }
  void ask() noexcept {
    if (is_asking_ || !is_lazy_) return;
    is_asking_ = true;
    round_ = !round_;
  }

  void on_repair_sent() noexcept { ++repairs_open_; }
  /// on_repair_settled: it arrived, or it is lost and its bytes wait to be sent again.
  void on_repair_settled() noexcept {
    ONEHOP_CHECK(repairs_open_ > 0);  // each repair settles once
    --repairs_open_;
  }

  /// on_list opens the next window unless one is being repaired; it ends below `next_number`.
  void on_list(std::uint64_t next_number, bool has_resend, bool is_blocked) noexcept {
    is_asking_ = false;
    if ((repairs_open_ == 0 && !has_resend) || is_blocked) boundary_ = next_number;
  }
  /// is_eligible: a missing packet is repaired in this round.
  [[nodiscard]] bool is_eligible(std::uint64_t number, bool is_repair) const noexcept {
    return is_repair || number < boundary_;
  }
  /// is_repairing: a round's repairs are on their way.
  [[nodiscard]] bool is_repairing() const noexcept { return repairs_open_ > 0; }

 private:
  const bool is_lazy_;
  bool is_asking_ = false, round_ = false;
  std::uint64_t boundary_ = 0;
  std::size_t repairs_open_ = 0;
};

}  // namespace onehop::protocol
