// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/plot/figure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

namespace onehop::plot {

namespace {

constexpr double mbit = 8e-6;   // of bytes per second
constexpr double ms = 1e-6;     // of ns
constexpr std::array<const char*, 3> buffer_titles{"Our queue to the link (tx queue)", "Receiver's ring", "Receiver's blocks on the way to disk"};
// A range that ends this many times above all that is held would press the curve flat on the axis: it is cut, and that is said.
constexpr double range_view = 4;

double x_of(const RunData& run, std::size_t bucket) {
  const double width = std::chrono::duration<double>(run.samples.width()).count();
  return std::min((static_cast<double>(bucket) + 0.5) * width, std::max(std::chrono::duration<double>(run.span).count(), 1e-3));
}

Curve curve_of(const RunData& run, std::size_t quantity, double unit, std::string label, Ink ink, Stroke stroke = Stroke::solid) {
  Curve curve{std::move(label), ink, stroke, {}};
  const auto& buckets = run.samples.series(quantity);
  for (std::size_t i = 0; i < buckets.size(); ++i)
    if (!buckets[i].is_empty()) curve.points.push_back({x_of(run, i), buckets[i].mean() * unit});
  return curve;
}

Band envelope_of(const RunData& run, std::size_t quantity, double unit, std::string label, Ink ink) {
  Band band{std::move(label), ink, 0.22, {}};
  const auto& buckets = run.samples.series(quantity);
  for (std::size_t i = 0; i < buckets.size(); ++i)
    if (!buckets[i].is_empty()) band.points.push_back({x_of(run, i), buckets[i].least * unit, buckets[i].most * unit});
  return band;
}

void add_curve(const RunData& run, Figure& figure, std::size_t quantity, double unit, const char* label, Ink ink, Stroke stroke = Stroke::solid) {
  if (run.has(quantity) && (run.whole[quantity].most > 0 || quantity == granted)) figure.curves.push_back(curve_of(run, quantity, unit, label, ink, stroke));
}

/// fit sets the axis to what the curves reach but for their highest peaks, which would press all else flat; that is said.
void fit(Figure& f, std::size_t curves, const char* unit) {
  std::vector<double> values;
  for (std::size_t i = 0; i < std::min(curves, f.curves.size()); ++i)
    for (const Point& point : f.curves[i].points) values.push_back(point.y);
  if (values.empty()) return;
  std::ranges::sort(values);
  const double usual = values[values.size() - 1 - values.size() / 100], most = values.back();
  f.y_max = 1.1 * (most > 2 * usual && usual > 0 ? 1.3 * usual : most);
  if (most > f.y_max) f.note = fmt::format("peaks reach {} {}, above the axis", tick_text(std::round(most)), unit);
}

Figure rates(const RunData& run) {
  Figure f{.title = "Rates", .y_label = "rate [Mbit/s]"};
  if (run.has(granted)) f.bands.push_back(envelope_of(run, granted, mbit, "granted, least to most", Ink::blue));
  if (!run.is_receiving()) add_curve(run, f, of(0, drain), mbit, "drained by the link", Ink::orange);
  else add_curve(run, f, of(1, drain), mbit, "taken from our ring", Ink::orange);
  add_curve(run, f, granted, mbit, "granted", Ink::blue);
  const std::size_t fitted = f.curves.size();
  add_curve(run, f, of(2, drain), mbit, "what the receiver's disk takes", Ink::green, Stroke::dashed);
  add_curve(run, f, link_rate, mbit, "rate of the link's physical layer", Ink::black, Stroke::dotted);
  fit(f, fitted, "Mbit/s");
  if (run.has(link_rate)) {
    const double link = run.whole[link_rate].most * mbit;
    if (link <= 2.5 * f.y_max) f.y_max = std::max(f.y_max, 1.05 * link);
    else f.note += fmt::format("{}the physical layer's rate, {:.0f} Mbit/s, is above the axis", f.note.empty() ? "" : "; ", link);
  }
  return f;
}

Figure buffer(const RunData& run, std::size_t b) {
  Figure f{.title = buffer_titles[b], .y_label = "held [kB]"};
  const double unit = 1e-3;
  const auto most = [&](BufferQuantity q) { return run.has(of(b, q)) ? run.whole[of(b, q)].most * unit : 0; };
  if (!run.has(of(b, occupancy)) || (most(occupancy) <= 0 && most(target) <= 0)) return {};
  const double high = std::max(1.1 * most(occupancy), 1.3 * most(target));
  f.y_max = high;
  const double end = std::max(most(over), most(limit));
  if (end > 0 && end <= range_view * high) f.y_max = std::max(high, 1.05 * end);
  else if (most(over) > 0) f.note = fmt::format("the safe range ends at up to {} kB, above the axis", tick_text(std::round(most(over))));
  if (run.has(of(b, under)) || run.has(of(b, over))) {
    Band range{"safe range", Ink::green, 0.18, {}};
    const auto& low = run.samples.series(of(b, under));
    const auto& top = run.samples.series(of(b, over));
    for (std::size_t i = 0; i < run.samples.size(); ++i) {
      const bool has_low = i < low.size() && !low[i].is_empty(), has_top = i < top.size() && !top[i].is_empty();
      if (has_low || has_top) range.points.push_back({x_of(run, i), has_low ? low[i].mean() * unit : 0, has_top ? top[i].mean() * unit : f.y_max});
    }
    f.bands.push_back(std::move(range));
  }
  f.bands.push_back(envelope_of(run, of(b, occupancy), unit, "held, least to most", Ink::blue));
  f.curves.push_back(curve_of(run, of(b, occupancy), unit, "held, mean", Ink::blue));
  add_curve(run, f, of(b, target), unit, "target", Ink::black, Stroke::dashed);
  if (end > 0 && end <= range_view * high) add_curve(run, f, of(b, limit), unit, "limit (X max)", Ink::vermillion, Stroke::dotted);
  return f;
}

Figure bottleneck(const RunData& run) {
  static constexpr std::array<Ink, bottleneck_names.size()> inks{Ink::blue, Ink::orange, Ink::purple, Ink::grey, Ink::vermillion, Ink::sky};
  static constexpr std::array<const char*, bottleneck_names.size()> labels{"the link", "the receiver's ring", "the receiver's disk", "the source: no data ready",
                                                                           "a cap", "none named"};
  Figure f{.title = "Bottleneck", .y_label = "share of time [%]", .y_max = 100};
  const auto& time = run.samples.series(elapsed);
  std::vector<std::size_t> used;
  for (std::size_t i = 0; i < time.size(); ++i)
    if (time[i].sum > 0) used.push_back(i);
  if (used.empty()) return {};
  const double width = std::chrono::duration<double>(run.samples.width()).count();
  for (const std::size_t i : used) f.stack.x.push_back(static_cast<double>(i) * width);
  f.stack.end = std::chrono::duration<double>(run.span).count();
  for (std::size_t k = 0; k < bottleneck_names.size(); ++k) {
    if (run.share(k) <= 0) continue;
    Share share{labels[k], inks[k], {}};
    const auto& spent = run.samples.series(bottleneck_first + k);
    for (const std::size_t i : used) share.parts.push_back(i < spent.size() && !spent[i].is_empty() ? 100 * spent[i].sum / time[i].sum : 0);
    f.stack.shares.push_back(std::move(share));
  }
  return f;
}

Figure delay(const RunData& run) {
  Figure f{.title = "Delay", .y_label = "delay [ms]"};
  if (run.has(srtt)) f.bands.push_back(envelope_of(run, srtt, ms, "round trip, least to most", Ink::purple));
  add_curve(run, f, srtt, ms, "round trip, smoothed", Ink::purple);
  add_curve(run, f, queue_delay, ms, "time in our queue (held / drain)", Ink::blue, Stroke::dashed);
  if (f.curves.empty()) return {};
  double most = run.has(srtt) ? run.whole[srtt].most * ms : 0;
  for (const auto& bucket : run.samples.series(queue_delay))
    if (!bucket.is_empty()) most = std::max(most, bucket.mean() * ms);
  f.y_max = 1.1 * most;
  return f;
}

/// per_second is a quantity that is counted per row, over the time that its bucket stands for.
Curve per_second(const RunData& run, std::size_t quantity, double unit, std::string label, Ink ink) {
  Curve curve{std::move(label), ink, Stroke::solid, {}};
  const auto& counts = run.samples.series(quantity);
  const auto& time = run.samples.series(elapsed);
  for (std::size_t i = 0; i < counts.size() && i < time.size(); ++i)
    if (!counts[i].is_empty() && time[i].sum > 0) curve.points.push_back({x_of(run, i), counts[i].sum / (time[i].sum * 1e-9) * unit});
  return curve;
}

Figure counted(const RunData& run, std::string title, std::string y_label, std::vector<std::tuple<std::size_t, double, const char*, Ink>> what) {
  Figure f{.title = std::move(title), .y_label = std::move(y_label)};
  for (const auto& [quantity, unit, label, ink] : what)
    if (run.has(quantity) && run.whole[quantity].most > 0) f.curves.push_back(per_second(run, quantity, unit, label, ink));
  fit(f, f.curves.size(), f.y_label.ends_with(']') ? "%" : "per second");
  return f;
}

/// use_megabytes is for buffers whose kilobytes would have more than four digits.
void use_megabytes(Plate& plate) {
  if (plate.y_label != "held [kB]" || plate.y_max < 10'000) return;
  plate.y_label = "held [MB]";
  plate.y_max *= 1e-3;
  for (Figure& figure : plate.figures) {
    figure.y_max *= 1e-3;
    for (Band& band : figure.bands)
      for (Interval& i : band.points) i = {i.x, i.low * 1e-3, i.high * 1e-3};
    for (Curve& curve : figure.curves)
      for (Point& point : curve.points) point.y *= 1e-3;
  }
}

}  // namespace

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
  const double rough = most / std::max(wanted, 1), base = std::pow(10, std::floor(std::log10(rough)));
  const double step = rough <= base ? base : rough <= 2 * base ? 2 * base : rough <= 5 * base ? 5 * base : 10 * base;
  std::vector<double> ticks;
  for (int i = 0; i <= 2 * wanted + 1 && i * step <= most * (1 + 1e-9); ++i) ticks.push_back(i * step);
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

std::vector<Plate> plates_of(const std::vector<RunData>& runs) {
  const std::vector<std::tuple<const char*, const char*, std::function<Figure(const RunData&)>>> kinds{
      {"rates", "What the law grants, what the link drains, and what the receiver takes to its disk.", rates},
      {"tx_queue", "Held within the safe range, the link neither runs dry nor does the queue overflow.", [](const RunData& r) { return buffer(r, 0); }},
      {"rx_ring", "As the receiver reports it.", [](const RunData& r) { return buffer(r, 1); }},
      {"app_buffer", "As the receiver reports it.", [](const RunData& r) { return buffer(r, 2); }},
      {"bottleneck", "The term that was the smallest, and so set the rate.", bottleneck},
      {"delay", "Smoothed round trip, and the time that a frame waits in our queue.", delay},
      {"cpu", "All threads of this end, user and system time; 100 % is one core.",
       [](const RunData& r) { return counted(r, "CPU", "CPU time [% of a core]", {{cpu_step, 1e-7, "this process", Ink::vermillion}}); }},
      {"wakeups", "What the engine core does for its bursts.",
       [](const RunData& r) {
         return counted(r, "Wake-ups and system calls", "per second", {{wakeups, 1, "wake-ups", Ink::blue}, {syscalls, 1, "system calls", Ink::orange}});
       }},
      {"losses", "Lost: told by the receiver. Refused: our own queue did not take it.",
       [](const RunData& r) {
         return counted(r, "Losses", "packets per second", {{lost_step, 1, "lost", Ink::vermillion}, {refused_step, 1, "refused", Ink::purple}});
       }}};
  std::vector<Plate> plates;
  double x_max = 0;
  for (const RunData& run : runs) x_max = std::max(x_max, std::chrono::duration<double>(run.span).count());
  for (const auto& [id, caption, make] : kinds) {
    Plate plate{.id = id, .title = {}, .y_label = {}, .caption = caption, .figures = {}, .x_max = std::max(x_max, 1e-3), .y_max = 0};
    for (const RunData& run : runs) {
      Figure figure = make(run);
      if (!figure.is_empty()) {
        plate.title = figure.title;
        plate.y_label = figure.y_label;
        plate.y_max = std::max(plate.y_max, figure.y_max);
      }
      plate.figures.push_back(std::move(figure));
    }
    if (!(plate.y_max > 0)) plate.y_max = 1;
    use_megabytes(plate);
    if (!plate.title.empty()) plates.push_back(std::move(plate));
  }
  return plates;
}

}  // namespace onehop::plot
