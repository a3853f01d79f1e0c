// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/labs/plot/svg.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

namespace onehop::plot {

namespace {

constexpr int left = 66, right = 12, top = 10, bottom = 46;

const char* dash_array_of(Stroke stroke) {
  switch (stroke) {
    case Stroke::solid: return "";
    case Stroke::dashed: return " stroke-dasharray=\"7 4\"";
    case Stroke::dotted: return " stroke-dasharray=\"2 3\"";
  }
  return "";
}

class Canvas {
 public:
  Canvas(const Plate& plate, const SvgSize& size) : plate_{plate}, size_{size} {}

  std::string draw(const Figure& figure, std::string_view label) {
    put("<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">", size_.width, size_.height,
        escape(fmt::format("{}, {}", plate_.title, label)));
    x_max_ = figure.x_max;
    y_max_ = figure.y_max;
    grid();
    // A picture within the picture is cut at its edges.
    put("<svg x=\"{0}\" y=\"{1}\" width=\"{2}\" height=\"{3}\" viewBox=\"{0} {1} {2} {3}\" "
        "overflow=\"hidden\">",
        left, top, size_.width - left - right, size_.height - top - bottom);
    stack(figure.stack);
    for (const Band& band : figure.bands) area(band);
    for (const Curve& curve : figure.curves) line(curve);
    out_ += "</svg>";
    frame();
    out_ += "</svg>";
    return std::move(out_);
  }

 private:
  template <class... Args>
  void put(fmt::format_string<Args...> text, Args&&... args) {
    fmt::format_to(std::back_inserter(out_), text, std::forward<Args>(args)...);
  }
  [[nodiscard]] double x(double value) const {
    return left + value / x_max_ * (size_.width - left - right);
  }
  /// Beyond the axis by a little: the clip cuts it there, and numbers stay short.
  [[nodiscard]] double y(double value) const {
    const double share = std::clamp(value / y_max_, -0.05, 1.05);
    return size_.height - bottom - share * (size_.height - top - bottom);
  }
  /// at writes a point with a tenth of a unit, which is finer than a pixel.
  void at(double px, double py) {
    put("{:.6g} {:.6g} ", std::round(px * 10) / 10, std::round(py * 10) / 10);
  }

  void grid() {
    for (const double tick : ticks_of(y_max_, 6)) {
      put("<path class=\"g\" d=\"M{} {:.1f}H{}\"/>", left, y(tick), size_.width - right);
      put("<text x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>", left - 7, y(tick) + 4.5,
          tick_text(tick));
    }
    for (const double tick : ticks_of(x_max_, 9)) {
      put("<path class=\"g\" d=\"M{:.1f} {}V{}\"/>", x(tick), top, size_.height - bottom);
      put("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{}</text>", x(tick),
          size_.height - bottom + 18, tick_text(tick));
    }
  }
  void frame() {
    put("<path class=\"f\" d=\"M{0} {1}V{2}H{3}\"/>", left, top, size_.height - bottom,
        size_.width - right);
    put("<text class=\"a\" x=\"{}\" y=\"{}\" text-anchor=\"middle\">time [s]</text>",
        (left + size_.width - right) / 2, size_.height - 8);
    put("<text class=\"a\" transform=\"translate(15 {}) rotate(-90)\" "
        "text-anchor=\"middle\">{}</text>",
        (top + size_.height - bottom) / 2, escape(plate_.y_label));
  }

  void line(const Curve& curve) {
    if (curve.points.empty()) return;
    put("<path fill=\"none\" stroke=\"{}\" stroke-width=\"{}\"{} d=\"M", hex_of(curve.ink),
        curve.stroke == Stroke::solid ? "1.5" : "1.7", dash_array_of(curve.stroke));
    for (std::size_t i = 0; i < curve.points.size(); ++i) {
      // Of a run of equal values the first and the last say all.
      const auto level = [&](std::size_t k) { return std::round(y(curve.points[k].y) * 10); };
      if (i > 0 && i + 1 < curve.points.size() && level(i - 1) == level(i) &&
          level(i) == level(i + 1))
        continue;
      at(x(curve.points[i].x), y(curve.points[i].y));
    }
    if (curve.points.size() == 1) at(x(curve.points[0].x) + 1, y(curve.points[0].y));
    out_ += "\"/>";
  }

  void area(const Band& band) {
    // A range that is empty for a while is drawn in pieces.
    for (std::size_t begin = 0; begin < band.points.size();) {
      if (band.points[begin].high < band.points[begin].low) {
        ++begin;
        continue;
      }
      std::size_t end = begin;
      while (end < band.points.size() && band.points[end].high >= band.points[end].low) ++end;
      put("<path fill=\"{}\" fill-opacity=\"{}\" d=\"M", hex_of(band.ink), band.opacity);
      for (std::size_t i = begin; i < end; ++i) at(x(band.points[i].x), y(band.points[i].high));
      for (std::size_t i = end; i > begin; --i)
        at(x(band.points[i - 1].x), y(band.points[i - 1].low));
      out_ += "Z\"/>";
      begin = end;
    }
  }

  void stack(const Stack& stack) {
    std::vector<double> base(stack.x.size(), 0);
    for (const Share& share : stack.shares) {
      put("<path fill=\"{}\" d=\"", hex_of(share.ink));
      for (std::size_t begin = 0; begin < stack.x.size();) {
        // Neighbours with the same share are one rectangle.
        std::size_t end = begin + 1;
        while (end < stack.x.size() && share.parts[end] == share.parts[begin] &&
               base[end] == base[begin])
          ++end;
        const double until = end < stack.x.size() ? stack.x[end] : stack.end;
        if (share.parts[begin] > 0) {
          out_ += 'M';
          at(x(stack.x[begin]), y(base[begin]));
          put("H{:.1f}V{:.1f}H{:.1f}Z", x(until), y(base[begin] + share.parts[begin]),
              x(stack.x[begin]));
        }
        begin = end;
      }
      out_ += "\"/>";
      for (std::size_t i = 0; i < base.size(); ++i) base[i] += share.parts[i];
    }
  }

  const Plate& plate_;
  const SvgSize size_;
  double x_max_ = 1, y_max_ = 1;
  std::string out_;
};

}  // namespace

std::string svg_of(const Plate& plate, const Figure& figure, std::string_view run_label,
                   const SvgSize& size) {
  return Canvas{plate, size}.draw(figure, run_label);
}

std::string swatch_of(Ink ink, Stroke stroke) {
  return fmt::format(
      "<svg class=\"k\" viewBox=\"0 0 26 12\" aria-hidden=\"true\"><path fill=\"none\" "
      "stroke=\"{}\" stroke-width=\"2.4\"{} d=\"M0 6H26\"/></svg>",
      hex_of(ink), dash_array_of(stroke));
}

std::string swatch_of(Ink ink, double opacity) {
  return fmt::format(
      "<svg class=\"k\" viewBox=\"0 0 26 12\" aria-hidden=\"true\"><path fill=\"{}\" "
      "fill-opacity=\"{}\" d=\"M0 0H26V12H0Z\"/></svg>",
      hex_of(ink), opacity);
}

std::string escape(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      case '\'': out += "&#39;"; break;
      default: out += static_cast<unsigned char>(c) < ' ' || c == '\x7f' ? '?' : c;
    }
  }
  return out;
}

}  // namespace onehop::plot
