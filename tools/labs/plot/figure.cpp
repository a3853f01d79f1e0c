// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/labs/plot/figure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

namespace onehop::plot {

namespace {

constexpr double mbit = 8e-6;  // of bytes per second
constexpr double ms = 1e-6;    // of ns
constexpr std::array<const char*, 3> buffer_titles{
    "Our queue to the link (tx queue)", "Receiver's ring", "Receiver's blocks on the way to disk"};
// A range that ends this many times above all that is held would press the curve flat on the axis:
// it is cut, and that is said.
constexpr double range_view = 4;
// What is counted is shown as means over at least this time: the engine core works in bursts of up
// to 3 ms.
constexpr Nanos counting_min{20ms};

double x_of(const RunData& run, std::size_t bucket) {
  const double width = std::chrono::duration<double>(run.samples.width()).count();
  return std::min((static_cast<double>(bucket) + 0.5) * width,
                  std::max(std::chrono::duration<double>(run.span).count(), 1e-3));
}

Curve curve_of(const RunData& run, std::size_t quantity, double unit, std::string label, Ink ink,
               Stroke stroke = Stroke::solid) {
  Curve curve{std::move(label), ink, stroke, {}};
  const auto& buckets = run.samples.series(quantity);
  for (std::size_t i = 0; i < buckets.size(); ++i)
    if (!buckets[i].is_empty()) curve.points.push_back({x_of(run, i), buckets[i].mean() * unit});
  return curve;
}

Band envelope_of(const RunData& run, std::size_t quantity, double unit, std::string label,
                 Ink ink) {
  Band band{std::move(label), ink, 0.22, {}};
  const auto& buckets = run.samples.series(quantity);
  for (std::size_t i = 0; i < buckets.size(); ++i)
    if (!buckets[i].is_empty())
      band.points.push_back({x_of(run, i), buckets[i].least * unit, buckets[i].most * unit});
  return band;
}

void add_curve(const RunData& run, Figure& figure, std::size_t quantity, double unit,
               const char* label, Ink ink, Stroke stroke = Stroke::solid) {
  if (run.has(quantity) && (run.whole[quantity].most > 0 || quantity == granted))
    figure.curves.push_back(curve_of(run, quantity, unit, label, ink, stroke));
}

/// fit sets the axis to what the curves reach but for their highest peaks, which would press all
/// else flat; that is said.
void fit(Figure& f, std::size_t curves, const char* unit) {
  std::vector<double> values;
  for (std::size_t i = 0; i < std::min(curves, f.curves.size()); ++i)
    for (const Point& point : f.curves[i].points) values.push_back(point.y);
  if (values.empty()) return;
  std::ranges::sort(values);
  const double usual = values[values.size() - 1 - values.size() / 100], most = values.back();
  f.y_max = 1.1 * (most > 2 * usual && usual > 0 ? 1.3 * usual : most);
  if (most > f.y_max)
    f.note = fmt::format("peaks reach {} {}, above the axis", tick_text(std::round(most)), unit);
}

/// per_second is a quantity that is counted per row, over the time in which it was.
Curve per_second(const RunData& run, std::size_t quantity, double unit, std::string label,
                 Ink ink) {
  Curve curve{std::move(label), ink, Stroke::solid, {}};
  const auto& counts = run.samples.series(quantity);
  const auto& time = run.samples.series(elapsed);
  const std::size_t group = static_cast<std::size_t>(
      (counting_min + run.samples.width() - Nanos{1}) / run.samples.width());
  const std::size_t size = std::min(counts.size(), time.size());
  for (std::size_t i = 0, end = 0; i < size; i = end) {
    end = i + 2 * group > size ? size : i + group;  // the last one is longer, not shorter
    double count = 0, spent = 0;
    for (std::size_t k = i; k < end; ++k)
      if (!counts[k].is_empty()) count += counts[k].sum, spent += time[k].sum;
    if (spent > 0)
      curve.points.push_back(
          {(x_of(run, i) + x_of(run, end - 1)) / 2, count / (spent * 1e-9) * unit});
  }
  return curve;
}

/// capacity_of draws the steps of the link's capacity.
Curve capacity_of(const RunData& run) {
  Curve curve{"capacity of the link", Ink::black, Stroke::dashed, {}};
  const std::vector<RateStep> steps = run.capacity.between(run.first, run.first + run.span);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const Nanos until = i + 1 < steps.size() ? steps[i + 1].at : run.first + run.span;
    for (const Nanos at : {steps[i].at, until})
      curve.points.push_back({std::chrono::duration<double>(at - run.first).count(),
                              static_cast<double>(steps[i].rate.count) * mbit});
  }
  return curve;
}

Figure rates(const RunData& run) {
  // All in whole frames, as the capacity of a link is.
  const double wire = run.wire_per_payload() * mbit;
  Figure f{.title = "Rates", .y_label = "rate on the link [Mbit/s]"};
  if (run.has(granted))
    f.bands.push_back(envelope_of(run, granted, mbit, "granted, least to most", Ink::blue));
  if (run.is_receiving())
    add_curve(run, f, of(1, drain), wire, "taken from our ring", Ink::orange);
  else if (run.has(drained_step))
    f.curves.push_back(per_second(run, drained_step, mbit, "left our queue", Ink::orange));
  add_curve(run, f, granted, mbit, "granted", Ink::blue);
  if (!run.is_receiving())
    add_curve(run, f, of(0, drain), wire, "drain of the link, as the law measures it", Ink::sky,
              Stroke::dotted);
  const std::size_t fitted = f.curves.size();
  add_curve(run, f, of(2, drain), wire, "what the receiver's disk takes", Ink::green,
            Stroke::dashed);
  add_curve(run, f, link_rate, mbit, "rate of the link's physical layer", Ink::black,
            Stroke::dotted);
  fit(f, fitted, "Mbit/s");
  const auto reach = [&](double most, double view, const char* what) {
    if (most <= view * f.y_max)
      f.y_max = std::max(f.y_max, 1.05 * most);
    else
      f.add_note(
          fmt::format("{} reaches {} Mbit/s, above the axis", what, tick_text(std::round(most))));
  };
  if (run.capacity.is_known()) {
    f.curves.push_back(capacity_of(run));
    double most = 0;
    for (const Point& point : f.curves.back().points) most = std::max(most, point.y);
    reach(most, 4, "the capacity");
  }
  if (run.has(link_rate)) reach(run.whole[link_rate].most * mbit, 2.5, "the physical layer's rate");
  if (run.has(of(2, drain))) reach(run.whole[of(2, drain)].most * wire, 1, "what the disk takes");
  if (run.wire_per_payload() <= 1)
    f.add_note("this trace does not say what headers add: drains are of payload");
  return f;
}

/// add_ranges draws the safe range where there is one, and where its ends have crossed, that.
void add_ranges(const RunData& run, std::size_t b, double unit, Figure& f) {
  Band range{"safe range", Ink::green, 0.18, {}},
      crossed{"no safe range: may run dry and overflow", Ink::vermillion, 0.13, {}};
  const auto& low = run.samples.series(of(b, under));
  const auto& top = run.samples.series(of(b, over));
  bool has_crossed = false;
  for (std::size_t i = 0; i < run.samples.size(); ++i) {
    const bool has_low = i < low.size() && !low[i].is_empty(),
               has_top = i < top.size() && !top[i].is_empty();
    if (!has_low && !has_top) continue;
    range.points.push_back({x_of(run, i), has_low ? low[i].mean() * unit : 0,
                            has_top ? top[i].mean() * unit : f.y_max});
    const Interval& last = range.points.back();
    crossed.points.push_back({last.x, last.high, last.low});
    has_crossed = has_crossed || last.high < last.low;
  }
  if (!range.points.empty()) f.bands.push_back(std::move(range));
  if (has_crossed) f.bands.push_back(std::move(crossed));
  const RangeShare& share = run.ranges[b];
  if (share.known() > 0 && share.none / share.known() >= 0.005)
    f.add_note(fmt::format("for {:.0f} % of the time it was too small for a safe range",
                           100 * share.none / share.known()));
}

/// Reach: what the axis of a buffer's figures has to show (`high`), and where its safe ranges end.
/// In kB, over all runs, so that one run's range is not cut where another one's is shown.
struct Reach {
  double high = 0, end = 0;
};
Reach reach_of(const std::vector<RunData>& runs, std::size_t b) {
  Reach reach;
  for (const RunData& run : runs) {
    const auto most = [&](BufferQuantity q) {
      return run.has(of(b, q)) ? run.whole[of(b, q)].most * 1e-3 : 0;
    };
    reach.high = std::max({reach.high, 1.1 * most(occupancy), 1.3 * most(target)});
    reach.end = std::max({reach.end, most(over), most(limit)});
  }
  return reach;
}

Figure buffer(const RunData& run, std::size_t b, const Reach& reach) {
  Figure f{.title = buffer_titles[b], .y_label = "held [kB]"};
  const double unit = 1e-3;
  const auto most = [&](BufferQuantity q) {
    return run.has(of(b, q)) ? run.whole[of(b, q)].most * unit : 0;
  };
  const auto [high, end] = reach;
  if (!run.has(of(b, occupancy))) return {};
  if (most(occupancy) <= 0 && most(target) <= 0) return {.note = "nothing was held"};
  f.y_max = high;
  if (end > 0 && end <= range_view * high)
    f.y_max = std::max(high, 1.05 * end);
  else if (most(over) > 0)
    f.add_note(fmt::format("the safe range ends at up to {} kB, above the axis",
                           tick_text(std::round(most(over)))));
  add_ranges(run, b, unit, f);
  f.bands.push_back(envelope_of(run, of(b, occupancy), unit, "held, least to most", Ink::blue));
  f.curves.push_back(curve_of(run, of(b, occupancy), unit, "held, mean", Ink::blue));
  add_curve(run, f, of(b, target), unit, "target", Ink::black, Stroke::dashed);
  if (b == 0)
    add_curve(run, f, backlog, unit / run.wire_per_payload(), "most that the law lets stand there",
              Ink::purple, Stroke::dashed);
  if (end > 0 && end <= range_view * high)
    add_curve(run, f, of(b, limit), unit, "limit (X max)", Ink::vermillion, Stroke::dotted);
  return f;
}

Figure bottleneck(const RunData& run) {
  static constexpr std::array<Ink, bottleneck_names.size()> inks{
      Ink::blue, Ink::orange, Ink::purple, Ink::grey, Ink::vermillion, Ink::sky};
  static constexpr std::array<const char*, bottleneck_names.size()> labels{
      "the link", "the receiver's ring", "the receiver's disk", "the source: no data ready",
      "a cap",    "none named"};
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
    for (const std::size_t i : used)
      share.parts.push_back(
          i < spent.size() && !spent[i].is_empty() ? 100 * spent[i].sum / time[i].sum : 0);
    f.stack.shares.push_back(std::move(share));
  }
  return f;
}

