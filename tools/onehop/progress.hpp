// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Progress: one line on a terminal, redrawn at most ten times a second and never wider than the terminal.
#pragma once

#include <cstdint>
#include <string>

#include "engine/base/units.hpp"

namespace onehop::tool {

/// ProgressView: what is shown at one moment.
struct ProgressView {
  std::string phase;              ///< "transferring", "verifying", ...
  std::uint64_t bytes_done = 0;   ///< file bytes known to have arrived
  std::uint64_t bytes_total = 0;
  Nanos elapsed{0};               ///< since the first data frame
};

class Progress {
 public:
  /// Draws only when `is_wanted` and standard error is a terminal.
  explicit Progress(bool is_wanted);
  void update(Instant now, const ProgressView& view);
  void finish();  ///< leaves the cursor on a clean line

  /// line is the text for a terminal of `columns`, shorter than that by one at least. From 80 columns on it is the phase, how
  /// much of how many bytes, the rate now and on average, and the time that is left.
  [[nodiscard]] std::string line(const ProgressView& view, std::size_t columns) const;

 private:
  static constexpr Nanos redraw_period = 100ms;
  bool is_drawing_;
  bool has_drawn_ = false;
  Instant drawn_at_{};
  Instant sampled_at_{};
  std::uint64_t sampled_bytes_ = 0;
  double rate_now_ = 0;  // bytes per second, smoothed over about a second
};

}  // namespace onehop::tool
