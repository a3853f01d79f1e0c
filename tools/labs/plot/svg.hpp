// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// svg_of: one figure as inline SVG, to be scaled by the page. Pure. Text is escaped here.
#pragma once

#include <string>
#include <string_view>

#include "tools/labs/plot/figure.hpp"

namespace onehop::plot {

struct SvgSize {
  int width = 560, height = 270;  ///< user units; text is 13 to 14 of them high
};

[[nodiscard]] std::string svg_of(const Plate& plate, const Figure& figure,
                                 std::string_view run_label, const SvgSize& size = {});

/// swatch_of is the small picture of a curve or an area for a legend.
[[nodiscard]] std::string swatch_of(Ink ink, Stroke stroke);
[[nodiscard]] std::string swatch_of(Ink ink, double opacity);

/// escape makes any text safe in HTML and SVG, in attributes as well; control characters become
/// '?'.
[[nodiscard]] std::string escape(std::string_view text);

}  // namespace onehop::plot
