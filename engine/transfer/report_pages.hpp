// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// ReportPages: the gaps of one report, cut into frames in ascending order.
//
//   eager, list:  [from .. below the next page's first gap] [ .. ] [ .. largest]     each speaks for its numbers
//   counters:     [from .. below the first gap]                                      nothing is named (lazy, between lists)
//
// Called by the engine core through Receiver.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "engine/transfer/gap_list.hpp"
#include "engine/wire/feedback.hpp"

namespace onehop::transfer {

class ReportPages {
 public:
  enum class Kind : std::uint8_t { eager, list, counters };
  // Implementation: about 6 bytes each, so that a frame's 1200 bytes surely hold them.
  static constexpr std::size_t ranges_per_page = 160;

  void start(Kind kind, std::uint64_t settled) noexcept {
    kind_ = kind;
    from_ = settled;
    gap_ = pages_ = 0;
    is_open_ = true;
  }

  /// next fills in what the next frame of the report says of numbers; false: the report is over.
  [[nodiscard]] bool next(const GapList& list, wire::Feedback& feedback) noexcept {
    const std::size_t pages_max = kind_ == Kind::list ? wire::frames_per_list_max : wire::frames_per_report_max;
    if (!is_open_ || pages_ == pages_max) return is_open_ = false;
    const auto& gaps = list.gaps();
    const std::size_t count = kind_ == Kind::counters ? 0 : std::min(gaps.size() - gap_, ranges_per_page);
    const bool is_cut = gap_ + count < gaps.size();
    feedback.sequence = ++sequence_;
    feedback.from = from_;
    feedback.has_received = list.has_any() && (!is_cut || gaps[gap_ + count].range.first > from_);
    feedback.largest = is_cut ? gaps[gap_ + count].range.first - 1 : list.largest();
    if (!feedback.has_received) feedback.from = feedback.largest = 0;
    feedback.is_list = kind_ == Kind::list;
    feedback.has_more = is_cut && kind_ != Kind::counters && pages_ + 1 < pages_max;
    feedback.range_count = static_cast<std::uint32_t>(count);
    for (std::size_t i = 0; i < count; ++i) feedback.missing[i] = gaps[gap_ + i].range;
    gap_ += count;
    from_ = feedback.largest + 1;
    ++pages_;
    is_open_ = feedback.has_more;
    return true;
  }

 private:
  Kind kind_ = Kind::eager;
  std::uint64_t sequence_ = 0, from_ = 0;
  std::size_t gap_ = 0, pages_ = 0;
  bool is_open_ = false;
};

}  // namespace onehop::transfer
