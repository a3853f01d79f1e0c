// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/labs/plot/gnuplot.hpp"

#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>

#include "tools/labs/plot/gnuplot_string.hpp"

namespace onehop::plot {

namespace {

// In units of the SVG, as everything below. One run: two plates beside each other; several: each
// plate has a row of them.
constexpr int cell_width_one = 620, cell_width_many = 470, runs_per_row = 4;
constexpr int margin_left = 78, margin_right = 16, margin_below = 54, plot_height = 190;
constexpr int title_height = 24, entry_height = 17, caption_height = 20, note_height = 13,
              gap_height = 18;
constexpr double letter_width = 7.6,
                 note_letter_width =
                     6.2;  // of DejaVu Sans at 11 and 9 points, on average, with some air
constexpr int swatch_width = 24;

const char* dash_numbers_of(Stroke stroke) {
  return stroke == Stroke::solid ? "1" : stroke == Stroke::dashed ? "(14,8)" : "(4,7)";
}

/// PlotOf gathers the data blocks and the plot command of one figure.
class PlotOf {
 public:
  PlotOf(std::string prefix, std::string& data) : prefix_{std::move(prefix)}, data_{data} {}

  void add(const Band& band) {
    const std::string name = open();
    for (const Interval& i : band.points)
      data_ += i.high >= i.low ? fmt::format("{:.6g} {:.6g} {:.6g}\n", i.x, i.low, i.high) : "\n";
    close(
        fmt::format("{} using 1:2:3 with filledcurves fc rgb '{}' fs transparent solid {:.2f} "
                    "noborder title {}",
                    name, hex_of(band.ink), band.opacity, in_quotes(plain(band.label))));
  }
  void add(const Curve& curve) {
    const std::string name = open();
    for (const Point& p : curve.points) data_ += fmt::format("{:.6g} {:.6g}\n", p.x, p.y);
    close(fmt::format("{} using 1:2 with lines lc rgb '{}' lw 1.4 dt {} title {}", name,
                      hex_of(curve.ink), dash_numbers_of(curve.stroke),
                      in_quotes(plain(curve.label))));
  }
  void add(const Stack& stack) {
    std::vector<double> base(stack.x.size(), 0);
    for (const Share& share : stack.shares) {
      const std::string name = open();
      for (std::size_t i = 0; i < stack.x.size(); ++i) {
        const double until = i + 1 < stack.x.size() ? stack.x[i + 1] : stack.end;
        data_ += fmt::format("{:.6g} {:.6g} {:.6g}\n{:.6g} {:.6g} {:.6g}\n", stack.x[i], base[i],
                             base[i] + share.parts[i], until, base[i], base[i] + share.parts[i]);
        base[i] += share.parts[i];
      }
      close(fmt::format("{} using 1:2:3 with filledcurves fc rgb '{}' fs solid noborder title {}",
                        name, hex_of(share.ink), in_quotes(plain(share.label))));
    }
  }
  [[nodiscard]] std::string command() const {
    return commands_.empty() ? "plot NaN notitle\n" : "plot " + commands_ + "\n";
  }

 private:
  std::string open() {
    std::string name = fmt::format("${}_{}", prefix_, count_++);
    data_ += name + " << E\n";
    return name;
  }
  void close(const std::string& command) {
    data_ += "E\n";
    commands_ += (commands_.empty() ? "" : ", \\\n  ") + command;
  }
  std::string prefix_;
  std::string& data_;
  std::string commands_;
  int count_ = 0;
};

/// Cell: where one figure stands, from the sheet's upper left corner. `head_y`: where its plate's
/// title and legend begin.
struct Cell {
  std::size_t plate = 0, run = 0;
  int x = 0, y = 0, width = 0;
  int top = 0;  ///< of the plot itself
  bool has_head = false;
  int head_y = 0, head_width = 0;
};

struct Sheet {
  int width = 0, height = 0;
  std::vector<Cell> cells;