Figure delay(const RunData& run) {
  Figure f{.title = "Delay", .y_label = "delay [ms]"};
  if (run.has(queue_delay))
    f.bands.push_back(
        envelope_of(run, queue_delay, ms, "time in our queue, least to most", Ink::sky));
  if (run.has(srtt))
    f.bands.push_back(envelope_of(run, srtt, ms, "round trip, least to most", Ink::purple));
  add_curve(run, f, queue_delay, ms, "time in our queue (held / drain)", Ink::blue, Stroke::dashed);
  add_curve(run, f, srtt, ms, "round trip, smoothed", Ink::purple);
  if (f.curves.empty()) return {};
  double mean_most = run.has(srtt) ? run.whole[srtt].most * ms : 0;
  for (const auto& bucket : run.samples.series(queue_delay))
    if (!bucket.is_empty()) mean_most = std::max(mean_most, bucket.mean() * ms);
  // A drain of next to nothing makes one tick's quotient as long as one likes.
  const double most =
      std::max(mean_most, run.has(queue_delay) ? run.whole[queue_delay].most * ms : 0);
  f.y_max = 1.1 * (most <= 2 * mean_most ? most : mean_most);
  if (most > f.y_max)
    f.note = fmt::format("single ticks reach {} ms, above the axis", tick_text(std::round(most)));
  return f;
}

