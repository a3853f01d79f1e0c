// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// LargeFrames: the seam of an experiment in which a port carries frames above the path's MTU.
//
// A port that was opened for it has large_frames(); the sending loop asks once per turn.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/base/units.hpp"

namespace onehop {

class LargeFrames {
 public:
  /// What the loop has seen of the path: totals of packets, and the smoothed round trip.
  struct PathLoss {
    Instant at{};
    std::uint64_t sent_total = 0, lost_total = 0;
    Nanos srtt{};
  };

  virtual ~LargeFrames() = default;
  /// begin starts a session whose usual frames hold `single_bytes` of UDP payload. Returns the UDP
  /// payload of a large frame; 0 when they have ended already.
  [[nodiscard]] virtual std::size_t begin(std::size_t single_bytes) noexcept = 0;
  /// has_to_end ends large frames for good when the path loses too many. True: just now.
  [[nodiscard]] virtual bool has_to_end(const PathLoss& seen) noexcept = 0;
};

}  // namespace onehop
