// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// UdpFragments: large frames over UDP as datagrams that the kernel cuts into IP fragments, and the
// rule that ends them: the path loses too many frames for datagrams of n fragments.
//
//   D = EWMA over one srtt each, gain 1/8, of datagrams lost / sent
//   D = 1 - (1 - L)^n                       n fragments: each of them must arrive
//   L >= 0.1 %  <=>  D >= 1 - 0.999^n       36 fragments: 3.5 % of the datagrams
//
// Source: [SMUFF], aggregation where the path loses less than 0.1 %. The EWMA and its window are
// ours. It ends for good: fragments whose datagram is not complete stay in the peer's reassembly
// memory for 30 s, and a full reassembly memory takes no fragment.
//
//= [SMUFF] aggregation below 0.1 % loss  type=deviation reason=switched off once, for the session
// Called by the engine core.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>

#include "engine/base/units.hpp"

namespace onehop {

class UdpFragments {
 public:
  /// PathLoss: what the loop has seen of the path: totals of packets, and the smoothed round trip.
  struct PathLoss {
    Instant at{};
    std::uint64_t sent_total = 0, lost_total = 0;
    Nanos srtt{};
  };

  // Specification.
  static constexpr double frame_loss_max = 0.001;
  // Implementation.
  static constexpr double gain = 1.0 / 8;
  static constexpr Nanos window_min = 10ms;  // shorter ones hold a few datagrams only

  /// `end` has the port refuse frames above the MTU from then on; it must not allocate.
  UdpFragments(std::size_t frame_bytes, std::function<void()> end)
      : frame_bytes_{frame_bytes}, end_{std::move(end)} {}

  [[nodiscard]] bool has_ended() const noexcept { return has_ended_; }

  /// begin starts a session whose usual frames hold `single_bytes` of UDP payload. Returns the UDP
  /// payload of a large frame; 0 when they have ended already.
  [[nodiscard]] std::size_t begin(std::size_t single_bytes) noexcept {
    // The first fragment holds the UDP header; each carries as much as a single frame with it.
    constexpr std::size_t udp_bytes = 8;
    const std::size_t fragments = (frame_bytes_ + udp_bytes - 1) / (single_bytes + udp_bytes) + 1;
    loss_max_ = 1 - std::pow(1 - frame_loss_max, static_cast<double>(fragments));
    loss_ = 0;
    window_at_ = {};
    sent_total_ = lost_total_ = 0;
    return has_ended_ ? 0 : frame_bytes_;
  }

  /// has_to_end ends large frames for good when the path loses too many. True: just now.
  [[nodiscard]] bool has_to_end(const PathLoss& seen) noexcept {
    if (has_ended_ || seen.at - window_at_ < std::max(seen.srtt, window_min)) return false;
    const std::uint64_t sent = seen.sent_total - sent_total_;
    const std::uint64_t lost = seen.lost_total - std::min(seen.lost_total, lost_total_);
    window_at_ = seen.at;
    sent_total_ = seen.sent_total;
    lost_total_ = std::max(seen.lost_total, lost_total_);
    // Losses become known after the sending, so that a window may know of more than it sent.
    const double share =
        static_cast<double>(lost) / static_cast<double>(std::max<std::uint64_t>({sent, lost, 1}));
    loss_ += (share - loss_) * gain;
    has_ended_ = loss_ >= loss_max_;
    if (has_ended_) end_();
    return has_ended_;
  }

 private:
  const std::size_t frame_bytes_;
  const std::function<void()> end_;
  double loss_max_ = 1, loss_ = 0;
  Instant window_at_{};
  std::uint64_t sent_total_ = 0, lost_total_ = 0;
  bool has_ended_ = false;
};

}  // namespace onehop