Figure counted(const RunData& run, std::string title, std::string y_label,
               std::vector<std::tuple<std::size_t, double, const char*, Ink>> what) {
  Figure f{.title = std::move(title), .y_label = std::move(y_label)};
  for (const auto& [quantity, unit, label, ink] : what)
    if (run.has(quantity) && run.whole[quantity].most > 0)
      f.curves.push_back(per_second(run, quantity, unit, label, ink));
    else if (run.has(quantity))
      f.note = "none";
  if (f.curves.empty()) return {.note = f.note};
  f.note.clear();
  fit(f, f.curves.size(), f.y_label.ends_with(']') ? "%" : "per second");
  return f;
}

Figure ring(const RunData& run, std::size_t k) {
  static constexpr std::array<const char*, ring_names.size()> titles{
      "rx ring: received, for the program", "tx ring: to be sent, for the kernel",
      "fill ring: chunks to receive into", "completion ring: sent, for the program"};
  Figure f{.title = titles[k], .y_label = "held [entries]"};
  if (!run.has(ring_held(k))) return {};
  f.bands.push_back(envelope_of(run, ring_held(k), 1, "held, least to most", Ink::blue));
  f.curves.push_back(curve_of(run, ring_held(k), 1, "held, mean", Ink::blue));
  add_curve(run, f, ring_entries(k), 1, "size of the ring", Ink::vermillion, Stroke::dotted);
  f.y_max = 1.05 * run.whole[ring_entries(k)].most;
  return f;
}

}  // namespace

