// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// FrameSize: how many bytes of UDP payload a full frame of ours has now.
//
//   agreed with the peer ─▶ less where the path's MTU falls
//   a port with large frames: their size, until the path loses too many of them
//
// Large frames are datagrams that the kernel cuts into IP fragments. They end where the path loses
// too many frames for datagrams of n fragments.
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
// Called by the engine core through SenderLoop.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "engine/base/units.hpp"
#include "engine/wire/frame.hpp"

namespace onehop::run {

class FrameSize {
 public:
  struct Config {
    std::size_t single_bytes = 0;  ///< agreed: a frame that is one packet
    std::size_t ip_udp_bytes = 0;  ///< headers of a packet
    std::size_t large_bytes = 0;   ///< a large frame; 0: the port has none, or they have ended
  };

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

  explicit FrameSize(const Config& config) noexcept
      : config_{config}, single_bytes_{config.single_bytes}, large_bytes_{config.large_bytes} {
    // The first fragment holds the UDP header; each carries as much as a single frame with it.
    constexpr std::size_t udp_bytes = 8;
    const std::size_t fragments = (large_bytes_ + udp_bytes - 1) / (single_bytes_ + udp_bytes) + 1;
    loss_max_ = 1 - std::pow(1 - frame_loss_max, static_cast<double>(fragments));
  }

  [[nodiscard]] std::size_t bytes() const noexcept {
    return large_bytes_ > 0 ? large_bytes_ : single_bytes_;
  }
  [[nodiscard]] std::size_t body_bytes() const noexcept { return bytes() - wire::overhead_bytes; }

  /// follow_mtu: a single frame never exceeds it, nor what was agreed. With an MTU too small for
  /// any frame nothing changes; the port then refuses them.
  void follow_mtu(std::size_t mtu_bytes) noexcept {
    const std::size_t frame =
        std::min(mtu_bytes - std::min(config_.ip_udp_bytes, mtu_bytes), config_.single_bytes);
    if (frame > wire::overhead_bytes + floor_bytes) single_bytes_ = frame;
  }

  /// follow_loss ends large frames when the path loses too many. True: just now.
  [[nodiscard]] bool follow_loss(const PathLoss& seen) noexcept {
    if (large_bytes_ == 0 || seen.at - window_at_ < std::max(seen.srtt, window_min)) return false;
    const std::uint64_t sent = seen.sent_total - sent_total_;
    const std::uint64_t lost = seen.lost_total - std::min(seen.lost_total, lost_total_);
    window_at_ = seen.at;
    sent_total_ = seen.sent_total;
    lost_total_ = std::max(seen.lost_total, lost_total_);
    // Losses become known after the sending, so that a window may know of more than it sent.
    const double share =
        static_cast<double>(lost) / static_cast<double>(std::max<std::uint64_t>({sent, lost, 1}));
    loss_ += (share - loss_) * gain;
    if (loss_ < loss_max_) return false;
    large_bytes_ = 0;
    return true;
  }

 private:
  static constexpr std::size_t floor_bytes = 256;

  const Config config_;
  std::size_t single_bytes_;
  std::size_t large_bytes_;  // 0: none
  double loss_max_ = 1, loss_ = 0;
  Instant window_at_{};
  std::uint64_t sent_total_ = 0, lost_total_ = 0;
};

}  // namespace onehop::run
