// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Axes of the figures of a plate: common ones, but for runs that would be lost on them.
#include <algorithm>

#include "tools/labs/plot/figure.hpp"

namespace onehop::plot {

namespace {

// A run that needs less than this part of the axis of another one gets an axis of its own: lines
// would lie flat on it.
constexpr double own_axis_factor = 5;

/// use_thousands is for axes whose numbers would have more than four digits, and run into the
/// label.
void use_thousands(Plate& plate) {
  const auto is_large = [](const Figure& figure) { return figure.y_max >= 10'000; };
  if (std::ranges::none_of(plate.figures, is_large)) return;
  if (plate.y_label == "held [kB]")
    plate.y_label = "held [MB]";
  else if (plate.y_label.ends_with("per second"))
    plate.y_label = "thousand " + plate.y_label;
  else
    return;
  for (Figure& figure : plate.figures) {
    figure.y_max *= 1e-3;
    for (Band& band : figure.bands)
      for (Interval& i : band.points) i = {i.x, i.low * 1e-3, i.high * 1e-3};
    for (Curve& curve : figure.curves)
      for (Point& point : curve.points) point.y *= 1e-3;
  }
}

/// join_axis gives the figures a common axis, from the largest down: what would be lost on it
/// begins another one.
void join_axis(std::vector<Figure*> figures, double Figure::*axis, const char* note) {
  std::ranges::sort(figures, [&](const Figure* a, const Figure* b) { return a->*axis > b->*axis; });
  double common = figures.empty() ? 0 : figures.front()->*axis;
  const double largest = common;
  for (Figure* figure : figures) {
    if (figure->*axis * own_axis_factor < common) common = figure->*axis;
    figure->*axis = common;
    if (common < largest && !figure->is_empty()) figure->add_note(note);
  }
}

}  // namespace

void join_axes(Plate& plate) {
  std::vector<Figure*> all, drawn;
  for (Figure& figure : plate.figures) {
    all.push_back(&figure);
    if (!figure.is_empty()) drawn.push_back(&figure);
  }
  join_axis(all, &Figure::x_max, "a time axis of its own");
  join_axis(drawn, &Figure::y_max, "a scale of its own");
  use_thousands(plate);
}

}  // namespace onehop::plot