std::vector<Plate> plates_of(const std::vector<RunData>& runs,
                             const std::vector<std::string>& only) {
  struct Kind {
    const char* caption;
    std::function<Figure(const RunData&)> make;
  };
  const std::array<Kind, plate_names.size()> kinds{
      {{"What the law grants, what left our queue, and what the receiver takes to its disk; "
        "headers counted. Where more is granted than leaves, the limit of our queue holds the "
        "sender.",
        rates},
       {"Held within the safe range, the link neither runs dry nor does the queue overflow.",
        [&runs](const RunData& r) { return buffer(r, 0, reach_of(runs, 0)); }},
       {"As the receiver reports it. A target above what is held means that this buffer does not "
        "limit.",
        [&runs](const RunData& r) { return buffer(r, 1, reach_of(runs, 1)); }},
       {"As the receiver reports it.",
        [&runs](const RunData& r) { return buffer(r, 2, reach_of(runs, 2)); }},
       {"The term that was the smallest, and so set the rate.", bottleneck},
       {"Smoothed round trip, and the time that a frame waits in our queue.", delay},
       {"All threads of this end, user and system time; 100 % is one core.",
        [](const RunData& r) {
          return counted(r, "CPU", "CPU time [% of a core]",
                         {{cpu_step, 1e-7, "this process", Ink::vermillion}});
        }},
       {"What the engine core does for its bursts.",
        [](const RunData& r) {
          return counted(
              r, "Wake-ups and system calls", "per second",
              {{wakeups, 1, "wake-ups", Ink::blue}, {syscalls, 1, "system calls", Ink::orange}});
        }},
       {"Lost: told by the receiver. Refused: our own queue did not take it.",
        [](const RunData& r) {
          return counted(
              r, "Losses", "packets per second",
              {{lost_step, 1, "lost", Ink::vermillion}, {refused_step, 1, "refused", Ink::purple}});
        }},
       {"A full one loses frames.", [](const RunData& r) { return ring(r, 0); }},
       {"A full one holds up the program.", [](const RunData& r) { return ring(r, 1); }},
       {"An empty one loses frames.", [](const RunData& r) { return ring(r, 2); }},
       {"A full one stops what is sent.", [](const RunData& r) { return ring(r, 3); }},
       {"For want of room in the rx ring, of chunks in the fill ring, or for another reason; read "
        "once a second.",
        [](const RunData& r) {
          return counted(r, "Drops", "frames per second",
                         {{ring_drop_step, 1, "dropped", Ink::vermillion}});
        }}}};
  std::vector<Plate> plates;
  for (std::size_t k = 0; k < kinds.size(); ++k) {
    if (!only.empty() && std::ranges::find(only, plate_names[k]) == only.end()) continue;
    Plate plate{.id = std::string{plate_names[k]},
                .title = {},
                .y_label = {},
                .caption = kinds[k].caption,
                .figures = {}};
    for (const RunData& run : runs) {
      plate.figures.push_back(kinds[k].make(run));
      Figure& figure = plate.figures.back();
      figure.x_max = std::max(std::chrono::duration<double>(run.span).count(), 1e-3);
      if (!(figure.y_max > 0)) figure.y_max = 1;
      if (!figure.is_empty()) plate.title = figure.title, plate.y_label = figure.y_label;
    }
    if (plate.title.empty()) continue;
    join_axes(plate);
    plates.push_back(std::move(plate));
  }
  return plates;
}

}  // namespace onehop::plot
