// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// SafeRangeParams: the parameters of the safe range, which most laws fall back to.
#pragma once

#include <cstdint>

#include "engine/base/block.hpp"
#include "engine/base/units.hpp"

namespace onehop::law {

class ParamReader;

/// Target: where in the safe range X_1 is to be; zero is just above empty, for the lowest latency.
enum class Target : std::uint8_t { under, mid, zero };
/// Bounds of v_1 within one latency: 0.5 .. 2 v_1, or 0 .. the link's maximum.
enum class Bounds : std::uint8_t { measured, strict };

struct SafeRangeParams {
  // From the paper.
  Nanos d_1{4ms};
  Gain v_1_lo{500}, v_1_up{2000};
  Gain v_rx_lo{900}, v_rx_up{1100};
  // Ours.
  Nanos d_rx_min{2ms};
  /// The application buffer fills and drains by blocks, and the file thread looks at it once per
  /// nap (this is two of its longest). With a smaller target each block would count as a backlog.
  Bytes app_grain{4 * block_bytes};
  Nanos app_nap{8ms};
  Nanos latch_min{50ms};
  BytesPerSecond rate_start{12'500'000};
  bool is_start_known = false;       ///< this path has reached rate_start, or a user wants it
  BytesPerSecond rate_min{150'000};  ///< one full packet per 10 ms
  BytesPerSecond rate_max{12'500'000'000};
  Bytes backlog_start{32 * 1024};
  std::uint32_t batch_frames_max = 44;
  Target target = Target::under;
  Bounds bounds = Bounds::measured;
  bool has_latch = true;  ///< off: every receiver term always takes part (the paper, literally)

  void read(ParamReader& reader);
  [[nodiscard]] bool operator==(const SafeRangeParams&) const = default;
};

}  // namespace onehop::law
