// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// One buffer as a bar.
#include <algorithm>
#include <cmath>

#include "tools/onehop/watch/screen.hpp"

namespace onehop::watch {

namespace {

struct Glyphs {
  std::string_view held, held_outside, range, empty, target;
};
constexpr Glyphs unicode{"█", "▓", "░", " ", "│"};
constexpr Glyphs ascii{"#", "*", "-", " ", "|"};

Style style_of(const BufferView& b) {
  if (b.over_bytes && b.occupancy_bytes > *b.over_bytes) return Style::high;
  if (b.under_bytes && b.occupancy_bytes < *b.under_bytes) return Style::low;
  return Style::good;
}

}  // namespace

std::vector<Span> bar_of(const BufferView& b, std::int64_t scale_bytes, std::size_t width,
                         bool is_utf8) {
  const Glyphs& glyphs = is_utf8 ? unicode : ascii;
  const double end = std::max(1.0, static_cast<double>(scale_bytes));
  const auto cells = static_cast<double>(width);
  // A column stands for what lies between its edges; what is held shows from the first half column
  // on.
  const auto column = [&](std::int64_t x) {
    return static_cast<std::int64_t>(std::llround(static_cast<double>(x) / end * cells));
  };
  const std::int64_t held = column(b.occupancy_bytes);
  const std::int64_t from = column(b.under_bytes.value_or(0)),
                     to = b.over_bytes    ? column(*b.over_bytes)
                          : b.under_bytes ? static_cast<std::int64_t>(width)
                                          : 0;
  const std::int64_t mark = b.target_bytes > 0
                                ? std::clamp<std::int64_t>(column(b.target_bytes), 0,
                                                           static_cast<std::int64_t>(width) - 1)
                                : -1;
  std::vector<Span> spans;
  const auto add = [&](std::string_view text, Style style) {
    if (spans.empty() || spans.back().style != style) spans.push_back({"", style});
    spans.back().text += text;
  };
  const Style held_style = style_of(b);
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(width); ++i) {
    const bool is_inside = i >= from && i < to;
    if (i == mark)
      add(glyphs.target, Style::strong);
    else if (i < held)
      add(is_inside || to == 0 ? glyphs.held : glyphs.held_outside, held_style);
    else
      add(is_inside ? glyphs.range : glyphs.empty, Style::faint);
  }
  return spans;
}

std::int64_t scale_of(const BufferView& b) {
  const std::int64_t most = std::max(
      {b.occupancy_bytes, b.target_bytes, b.under_bytes.value_or(0), b.over_bytes.value_or(0),
       b.over_bytes ? std::int64_t{1} : b.limit_bytes, std::int64_t{1000}});
  // 1, 2, 5, 10 ...: the bar's end stays where it is while occupancy moves.
  if (!b.under_bytes && !b.over_bytes && b.limit_bytes <= 0 && b.capacity_bytes >= most)
    return b.capacity_bytes;
  std::int64_t base = 1000;
  while (base < INT64_MAX / 20 && base * 10 < most) base *= 10;
  std::int64_t scale = base >= most       ? base
                       : base * 2 >= most ? base * 2
                       : base * 5 >= most ? base * 5
                                          : base * 10;
  if (b.capacity_bytes > 0 && b.capacity_bytes >= most && b.capacity_bytes < scale)
    scale = b.capacity_bytes;
  return scale;
}

}  // namespace onehop::watch
