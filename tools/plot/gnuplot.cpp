// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/plot/gnuplot.hpp"

#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace onehop::plot {

namespace {

constexpr int cell_width = 800, cell_height = 300;

/// in_quotes is a gnuplot string. In single quotes nothing is replaced or run.
std::string in_quotes(std::string_view text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string{"''"} : std::string{c};
  return out + "'";
}

/// PlotOf gathers the data blocks and the plot command of one figure.
class PlotOf {
 public:
  PlotOf(std::string prefix, std::string& data) : prefix_{std::move(prefix)}, data_{data} {}

  void add(const Band& band) {
    const std::string name = open();
    for (const Interval& i : band.points) data_ += i.high >= i.low ? fmt::format("{:.6g} {:.6g} {:.6g}\n", i.x, i.low, i.high) : "\n";
    close(fmt::format("{} using 1:2:3 with filledcurves fc rgb '{}' fs transparent solid {:.2f} noborder title {}", name, hex_of(band.ink), band.opacity,
                      in_quotes(plain(band.label))));
  }
  void add(const Curve& curve) {
    const std::string name = open();
    for (const Point& p : curve.points) data_ += fmt::format("{:.6g} {:.6g}\n", p.x, p.y);
    const int dash = curve.stroke == Stroke::solid ? 1 : curve.stroke == Stroke::dashed ? 2 : 3;
    close(fmt::format("{} using 1:2 with lines lc rgb '{}' lw 1.6 dt {} title {}", name, hex_of(curve.ink), dash, in_quotes(plain(curve.label))));
  }
  void add(const Stack& stack) {
    std::vector<double> base(stack.x.size(), 0);
    for (const Share& share : stack.shares) {
      const std::string name = open();
      for (std::size_t i = 0; i < stack.x.size(); ++i) {
        const double until = i + 1 < stack.x.size() ? stack.x[i + 1] : stack.end;
        data_ += fmt::format("{:.6g} {:.6g} {:.6g}\n{:.6g} {:.6g} {:.6g}\n", stack.x[i], base[i], base[i] + share.parts[i], until, base[i], base[i] + share.parts[i]);
        base[i] += share.parts[i];
      }
      close(fmt::format("{} using 1:2:3 with filledcurves fc rgb '{}' fs solid noborder title {}", name, hex_of(share.ink), in_quotes(plain(share.label))));
    }
  }
  [[nodiscard]] std::string command() const { return commands_.empty() ? "plot NaN notitle\n" : "plot " + commands_ + "\n"; }

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

}  // namespace

std::string plain(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool is_word = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    out += is_word || std::string_view{" .,:;+-=_/()[]%'"}.find(c) != std::string_view::npos ? c : '_';
  }
  return out;
}

std::string script_of(const std::vector<RunData>& runs, const std::vector<Plate>& plates, const PageText& text, const Pictures& pictures) {
  std::string data, plots;
  for (std::size_t p = 0; p < plates.size(); ++p) {
    const Plate& plate = plates[p];
    for (std::size_t r = 0; r < runs.size(); ++r) {
      const Figure& figure = plate.figures[r];
      PlotOf plot{fmt::format("p{}r{}", p, r), data};
      if (!figure.stack.shares.empty()) plot.add(figure.stack);
      for (const Band& band : figure.bands) plot.add(band);
      for (const Curve& curve : figure.curves) plot.add(curve);
      const std::string title = runs.size() > 1 ? plate.title + ": " + runs[r].label : plate.title;
      plots += fmt::format("set title {}\nset ylabel {}\nset yrange [0:{:.6g}]\n{}", in_quotes(plain(title)), in_quotes(plain(plate.y_label)), plate.y_max, plot.command());
    }
  }
  std::string out = fmt::format("# made by onehop {}: {}\n# Run it with gnuplot to draw {} and {} again.\n", plain(text.version), plain(text.command_line),
                                plain(pictures.svg), plain(pictures.png));
  out += data;
  const auto width = cell_width * static_cast<int>(runs.size()), height = cell_height * static_cast<int>(plates.size());
  // PNG at twice the size, for print.
  for (const auto& [terminal, output, scale, more] :
       {std::tuple{"svg", &pictures.svg, 1, "dynamic font 'DejaVu Sans,12'"}, {"pngcairo", &pictures.png, 2, "font 'DejaVu Sans,12' fontscale 2 linewidth 2"}}) {
    out += fmt::format("set terminal {} size {},{} noenhanced background rgb 'white' {}\nset output {}\n", terminal, width * scale, height * scale, more, in_quotes(*output));
    out += fmt::format("set multiplot layout {},{} rowsfirst downwards\nset lmargin 12\nset rmargin 4\nset key above left horizontal Left reverse maxrows 2 samplen 2\n"
                       "set grid lc rgb '#dddddd' lt 1\nset border 3 lc rgb '#555555'\nset tics nomirror\nset xlabel 'time [s]'\nset xrange [0:{:.6g}]\n",
                       plates.size(), runs.size(), plates.empty() ? 1.0 : plates.front().x_max);
    out += plots + "unset multiplot\nunset output\n";
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
  const int error = ::posix_spawnp(&pid, program.c_str(), &actions, nullptr, argv, environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (error == ENOENT) return false;
  if (error != 0) return errno_error(ExitCode::internal_error, "start gnuplot", {}, error);
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {}
  if (status != 0) return Error{ExitCode::internal_error, "draw " + folder + "/" + script, "gnuplot failed", "Its message is above"};
  return true;
}

}  // namespace onehop::plot
