// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// What every picture says beside its curves: colours, ticks of an axis, and the legend.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tools/labs/plot/figure.hpp"

namespace onehop::plot {

const char* hex_of(Ink ink) noexcept {
  switch (ink) {
    case Ink::blue: return "#0072B2";
    case Ink::orange: return "#E69F00";
    case Ink::green: return "#009E73";
    case Ink::vermillion: return "#D55E00";
    case Ink::purple: return "#CC79A7";
    case Ink::sky: return "#56B4E9";
    case Ink::grey: return "#999999";
    case Ink::black: return "#222222";
  }
  return "#222222";
}

std::vector<double> ticks_of(double most, int wanted) {
  if (!(most > 0) || !std::isfinite(most)) return {0};
  const double rough = most / std::max(wanted, 1),
               base = std::pow(10, std::floor(std::log10(rough)));
  const double share = rough / base * (1 - 1e-9);
  const double step = share <= 1 ? base : share <= 2 ? 2 * base : share <= 5 ? 5 * base : 10 * base;
  std::vector<double> ticks;
  for (int i = 0; i <= 2 * wanted + 1 && i * step <= most * (1 + 1e-9); ++i)
    ticks.push_back(i * step);
  return ticks;
}

std::string tick_text(double value) {
  const std::string text = fmt::format("{:.6g}", value);
  if (value < 10'000 || text.find_first_of(".e") != std::string::npos) return text;
  std::string grouped;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (i > 0 && (text.size() - i) % 3 == 0) grouped += ' ';
    grouped += text[i];
  }
  return grouped;
}

std::vector<Entry> legend_of(const Plate& plate) {
  std::vector<Entry> entries;
  const auto add = [&](Entry entry) {
    if (std::ranges::find(entries, entry.label, &Entry::label) == entries.end())
      entries.push_back(std::move(entry));
  };
  for (const Figure& figure : plate.figures) {
    for (const Curve& curve : figure.curves)
      add({.label = curve.label, .ink = curve.ink, .stroke = curve.stroke});
    for (const Band& band : figure.bands)
      add({.label = band.label, .ink = band.ink, .is_area = true, .opacity = band.opacity + 0.08});
    for (const Share& share : figure.stack.shares)
      add({.label = share.label, .ink = share.ink, .is_area = true});
  }
  return entries;
}

}  // namespace onehop::plot
