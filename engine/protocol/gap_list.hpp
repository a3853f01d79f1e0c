// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// GapList: packet numbers that the receiver misses, as ascending ranges, in fixed memory.
//
//   settled ──[ gap ]── received ──[ gap ]── received ── largest
//
// The sender's `settled` lets it forget what will never arrive. When it is full, the two newest
// gaps become one: numbers between them are reported missing, which costs a repeat.
//
// A repair has a new number, so a number that comes late was not lost: the path reorders. late_by()
// is how long one was missing at most; each gap that ends unfilled takes a 16th of it away.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/base/units.hpp"
#include "engine/wire/feedback.hpp"

namespace onehop::protocol {

class GapList {
 public:
  struct Gap {
    wire::PacketRange range;
    Instant seen_at{};  ///< when the gap opened
    [[nodiscard]] std::uint64_t last() const noexcept { return range.last; }
  };

  explicit GapList(std::size_t gaps_max) : gaps_max_{std::max<std::size_t>(gaps_max, 2)} {
    gaps_.reserve(gaps_max_ + 1);
  }

  /// on_number records one number; returns false when it was known to have arrived or is settled.
  bool on_number(Instant now, std::uint64_t number) noexcept {
    if (number < settled_) return false;
    if (number > largest_ || !has_any_) {
      const std::uint64_t next = has_any_ ? largest_ + 1 : settled_;
      if (number > next) {
        skipped_over_total_ += number - next;
        missing_now_ += number - next;
        open({{next, number - 1}, now});
      }
      largest_ = number;
      has_any_ = true;
      return true;
    }
    const auto it = std::ranges::lower_bound(gaps_, number, {}, &Gap::last);
    if (it == gaps_.end() || it->range.first > number) return false;
    if (came_late_total_ < skipped_over_total_) ++came_late_total_;
    --missing_now_;
    late_by_ = std::max(late_by_, now - it->seen_at);
    fill(it, number);
    return true;
  }

  /// settle forgets everything below `settled`; it never goes back.
  void settle(std::uint64_t settled) noexcept {
    if (settled <= settled_) return;
    settled_ = settled;
    if (has_any_ && largest_ < settled) largest_ = settled - 1;
    const auto keep =
        std::ranges::find_if(gaps_, [&](const Gap& gap) { return gap.range.last >= settled; });
    for (auto gap = gaps_.begin(); gap != keep; ++gap) {
      missing_now_ -= gap->range.last - gap->range.first + 1;
      late_by_ -= late_by_ / late_by_part;
    }
    gaps_.erase(gaps_.begin(), keep);
    if (gaps_.empty() || gaps_.front().range.first >= settled) return;
    missing_now_ -= settled - gaps_.front().range.first;
    gaps_.front().range.first = settled;
  }

  [[nodiscard]] const std::vector<Gap>& gaps() const noexcept { return gaps_; }
  [[nodiscard]] std::uint64_t settled() const noexcept { return settled_; }
  [[nodiscard]] std::uint64_t largest() const noexcept { return largest_; }
  [[nodiscard]] bool has_any() const noexcept { return has_any_; }
  /// missing_total: numbers that were passed over and have not come since, settled ones included.
  [[nodiscard]] std::uint64_t missing_total() const noexcept {
    return skipped_over_total_ - came_late_total_;
  }
  /// missing_now: numbers in the gaps.
  [[nodiscard]] std::uint64_t missing_now() const noexcept { return missing_now_; }
  /// late_by: 0 while no number came late.
  [[nodiscard]] Nanos late_by() const noexcept { return late_by_; }
  /// older_than counts the gaps that have been open for `age`: the first ones.
  [[nodiscard]] std::size_t older_than(Instant now, Nanos age) const noexcept {
    const auto young =
        std::ranges::lower_bound(gaps_, now - age, std::ranges::less_equal{}, &Gap::seen_at);
    return static_cast<std::size_t>(young - gaps_.begin());
  }

 private:
  // Ours, after RACK's window, which 16 recoveries reset (RFC 8985 section 6.2); here 16 losses
  // leave a third. Low: reordering is forgotten, and taken for loss. High: losses are reported late
  // for longer.
  static constexpr std::int64_t late_by_part = 16;

  void open(const Gap& gap) noexcept {
    gaps_.push_back(gap);
    join_newest_if_full();
  }
  void fill(std::vector<Gap>::iterator it, std::uint64_t number) noexcept {
    wire::PacketRange& range = it->range;
    if (range.first == range.last) {
      gaps_.erase(it);
    } else if (number == range.first) {
      ++range.first;
    } else if (number == range.last) {
      --range.last;
    } else {
      const Gap upper{{number + 1, range.last}, it->seen_at};
      range.last = number - 1;
      gaps_.insert(it + 1, upper);
      join_newest_if_full();
    }
  }
  void join_newest_if_full() noexcept {
    if (gaps_.size() <= gaps_max_) return;
    const wire::PacketRange newest = gaps_.back().range;
    gaps_.pop_back();
    missing_now_ += newest.first - gaps_.back().range.last - 1;  // what came between the two
    gaps_.back().range.last = newest.last;
  }

  const std::size_t gaps_max_;
  std::vector<Gap> gaps_;
  std::uint64_t settled_ = 0;
  std::uint64_t largest_ = 0;
  std::uint64_t missing_now_ = 0, skipped_over_total_ = 0, came_late_total_ = 0;
  Nanos late_by_{0};
  bool has_any_ = false;
};

}  // namespace onehop::protocol
