// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/labs/plot/page.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "tools/labs/plot/svg.hpp"

namespace onehop::plot {

namespace {

// Two columns where there is room for two readable figures, one elsewhere. A plate of several runs
// takes the whole width.
constexpr const char* style = R"(
:root{color-scheme:light}
*{box-sizing:border-box}
body{margin:0 auto;max-width:1240px;padding:16px 20px 40px;background:#fff;color:#222;
font:15px/1.45 system-ui,"DejaVu Sans",Arial,sans-serif}
h1{font-size:1.45em;margin:.3em 0 .2em}h2{font-size:1.1em;margin:0}p{margin:.2em 0 .5em}
.about{color:#555;font-size:.88em;overflow-wrap:anywhere}
.scroll{overflow-x:auto}
table{border-collapse:collapse;margin:.8em 0;font-size:.9em}th,td{padding:.25em .9em .25em 0;
text-align:right;vertical-align:top;border-bottom:1px solid #ddd}
th:first-child,td:first-child{text-align:left}table{min-width:min(100%,420px)}th{font-weight:600}
main,.runs{display:grid;gap:22px 28px;grid-template-columns:repeat(auto-fit,minmax(min(100%,
460px),1fr))}
.many{grid-template-columns:minmax(0,1fr)}
section{min-width:0}figure{margin:0;min-width:0}figcaption{font-weight:600;font-size:.9em;
overflow-wrap:anywhere}
figure>svg{display:block;width:100%;height:auto}
svg text{font:13px system-ui,"DejaVu Sans",Arial,sans-serif;fill:#222}svg .a{font-size:14px}
.g{stroke:#e3e3e3;fill:none}.f{stroke:#555;fill:none}
.legend{display:flex;flex-wrap:wrap;gap:2px 16px;margin:.3em 0;padding:0;list-style:none;
font-size:.86em}
.k{width:26px;height:12px;margin-right:6px;vertical-align:-1px}
.note{color:#555;font-size:.84em}
@media(max-width:600px){body{padding:12px 12px 30px}th,td{padding-right:.5em}}
@media print{body{padding:0}section{break-inside:avoid}}
)";

std::string legend_html(const Plate& plate) {
  std::string items;
  for (const Entry& entry : legend_of(plate))
    items +=
        "<li>" +
        (entry.is_area ? swatch_of(entry.ink, entry.opacity) : swatch_of(entry.ink, entry.stroke)) +
        escape(entry.label) + "</li>";
  return "<ul class=\"legend\">" + items + "</ul>";
}

std::string section_of(const std::vector<RunData>& runs, const Plate& plate) {
  std::string out =
      fmt::format("<section id=\"{}\"><h2>{}</h2><p class=\"note\">{}</p>{}<div class=\"runs\">",
                  plate.id, escape(plate.title), escape(plate.caption), legend_html(plate));
  for (std::size_t i = 0; i < runs.size(); ++i) {
    out += "<figure>";
    if (runs.size() > 1) out += "<figcaption>" + escape(runs[i].label) + "</figcaption>";
    const Figure& figure = plate.figures[i];
    if (!figure.is_empty())
      out += svg_of(plate, figure, runs[i].label);
    else if (figure.note.empty())
      out += "<p class=\"note\">not in this trace</p>";
    if (!figure.note.empty()) out += "<p class=\"note\">" + escape(figure.note) + "</p>";
    out += "</figure>";
  }
  return out + "</div></section>\n";
}

std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

std::string range_text(const RangeShare& share) {
  return share.known() > 0 ? fmt::format("{} / {} / {}", percent(share.below / share.known()),
                                         percent(share.inside / share.known()),
                                         percent(share.above / share.known()))
                           : std::string{"-"};
}

class Rows {
 public:
  explicit Rows(const std::vector<RunData>& runs) : runs_{runs} {}

  /// add makes a row of what `text` says of each run, "-" for nothing. What no run has is no row.
  template <class Text>
  void add(const std::string& name, const Text& text) {
    std::string cells;
    bool has_any = false;
    for (const RunData& run : runs_) {
      const std::string cell = text(run);
      has_any |= cell != "-";
      cells += "<td>" + escape(cell) + "</td>";
    }
    if (has_any) html += "<tr><td>" + name + "</td>" + cells + "</tr>";
  }

  std::string html;

 private:
  const std::vector<RunData>& runs_;
};

void add_rings(Rows& rows) {
  for (std::size_t k = 0; k < ring_names.size(); ++k)
    rows.add(fmt::format("{} ring: held, least / mean / most, of", ring_names[k]),
             [k](const RunData& r) {
               const Bucket& held = r.whole[ring_held(k)];
               return held.is_empty()
                          ? std::string{"-"}
                          : fmt::format("{:.0f} / {:.1f} / {:.0f} of {:.0f}", held.least,
                                        held.mean(), held.most, r.whole[ring_entries(k)].most);
             });
  rows.add("frames dropped", [](const RunData& r) {
    return r.has(ring_drop_step) ? fmt::format("{:.0f}", r.whole[ring_drop_step].sum)
                                 : std::string{"-"};
  });
}

std::string table_of(const std::vector<RunData>& runs) {
  std::string head = "<th>trace</th>";
  for (const RunData& run : runs) head += "<th>" + escape(run.label) + "</th>";
  Rows rows{runs};
  const auto row = [&rows](const std::string& name, const auto& text) { rows.add(name, text); };
  const auto mean = [](const RunData& run, std::size_t quantity, double unit, const char* digits) {
    return run.has(quantity)
               ? fmt::format(fmt::runtime(digits), run.over_time[quantity].mean() * unit)
               : std::string{"-"};
  };
  row("law", [](const RunData& r) { return r.law.empty() ? "-" : r.law; });
  row("duration", [](const RunData& r) {
    return fmt::format("{:.2f} s", std::chrono::duration<double>(r.span).count());
  });
  row("rows", [](const RunData& r) { return std::to_string(r.rows); });
  const auto left = [](const RunData& r) {
    return r.has(drained_step) && r.span > Nanos{0}
               ? r.whole[drained_step].sum / std::chrono::duration<double>(r.span).count()
               : 0;
  };
  row("left our queue, with headers, mean", [&](const RunData& r) {
    return r.has(drained_step) ? fmt::format("{:.1f} Mbit/s", 8e-6 * left(r)) : std::string{"-"};
  });
  row("capacity of the link, mean", [](const RunData& r) {
    return r.capacity.is_known() ? fmt::format("{:.1f} Mbit/s", 8e-6 * r.capacity_mean())
                                 : std::string{"-"};
  });
  row("of the capacity", [&](const RunData& r) {
    return r.capacity_mean() > 0 && r.has(drained_step) ? percent(left(r) / r.capacity_mean())
                                                        : std::string{"-"};
  });
  row("our queue: held, mean",
      [&](const RunData& r) { return mean(r, of(0, occupancy), 1e-3, "{:.0f} kB"); });
  row("our queue: below / in / above its safe range",
      [](const RunData& r) { return range_text(r.ranges[0]); });
  row("receiver's ring: below / in / above",
      [](const RunData& r) { return range_text(r.ranges[1]); });
  row("receiver's blocks: below / in / above",
      [](const RunData& r) { return range_text(r.ranges[2]); });
  row("our queue: too small for a safe range", [](const RunData& r) {
    return r.ranges[0].none > 0 ? percent(r.ranges[0].none / r.ranges[0].known())
                                : std::string{"-"};
  });
  row("round trip, mean", [&](const RunData& r) { return mean(r, srtt, 1e-6, "{:.2f} ms"); });
  row("bottleneck", [](const RunData& r) {
    std::string text;
    for (std::size_t k = 0; k < bottleneck_names.size(); ++k)
      if (r.share(k) >= 0.0005)
        text += fmt::format("{}{} {}", text.empty() ? "" : ", ", bottleneck_names[k],
                            percent(r.share(k)));
    return text.empty() ? std::string{"-"} : text;
  });
  row("packets lost", [](const RunData& r) {
    return r.has(lost_step) ? fmt::format("{:.0f}", r.whole[lost_step].sum) : std::string{"-"};
  });
  row("CPU time", [](const RunData& r) {
    return r.has(cpu_step) ? fmt::format("{:.2f} s", r.whole[cpu_step].sum * 1e-9)
                           : std::string{"-"};
  });
  add_rings(rows);
  return "<div class=\"scroll\"><table><tr>" + head + "</tr>" + rows.html + "</table></div>\n";
}

}  // namespace

std::string page_of(const std::vector<RunData>& runs, const std::vector<Plate>& plates,
                    const PageText& text) {
  std::string out = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{}</title>\n"
      "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
      "'unsafe-inline'\">\n<style>{}</style></head><body>\n",
      escape(text.title), style);
  out += fmt::format("<h1>{}</h1>\n<p class=\"about\">made by onehop {}: {}</p>\n",
                     escape(text.title), escape(text.version), escape(text.command_line));
  for (const RunData& run : runs)
    out += fmt::format("<p class=\"about\"><b>{}</b>: {}; onehop {}; {}</p>\n", escape(run.label),
                       escape(run.head.command_line), escape(run.head.version),
                       escape(run.head.config));
  out += table_of(runs);
  out += runs.size() > 1 ? "<main class=\"many\">\n" : "<main>\n";
  for (const Plate& plate : plates) out += section_of(runs, plate);
  return out + "</main></body></html>\n";
}

}  // namespace onehop::plot