  [[nodiscard]] double x(double at) const { return at / width; }
  [[nodiscard]] double y(double at) const { return 1 - at / height; }
  [[nodiscard]] std::string label(double at_x, double at_y, std::string_view words, int size,
                                  const char* align = "left") const {
    return fmt::format(
        "set label {} at screen {:.5f},{:.5f} {} front font ',{}' tc rgb '#222222'\n",
        in_quotes(plain(words)), x(at_x), y(at_y), align, size);
  }
};

/// Spot: where an entry of a legend stands in its head.
struct Spot {
  int x = 0, row = 0;
};

/// spots_of fills rows with entries, as wide as their words.
std::vector<Spot> spots_of(const std::vector<Entry>& entries, int width) {
  std::vector<Spot> spots;
  int x = 0, row = 0;
  for (const Entry& entry : entries) {
    const int needed =
        swatch_width + 6 + static_cast<int>(letter_width * static_cast<double>(entry.label.size()));
    if (x > 0 && x + needed > width) x = 0, ++row;
    spots.push_back({x, row});
    x += needed + 16;
  }
  return spots;
}

int head_height(const Plate& plate, int width) {
  return title_height + entry_height * (spots_of(legend_of(plate), width).back().row + 1);
}

/// notes_of breaks a figure's notes into lines.
std::vector<std::string> notes_of(const Figure& figure, int width) {
  std::vector<std::string> lines;
  const auto letters_max = static_cast<std::size_t>(width / note_letter_width);
  std::string_view rest = figure.note;
  while (!rest.empty()) {
    std::size_t end = rest.size();
    if (const std::size_t stop = rest.find("; "); stop != std::string_view::npos) end = stop + 1;
    if (end > letters_max)
      end = std::max<std::size_t>(rest.rfind(' ', letters_max) + 1, 1);  // no space: npos + 1 is 0
    lines.emplace_back(rest.substr(0, end));
    rest.remove_prefix(end);
    while (rest.starts_with(' ')) rest.remove_prefix(1);
  }
  return lines;
}

/// sheet_of lays the figures out.
Sheet sheet_of(std::size_t runs, const std::vector<Plate>& plates) {
  Sheet sheet;
  const bool is_one = runs == 1;
  const std::size_t columns =
      is_one ? std::min<std::size_t>(2, plates.size()) : std::min<std::size_t>(runs_per_row, runs);
  const int width = is_one ? cell_width_one : cell_width_many,
            inner = width - margin_left - margin_right;
  sheet.width = static_cast<int>(columns) * width;
  // One run: its plates are the cells of one table. Several: each plate is a table of its own, with
  // one head over it.
  const std::size_t tables = is_one ? 1 : plates.size(), cells = is_one ? plates.size() : runs;
  int y = 8;
  for (std::size_t t = 0; t < tables; ++t) {
    for (std::size_t begin = 0; begin < cells; begin += columns) {
      const std::size_t end = std::min(begin + columns, cells);
      const int head_width = is_one ? inner : sheet.width - margin_left - margin_right, head_y = y;
      int head = 0, notes = 0;
      for (std::size_t i = begin; i < end; ++i) {
        const std::size_t p = is_one ? i : t, r = is_one ? 0 : i;
        if (is_one || begin == 0) head = std::max(head, head_height(plates[p], head_width));
        notes = std::max(notes, static_cast<int>(notes_of(plates[p].figures[r], inner).size()));
      }
      y += head;
      const int top = y + (is_one ? 6 : caption_height);
      for (std::size_t i = begin; i < end; ++i)
        sheet.cells.push_back({is_one ? i : t, is_one ? 0 : i, static_cast<int>(i - begin) * width,
                               y, width, top, is_one || i == 0, head_y, head_width});
      y = top + plot_height + margin_below + note_height * notes;
    }
    y += gap_height;
  }
  sheet.height = std::max(y, 1);
  return sheet;
}

/// head_of draws title and legend, by hand: gnuplot's own key is of one figure, and pushes that one
/// down.
std::string head_of(const Sheet& sheet, const Cell& cell, const Plate& plate) {
  const int left = cell.x + margin_left;
  std::string out = sheet.label(left, cell.head_y + 10, plate.title, 14);
  const std::vector<Entry> entries = legend_of(plate);
  const std::vector<Spot> spots = spots_of(entries, cell.head_width);
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const int x = left + spots[i].x,
              y = cell.head_y + title_height + entry_height * spots[i].row + entry_height / 2;
    if (entries[i].is_area)
      out += fmt::format(
          "set object rectangle from screen {:.5f},{:.5f} to screen {:.5f},{:.5f} fc rgb '{}' fs "
          "transparent solid {:.2f} noborder front\n",
          sheet.x(x), sheet.y(y + 5), sheet.x(x + swatch_width), sheet.y(y - 5),
          hex_of(entries[i].ink), entries[i].opacity);
    else
      out += fmt::format(
          "set arrow from screen {:.5f},{:.5f} to screen {:.5f},{:.5f} nohead front lc rgb '{}' lw "
          "2 dt {}\n",
          sheet.x(x), sheet.y(y), sheet.x(x + swatch_width), sheet.y(y), hex_of(entries[i].ink),
          dash_numbers_of(entries[i].stroke));
    out += sheet.label(x + swatch_width + 6, y, entries[i].label, 11);
  }
  return out;
}

std::string axes_of(const Sheet& sheet, const Cell& cell, const Figure& figure,
                    const std::string& y_label) {
  std::string out = fmt::format(
      "set lmargin at screen {:.5f}\nset rmargin at screen {:.5f}\nset tmargin at screen "
      "{:.5f}\nset bmargin at screen {:.5f}\n",
      sheet.x(cell.x + margin_left), sheet.x(cell.x + cell.width - margin_right), sheet.y(cell.top),
      sheet.y(cell.top + plot_height));
  out += fmt::format("set xrange [0:{:.6g}]\nset yrange [0:{:.6g}]\n", figure.x_max, figure.y_max);
  if (figure.is_empty()) {
    const std::string why = figure.note.empty() ? "not in this trace" : figure.note;
    return out + sheet.label(cell.x + margin_left + 6, cell.top + 12, why, 11) +
           "unset border; unset tics; unset xlabel\n";
  }
  const auto step = [](const std::vector<double>& ticks) {
    return ticks.size() > 1 ? ticks[1] : 1.0;
  };
  // Its place is ours: gnuplot would put it as far out as the numbers are wide.
  return out + fmt::format(
                   "set xtics nomirror {:.6g}\nset ytics nomirror {:.6g}\nset label {} at screen "
                   "{:.5f},{:.5f} rotate by 90 center front tc rgb '#222222'\n",
                   step(ticks_of(figure.x_max, 9)), step(ticks_of(figure.y_max, 6)),
                   in_quotes(plain(y_label)), sheet.x(cell.x + 14),
                   sheet.y(cell.top + plot_height / 2.0));
}

}  // namespace

