// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// FrameSize: how many bytes of UDP payload a full frame of ours has now.
//
//   agreed with the peer ─▶ less where the path's MTU falls
//   a port with large frames (udp_fragments.hpp): their size, until it ends them
//
// Called by the engine core through SenderLoop.
#pragma once

#include <algorithm>
#include <cstddef>

#include "engine/port/udp_fragments.hpp"
#include "engine/wire/frame.hpp"

namespace onehop::run {

class FrameSize {
 public:
  struct Config {
    std::size_t single_bytes = 0;   ///< agreed: a frame that is one packet
    std::size_t ip_udp_bytes = 0;   ///< headers of a packet
    UdpFragments* large = nullptr;  ///< outlives this object; null: the port has none
  };

  explicit FrameSize(const Config& config) noexcept
      : config_{config}, single_bytes_{config.single_bytes} {
    if (config.large != nullptr) large_bytes_ = config.large->begin(config.single_bytes);
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

  /// follow_loss says once that large frames have ended.
  [[nodiscard]] bool follow_loss(const UdpFragments::PathLoss& seen) noexcept {
    if (large_bytes_ == 0 || !config_.large->has_to_end(seen)) return false;
    large_bytes_ = 0;
    return true;
  }

 private:
  static constexpr std::size_t floor_bytes = 256;

  const Config config_;
  std::size_t single_bytes_;
  std::size_t large_bytes_ = 0;  // 0: none
};

}  // namespace onehop::run
