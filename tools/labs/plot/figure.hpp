// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Figure: one picture of one run, as numbers: lines, areas and stacked shares over time. Both
// writers (SVG in the page, gnuplot) draw the same figures. Pure.
//
//   RunData ──▶ figures_of() ──▶ Figure ──┬─▶ svg.cpp ─▶ page.cpp (HTML)
//                                         └─▶ gnuplot.cpp (SVG, PNG)
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "tools/labs/plot/run_data.hpp"

namespace onehop::plot {

/// Ink: colours that colour-blind people tell apart (Okabe and Ito, "Color Universal Design",
/// 2008), by what they stand for.
enum class Ink { blue, orange, green, vermillion, purple, sky, grey, black };
[[nodiscard]] const char* hex_of(Ink ink) noexcept;

enum class Stroke { solid, dashed, dotted };

struct Point {
  double x = 0, y = 0;
};
struct Curve {
  std::string label;
  Ink ink = Ink::black;
  Stroke stroke = Stroke::solid;
  std::vector<Point> points;
};
struct Interval {
  double x = 0, low = 0, high = 0;
};
/// Band: between low and high; where high <= low nothing is drawn.
struct Band {
  std::string label;
  Ink ink = Ink::grey;
  double opacity = 0.2;
  std::vector<Interval> points;
};
/// Stack: shares of each moment, that add up to 100.
struct Share {
  std::string label;
  Ink ink = Ink::grey;
  std::vector<double> parts;  // by Stack::x
};
struct Stack {
  std::vector<double> x;  // left edges
  double end = 0;
  std::vector<Share> shares;
};

struct Figure {
  std::string title;    ///< the same for all runs
  std::string y_label;  ///< with its unit
  std::vector<Band> bands;
  std::vector<Curve> curves;
  Stack stack;
  std::string note;             ///< what the axis does not show
  double x_max = 1, y_max = 1;  ///< ends of the axes, in seconds and in y_label's unit
  void add_note(const std::string& text) { note += (note.empty() ? "" : "; ") + text; }
  [[nodiscard]] bool is_empty() const {
    return bands.empty() && curves.empty() && stack.shares.empty();
  }
};

/// Plate: the same figure of each run, on common axes, but for runs that would be lost on them:
/// those have axes of their own, and say so. Figures by run; one may be empty.
struct Plate {
  std::string id, title, y_label, caption;
  std::vector<Figure> figures;
};

/// join_axes gives the figures of a plate common axes, and units of few digits.
void join_axes(Plate& plate);

inline constexpr std::array<std::string_view, 14> plate_names{
    "rates",   "tx_queue", "rx_ring", "app_buffer", "bottleneck", "delay",      "cpu",
    "wakeups", "losses",   "rx",      "tx",         "fill",       "completion", "drops"};

/// plates_of makes the plates that at least one run has data for, of `only` alone where that is not
/// empty. Times are seconds since each run's first row.
[[nodiscard]] std::vector<Plate> plates_of(const std::vector<RunData>& runs,
                                           const std::vector<std::string>& only = {});

/// Entry: what stands in a plate's legend, once per label.
struct Entry {
  std::string label;
  Ink ink = Ink::grey;
  bool is_area = false;
  Stroke stroke = Stroke::solid;  ///< of a line
  double opacity = 1;             ///< of an area
};
[[nodiscard]] std::vector<Entry> legend_of(const Plate& plate);

/// ticks_of gives round numbers from 0 to at most `most`, not more than `wanted` steps of them.
[[nodiscard]] std::vector<double> ticks_of(double most, int wanted);
/// tick_text writes one without digits that say nothing.
[[nodiscard]] std::string tick_text(double value);

}  // namespace onehop::plot
