// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// What and when the receiver reports.
//
//   report_interval(), nack_spacing()   how far apart reports are
//   ListTiming                          when a lazy receiver lists what is missing
//   ReportPages                         the gaps of one report, cut into frames
//
// Pure. Called by the engine core through Receiver.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "engine/base/block.hpp"
#include "engine/base/units.hpp"
#include "engine/protocol/gap_list.hpp"
#include "engine/wire/feedback.hpp"

namespace onehop::protocol {

// Specification.
inline constexpr Nanos report_min = 2ms, report_max = 25ms, report_before_srtt = 5ms;
/// Between reports that are sent because the credit runs out. Shorter: a small ring makes a report
/// of every burst. Longer: 256 KiB of ring would hold 40 Gbit/s back.
inline constexpr Nanos report_credit_min = 25us;
inline constexpr Nanos report_idle = 100ms;  ///< nothing new arrived since the last report

/// report_interval: a quarter of srtt, or what the sender asked for (`asked`; 0: nothing). When the
/// sender asked for rare reports, one goes with each PONG; the timer is for PINGs that were lost.
[[nodiscard]] constexpr Nanos report_interval(Nanos srtt, Nanos asked) noexcept {
  if (srtt == 0ns) return report_before_srtt;
  return std::max(std::clamp(srtt / 4, report_min, report_max), asked * 5 / 4);
}

/// nack_spacing: at most one NACK in this time.
[[nodiscard]] constexpr Nanos nack_spacing(Nanos asked) noexcept {
  return std::max<Nanos>(1ms, asked / 2);
}

/// ListTiming: when a lazy receiver lists what is missing.
///
///   W bytes since the last list, or 1 s   W = min(64 MB, half of the receiver's blocks)
///   the sender asks                       once per round of the sender's: what it sent before it
///                                         read the last list asks again for what that answered
///
/// Blocks with holes stay open, so a window of 64 MB would need 64 MB of buffers at both ends. With
/// 128 blocks of 256 KiB it is 16 MB, and the other half takes the next window's data.
///
//= [FWP] lazy repair, window of 64 MB or 1 s  type=deviation reason=bounded by the buffers
class ListTiming {
 public:
  // Specification.
  static constexpr std::uint64_t window_bytes_max = 64'000'000;
  static constexpr Nanos window_span = 1s;
  /// A request that comes sooner after a list does not mean that the list was lost.
  static constexpr Nanos answer_min = 10ms;

  explicit ListTiming(std::size_t block_slots) noexcept
      : window_bytes_{std::clamp<std::uint64_t>(block_slots / 2 * block_bytes, block_bytes,
                                                window_bytes_max)} {}

  /// is_new_request: the sender asks in `round`, and the last list has not answered it.
  [[nodiscard]] bool is_new_request(Instant now, bool round, Nanos srtt) const noexcept {
    return !has_answered_ || round != round_answered_ ||
           now - listed_at_ >= std::max(2 * srtt, answer_min);
  }
  /// on_request: the next list answers this round.
  void on_request(bool round) noexcept {
    has_answered_ = true;
    round_answered_ = round;
  }
  [[nodiscard]] bool is_window_over(Instant now, std::uint64_t bytes_total) const noexcept {
    return bytes_total - listed_bytes_ >= window_bytes_ || now - listed_at_ >= window_span;
  }
  /// restart: a window begins, with the first frame, with a list, or where nothing was missing.
  void restart(Instant now, std::uint64_t bytes_total) noexcept {
    listed_at_ = now;
    listed_bytes_ = bytes_total;
  }

 private:
  const std::uint64_t window_bytes_;
  Instant listed_at_{};
  std::uint64_t listed_bytes_ = 0;
  bool has_answered_ = false, round_answered_ = false;
};

/// ReportPages: the gaps of one report, cut into frames in ascending order.
///
///   [from .. below the next page's first gap] [ .. ] [ .. below the first gap that is not named]
///
///   list:      names every gap
///   eager:     names those that are old enough; what is not named may only be late
///   counters:  names none (lazy, between lists)
class ReportPages {
 public:
  enum class Kind : std::uint8_t { eager, list, counters };
  // Implementation: about 6 bytes each, so that a frame's 1200 bytes surely hold them.
  static constexpr std::size_t ranges_per_page = 160;

  /// start: the report names the first `gaps` of the list, and speaks below the next one.
  void start(Kind kind, std::size_t gaps, std::uint64_t settled) noexcept {
    kind_ = kind;
    gaps_ = gaps;
    from_ = settled;
    gap_ = pages_ = 0;
    is_open_ = true;
  }

  /// next fills in the numbers of the next frame of the report; false: the report is over.
  [[nodiscard]] bool next(const GapList& list, wire::Feedback& feedback) noexcept {
    const std::size_t pages_max =
        kind_ == Kind::list ? wire::frames_per_list_max : wire::frames_per_report_max;
    if (!is_open_ || pages_ == pages_max) return is_open_ = false;
    const auto& gaps = list.gaps();
    const std::size_t count = std::min(gaps_ - gap_, ranges_per_page);
    const bool is_cut = gap_ + count < gaps.size();
    feedback.sequence = ++sequence_;
    feedback.from = from_;
    feedback.has_received = list.has_any() && (!is_cut || gaps[gap_ + count].range.first > from_);
    feedback.largest = is_cut ? gaps[gap_ + count].range.first - 1 : list.largest();
    if (!feedback.has_received) feedback.from = feedback.largest = 0;
    feedback.is_list = kind_ == Kind::list;
    feedback.has_more = gap_ + count < gaps_ && pages_ + 1 < pages_max;
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
  std::size_t gap_ = 0, gaps_ = 0, pages_ = 0;
  bool is_open_ = false;
};

}  // namespace onehop::protocol