std::string plain(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool is_word = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    out +=
        is_word || std::string_view{" .,:;+-=_/()[]%'"}.find(c) != std::string_view::npos ? c : '_';
  }
  return out;
}

std::string script_of(const std::vector<RunData>& runs, const std::vector<Plate>& plates,
                      const PageText& text, const Pictures& pictures) {
  std::string data, plots;
  const Sheet sheet = sheet_of(runs.size(), plates);
  for (const Cell& cell : sheet.cells) {
    const Plate& plate = plates[cell.plate];
    if (cell.has_head) plots += head_of(sheet, cell, plate);
    const Figure& figure = plate.figures[cell.run];
    PlotOf plot{fmt::format("p{}r{}", cell.plate, cell.run), data};
    if (!figure.stack.shares.empty()) plot.add(figure.stack);
    for (const Band& band : figure.bands) plot.add(band);
    for (const Curve& curve : figure.curves) plot.add(curve);
    if (runs.size() > 1)
      plots += sheet.label(cell.x + margin_left, cell.y + 11, runs[cell.run].label, 11);
    const std::vector<std::string> notes =
        figure.is_empty() ? std::vector<std::string>{}
                          : notes_of(figure, cell.width - margin_left - margin_right);
    for (std::size_t i = 0; i < notes.size(); ++i)
      plots +=
          sheet.label(cell.x + cell.width - margin_right,
                      cell.top + plot_height + margin_below + note_height * static_cast<int>(i),
                      notes[i], 9, "right");
    plots += axes_of(sheet, cell, figure, plate.y_label) + plot.command() +
             "unset label; unset arrow; unset object; set border 3; set tics nomirror; set xlabel "
             "'time [s]' offset 0,0.4\n";
  }
  std::string out = fmt::format(
      "# made by onehop {}: {}\n# Run it with gnuplot to draw {} and {} again.\n",
      plain(text.version), plain(text.command_line), plain(pictures.svg), plain(pictures.png));
  out += data;
  // PNG at twice the size, for print.
  for (const auto& [terminal, output, scale, more] :
       {std::tuple{"svg", &pictures.svg, 1, "dynamic font 'DejaVu Sans,11'"},
        {"pngcairo", &pictures.png, 2, "font 'DejaVu Sans,11' fontscale 2 linewidth 2"}}) {
    out += fmt::format(
        "set terminal {} size {},{} noenhanced background rgb 'white' {}\nset output {}\n",
        terminal, sheet.width * scale, sheet.height * scale, more, in_quotes(*output));
    out +=
        "set multiplot\nunset key\nset grid lc rgb '#dddddd' lt 1\nset border 3 lc rgb "
        "'#555555'\nset tics nomirror\nset xlabel 'time [s]' offset 0,0.4\n" +
        plots + "unset multiplot\nunset output\n";
  }
  return out;
}

Result<bool> run_gnuplot(const std::string& folder, const std::string& script) {
  std::string program = "gnuplot", argument = script;
  char* const argv[] = {program.data(), argument.data(), nullptr};
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addchdir_np(&actions, folder.c_str());
  pid_t pid = 0;
  // Signals that wait for us end gnuplot at once: its files are temporary ones.
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  sigset_t none;
  ::sigemptyset(&none);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  const int error = ::posix_spawnp(&pid, program.c_str(), &actions, &attributes, argv, environ);
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&actions);
  if (error == ENOENT) return false;
  if (error != 0) return errno_error(ExitCode::internal_error, "start gnuplot", {}, error);
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  // Where posix_spawn cannot wait for exec, it says so by this code (POSIX).
  constexpr int not_started = 127;
  if (WIFEXITED(status) && WEXITSTATUS(status) == not_started) return false;
  if (status != 0)
    return Error{ExitCode::internal_error, "draw " + folder + "/" + script, "gnuplot failed",
                 "Its message is above"};
  return true;
}

}  // namespace onehop::plot
