// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// ProgressLine: one line on a terminal, redrawn at most ten times a second and never wider than the
// terminal.
#pragma once

#include <cstdint>
#include <string>

#include "control/transfer/api/transfer.hpp"

namespace onehop::tool {

class ProgressLine {
 public:
  /// Draws only when `is_wanted` and standard error is a terminal.
  explicit ProgressLine(bool is_wanted);
  void update(const api::Progress& view);
  /// show draws a text that stands until the next one; false where nothing is drawn.
  bool show(const std::string& text);
  void finish();  ///< leaves the cursor on a clean line
  [[nodiscard]] bool is_drawing() const { return is_drawing_; }

  /// line is the text for a terminal of `columns`, shorter than that by one at least. From 80
  /// columns on it is the phase, how much of how many bytes, the rate now and on average, and the
  /// time that is left; of several files how many are done, instead of the average. While the link
  /// is down it says that instead.
  [[nodiscard]] static std::string line(const api::Progress& view, std::size_t columns);

 private:
  static constexpr std::int64_t redraw_period_ns = 90'000'000;  // they come every 100 ms
  bool is_drawing_;
  bool has_drawn_ = false;
  std::int64_t drawn_at_ns_ = 0;
};

}  // namespace onehop::tool
