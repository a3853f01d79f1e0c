// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// One buffer as a bar.
#include <algorithm>
#include <cmath>

#include "tools/watch/screen.hpp"

namespace onehop::watch {

namespace {

struct Glyphs {
  std::string_view held, held_outside, range, empty, target;
};
constexpr Glyphs unicode{"█", "▓", "░", " ", "│"};
constexpr Glyphs ascii{"#", "*", "-", " ", "|"};

Style style_of(const BufferView& b) {
  if (b.over && b.occupancy > *b.over) return Style::high;
  if (b.under && b.occupancy < *b.under) return Style::low;
  return Style::good;
}

}  // namespace

std::vector<Span> bar_of(const BufferView& b, Bytes scale, std::size_t width, bool is_utf8) {
  const Glyphs& glyphs = is_utf8 ? unicode : ascii;
  const double end = std::max(1.0, static_cast<double>(scale.count));
  const auto cells = static_cast<double>(width);
  // A column stands for what lies between its edges; what is held shows from the first half column on.
  const auto column = [&](Bytes x) { return static_cast<std::int64_t>(std::llround(static_cast<double>(x.count) / end * cells)); };
  const std::int64_t held = column(b.occupancy);
  const std::int64_t from = column(b.under.value_or(Bytes{})), to = b.over ? column(*b.over) : b.under ? static_cast<std::int64_t>(width) : 0;
  const std::int64_t mark = b.target > Bytes{0} ? std::clamp<std::int64_t>(column(b.target), 0, static_cast<std::int64_t>(width) - 1) : -1;
  std::vector<Span> spans;
  const auto add = [&](std::string_view text, Style style) {
    if (spans.empty() || spans.back().style != style) spans.push_back({"", style});
    spans.back().text += text;
  };
  const Style held_style = style_of(b);
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(width); ++i) {
    const bool is_inside = i >= from && i < to;
    if (i == mark) add(glyphs.target, Style::strong);
    else if (i < held) add(is_inside || to == 0 ? glyphs.held : glyphs.held_outside, held_style);
    else add(is_inside ? glyphs.range : glyphs.empty, Style::faint);
  }
  return spans;
}

Bytes scale_of(const BufferView& b) {
  const std::int64_t most = std::max({b.occupancy.count, b.target.count, b.under.value_or(Bytes{}).count, b.over.value_or(Bytes{}).count,
                                      b.over ? std::int64_t{1} : b.limit.count, std::int64_t{1000}});
  // 1, 2, 5, 10 ...: the bar's end stays where it is while occupancy moves.
  if (!b.under && !b.over && b.limit <= Bytes{0} && b.capacity.count >= most) return b.capacity;
  std::int64_t base = 1000;
  while (base < INT64_MAX / 20 && base * 10 < most) base *= 10;
  std::int64_t scale = base >= most ? base : base * 2 >= most ? base * 2 : base * 5 >= most ? base * 5 : base * 10;
  if (b.capacity > Bytes{0} && b.capacity.count >= most && b.capacity.count < scale) scale = b.capacity.count;
  return {scale};
}

}  // namespace onehop::watch
