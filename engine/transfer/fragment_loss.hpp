// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// FragmentLoss: whether a path loses too many frames for datagrams of many IP fragments.
//
//   D = EWMA over one srtt each, gain 1/8, of datagrams lost / sent
//   D = 1 - (1 - L)^n                       n fragments: each of them must arrive
//   L >= 0.1 %  <=>  D >= 1 - 0.999^n       36 fragments: 3.5 % of the datagrams
//
// Source: [SMUFF], aggregation where the path loses less than 0.1 %. The EWMA and its window are ours. It is for good:
// fragments without their datagram stand in the peer's reassembly memory for 30 s, and one that has filled it takes none.
//
//= [SMUFF] aggregation below 0.1 % loss  type=deviation reason=switched off once, for the session
// Pure. Called by the engine core through FrameSize.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "engine/base/units.hpp"

namespace onehop::transfer {

class FragmentLoss {
 public:
  // Specification.
  static constexpr double frame_loss_max = 0.001;
  // Implementation.
  static constexpr double gain = 1.0 / 8;
  static constexpr Nanos window_min = 10ms;  // shorter ones hold a few datagrams only

  explicit FragmentLoss(std::size_t fragments) noexcept
      : loss_max_{1 - std::pow(1 - frame_loss_max, static_cast<double>(fragments))} {}

  /// step takes the totals as they are at `now` and says whether the loss is too high.
  [[nodiscard]] bool step(Instant now, std::uint64_t sent_total, std::uint64_t lost_total, Nanos srtt) noexcept {
    if (now - window_at_ < std::max(srtt, window_min)) return false;
    const std::uint64_t sent = sent_total - sent_total_, lost = lost_total - std::min(lost_total, lost_total_);
    window_at_ = now;
    sent_total_ = sent_total;
    lost_total_ = std::max(lost_total, lost_total_);
    // Losses become known after the sending, so that a window may know of more than it sent.
    const double share = static_cast<double>(lost) / static_cast<double>(std::max<std::uint64_t>({sent, lost, 1}));
    loss_ += (share - loss_) * gain;
    return loss_ >= loss_max_;
  }

 private:
  const double loss_max_;
  double loss_ = 0;
  Instant window_at_{};
  std::uint64_t sent_total_ = 0, lost_total_ = 0;
};

}  // namespace onehop::transfer
