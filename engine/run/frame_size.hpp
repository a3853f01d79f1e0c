// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// FrameSize: how many bytes of UDP payload a full frame of ours has now.
//
//   agreed with the peer ─▶ less where the path's MTU falls
//   with fragments: one datagram of up to 64 KB ─▶ single frames, from when the path has lost too many (FragmentLoss)
//
// Called by the engine core through SenderLoop.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "engine/base/units.hpp"
#include "engine/transfer/fragment_loss.hpp"
#include "engine/wire/frame.hpp"

namespace onehop::run {

class FrameSize {
 public:
  struct Config {
    std::size_t single_bytes = 0;  ///< agreed: a frame that is one packet
    std::size_t fragmented_bytes = 0;  ///< agreed: a datagram in fragments; 0: none
    std::size_t ip_udp_bytes = 0;  ///< headers of a packet
  };

  explicit FrameSize(const Config& config) noexcept : config_{config}, single_bytes_{config.single_bytes} {
    constexpr std::size_t udp_bytes = 8;  // the first fragment's; each carries as much as a single frame with it
    if (config.fragmented_bytes > 0)
      fragments_.emplace((config.fragmented_bytes + udp_bytes - 1) / (config.single_bytes + udp_bytes) + 1);
  }

  [[nodiscard]] std::size_t bytes() const noexcept { return fragments_ ? config_.fragmented_bytes : single_bytes_; }
  [[nodiscard]] std::size_t body_bytes() const noexcept { return bytes() - wire::overhead_bytes; }
  [[nodiscard]] bool has_fragments() const noexcept { return fragments_.has_value(); }

  /// follow_mtu: a single frame never exceeds it, nor what was agreed.
  void follow_mtu(std::size_t mtu_bytes) noexcept {
    const std::size_t frame = std::min(mtu_bytes - std::min(config_.ip_udp_bytes, mtu_bytes), config_.single_bytes);
    if (frame > wire::overhead_bytes + floor_bytes) single_bytes_ = frame;  // else no usable path: frames are refused
  }

  /// judge ends fragments where the path loses too many, and says so once.
  [[nodiscard]] bool judge(Instant now, std::uint64_t sent_total, std::uint64_t lost_total, Nanos srtt) noexcept {
    if (!fragments_ || !fragments_->step(now, sent_total, lost_total, srtt)) return false;
    fragments_.reset();
    return true;
  }

 private:
  static constexpr std::size_t floor_bytes = 256;

  const Config config_;
  std::size_t single_bytes_;
  std::optional<transfer::FragmentLoss> fragments_;
};

}  // namespace onehop::run
