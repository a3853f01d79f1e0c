// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// RangeSet: what has arrived, bytes of a block or blocks of a volume, as ascending disjoint ranges
// in fixed memory. What continues the last range, the usual case, touches one entry.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace onehop::protocol {

/// Position is an unsigned integer.
template <class Position, std::size_t max>
class RangeSet {
 public:
  static constexpr std::size_t ranges_max = max;
  enum class Relation : std::uint8_t { absent, present, partial };

  void clear() noexcept { count_ = 0; }

  /// relation of [first, end) to what is present. An empty range counts as absent.
  [[nodiscard]] Relation relation(Position first, Position end) const noexcept {
    if (first >= end || count_ == 0 || first >= ranges_[count_ - 1].end) return Relation::absent;
    const std::size_t i = first_ending_after(first);
    if (i == count_ || ranges_[i].first >= end) return Relation::absent;
    return ranges_[i].first <= first && end <= ranges_[i].end ? Relation::present
                                                              : Relation::partial;
  }

  /// can_add: add() of an absent range would find room. One that touches a neighbour always does:
  /// so a full set takes what comes first in each gap, and every gap can be filled.
  [[nodiscard]] bool can_add(Position first, Position end) const noexcept {
    if (count_ < ranges_max || ranges_[count_ - 1].end == first) return true;
    const std::size_t i = first_ending_after(first);
    return (i > 0 && ranges_[i - 1].end == first) || (i < count_ && ranges_[i].first == end);
  }

  /// add takes an absent range.
  void add(Position first, Position end) noexcept {
    if (first >= end) return;
    if (count_ > 0 && ranges_[count_ - 1].end == first) {
      ranges_[count_ - 1].end = end;
      return;
    }
    std::size_t i = first_ending_after(first);
    const bool joins_left = i > 0 && ranges_[i - 1].end == first;
    const bool joins_right = i < count_ && ranges_[i].first == end;
    if (joins_left && joins_right) {
      ranges_[i - 1].end = ranges_[i].end;
      std::copy(ranges_.begin() + i + 1, ranges_.begin() + count_, ranges_.begin() + i);
      --count_;
    } else if (joins_left) {
      ranges_[i - 1].end = end;
    } else if (joins_right) {
      ranges_[i].first = first;
    } else if (count_ < ranges_max) {
      std::copy_backward(ranges_.begin() + i, ranges_.begin() + count_,
                         ranges_.begin() + count_ + 1);
      ranges_[i] = {first, end};
      ++count_;
    }
  }

  [[nodiscard]] std::size_t size() const noexcept { return count_; }

 private:
  struct Range {
    Position first = 0, end = 0;
  };
  [[nodiscard]] std::size_t first_ending_after(Position position) const noexcept {
    const auto used = std::span{ranges_}.first(count_);
    const auto it = std::ranges::upper_bound(used, position, {}, &Range::end);
    return static_cast<std::size_t>(it - used.begin());
  }
  std::array<Range, ranges_max> ranges_;
  std::size_t count_ = 0;
};

/// Bytes of a block. A block of 184 frames has at most 92 gaps; a range that would be one too many
/// is refused, and sent again.
using BlockRanges = RangeSet<std::uint32_t, 128>;

}  // namespace onehop::protocol
