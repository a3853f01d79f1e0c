// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// onehop plot: traces into a report: one HTML file, and by gnuplot the same plates as SVG and PNG.
#include "tools/labs/plot/plot_command.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <fstream>
#include <iostream>

#include "engine/base/rate_text.hpp"
#include "tools/labs/plot/figure.hpp"
#include "tools/labs/plot/gnuplot.hpp"
#include "tools/labs/plot/output.hpp"
#include "tools/labs/plot/page.hpp"
#include "tools/onehop/command_line.hpp"
#include "tools/onehop/laboratories.hpp"
#include "tools/onehop/text/terminal.hpp"

namespace onehop::plot {

namespace {

// Buckets of a run: half of the points that a figure of 480 units can show apart when there is one
// run, less when there are many, so that the page stays below 3 MB.
constexpr std::size_t buckets_one = 450, buckets_all = 2000;

/// SignalHold lets what would end the program wait until its half-written files are gone, and then
/// end it.
class SignalHold {
 public:
  SignalHold() {
    sigset_t held{};
    ::sigemptyset(&held);
    for (const int number : {SIGINT, SIGTERM, SIGHUP}) ::sigaddset(&held, number);
    ::sigprocmask(SIG_BLOCK, &held, &before_);
  }
  ~SignalHold() { ::sigprocmask(SIG_SETMASK, &before_, nullptr); }
  SignalHold(const SignalHold&) = delete;
  SignalHold& operator=(const SignalHold&) = delete;

 private:
  sigset_t before_{};
};

struct Choice {
  Place place;
  bool is_overwriting = false;
};

void say(const std::string& text) { tool::tell(tool::fitted(text + "\n")); }

/// ask is for a person at a terminal; elsewhere the answer is the error itself.
Result<std::string> ask(const std::vector<std::string>& taken) {
  const Error why{ExitCode::local_file_error, "write " + taken.front(), "it exists",
                  "Use --on-exist overwrite or rename, or another --out", EEXIST};
  if (::isatty(STDIN_FILENO) == 0 || ::isatty(STDERR_FILENO) == 0) return why;
  fmt::print(stderr, "{} exists.\nre[n]ame, [o]verwrite, anything else refuses: ", taken.front());
  std::string answer;
  std::getline(std::cin, answer);
  if (answer == "n") return std::string{"rename"};
  if (answer == "o") return std::string{"overwrite"};
  return why;
}

Result<Choice> choose(const PlotOptions& options) {
  ONEHOP_TRY(place, place_of(options.out, options.traces.front()));
  const std::vector<std::string> taken = taken_of(place);
  std::string on_exist = options.on_exist;
  if (!taken.empty() && on_exist == "ask") {
    ONEHOP_TRY(answer, ask(taken));
    on_exist = answer;
  }
  if (on_exist == "rename") {
    ONEHOP_TRY(free, free_place(place));
    place = free;
  }
  ONEHOP_TRYV(check_inputs(place, options.traces));
  return Choice{place, on_exist == "overwrite"};
}

/// read_capacity takes a rate, or the name of a file.
Result<Capacity> read_capacity(const std::string& text) {
  if (auto rate = parse_rate(text); rate.has_value()) return Capacity::steady(rate.value());
  errno = 0;
  std::ifstream in{text};
  if (!in)
    return errno_error(ExitCode::local_file_error, "open the capacity " + text,
                       "Give a rate such as 600Mbit, or a file of 'onehop lab run --rate-log'");
  return Capacity::read(in, text);
}

Result<std::vector<RunData>> read_runs(const PlotOptions& options) {
  if (options.traces.size() > runs_max)
    return Error{ExitCode::usage, fmt::format("plot {} traces", options.traces.size()),
                 fmt::format("a report has at most {}", runs_max), "Make several reports"};
  if (!options.labels.empty() && options.labels.size() != options.traces.size())
    return Error{ExitCode::usage, "label the traces",
                 fmt::format("there are {} labels for {} traces", options.labels.size(),
                             options.traces.size()),
                 "Give one --label per trace, in their order"};
  if (options.capacities.size() > 1 && options.capacities.size() != options.traces.size())
    return Error{
        ExitCode::usage, "draw the capacity",
        fmt::format("there are {} for {} traces", options.capacities.size(), options.traces.size()),
        "Give one --capacity for all traces, or one for each, in their order"};
  std::vector<RunData> runs;
  const std::size_t buckets = std::min(buckets_one, buckets_all / options.traces.size());
  for (std::size_t i = 0; i < options.traces.size(); ++i) {
    const std::string& path = options.traces[i];
    errno = 0;
    std::ifstream in{path};
    if (!in)
      return errno_error(ExitCode::local_file_error, "open the trace " + path,
                         "Check its name and permissions");
    ONEHOP_TRY(read,
               plot::read_runs(in, path, options.labels.empty() ? std::string{} : options.labels[i],
                               buckets));
    for (RunData& run : read) {
      if (!options.capacities.empty()) {
        ONEHOP_TRY(capacity,
                   read_capacity(options.capacities[options.capacities.size() > 1 ? i : 0]));
        if (capacity.between(run.first, run.first + run.span).empty())
          return Error{ExitCode::usage, "draw the capacity beside " + path,
                       "it is told from a time on that is after the trace's end",
                       "Was the trace made while that 'onehop lab run --rate-log' ran?"};
        run.capacity = std::move(capacity);
      }
      runs.push_back(std::move(run));
    }
  }
  if (runs.size() > runs_max)
    return Error{ExitCode::usage, fmt::format("plot {} sockets", runs.size()),
                 fmt::format("a report has at most {}", runs_max), "Make several reports"};
  return runs;
}

/// draw makes the pictures under their temporary names. False: there is no gnuplot.
Result<bool> draw(const Place& place, const std::vector<RunData>& runs,
                  const std::vector<Plate>& plates, const PageText& text) {
  // First with names of its own, to put the pictures in place whole; the script that stays names
  // them as they are called then.
  ONEHOP_TRYV(write_part(place, ".gp",
                         script_of(runs, plates, text, {place.part(".svg"), place.part(".png")})));
  ONEHOP_TRY(is_drawn, run_gnuplot(place.folder, place.part(".gp")));
  ONEHOP_TRYV(write_part(
      place, ".gp", script_of(runs, plates, text, {place.stem + ".svg", place.stem + ".png"})));
  return bool{is_drawn};
}

Result<void> run(const PlotOptions& options) {
  ONEHOP_TRY(runs, read_runs(options));
  ONEHOP_TRY(choice, choose(options));
  const Place& place = choice.place;
  const std::vector<Plate> plates = plates_of(runs, options.only);
  if (plates.empty())
    return Error{ExitCode::usage, "draw what --only names", "no trace has data for it",
                 "Leave --only out to see what there is"};
  const PageText text{
      .title = options.title.empty() ? fmt::format("onehop: {}", place.stem) : options.title,
      .command_line = tool::command_line(),
      .version = ONEHOP_VERSION};
  std::vector<std::string_view> written{".html", ".gp"};
  const SignalHold hold;
  Result<void> result = write_part(place, ".html", page_of(runs, plates, text));
  if (result.has_value()) {
    auto is_drawn = draw(place, runs, plates, text);
    if (is_drawn.has_value() && is_drawn.value()) written.insert(written.end(), {".svg", ".png"});
    if (is_drawn.has_value() && !is_drawn.value())
      say("no SVG and no PNG: gnuplot is not installed (Debian: gnuplot-nox). The page is whole "
          "without, and the script is there");
    // A gnuplot that fails takes nothing from the page.
    if (!is_drawn.has_value()) {
      say("onehop plot: " + is_drawn.error().message());
      written.pop_back();
    }
  }
  for (const std::string_view ending : written) {
    if (result.has_value()) result = put_in_place(place, ending, choice.is_overwriting);
    if (result.has_value()) fmt::print("{}\n", place.path(ending));
  }
  remove_parts(place);
  return result;
}

}  // namespace

CLI::App* add_plot_command(CLI::App& app, PlotOptions& plot) {
  CLI::App* command = app.add_subcommand("plot", tool::find_laboratory("plot")->about);
  command->add_option("TRACE", plot.traces, "files that --trace wrote, on one time axis")
      ->required();
  command
      ->add_option(
          "--label", plot.labels,
          "what a trace is called in the report; once per trace (default: its file's name)")
      ->type_name("NAME")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command
      ->add_option("--capacity", plot.capacities,
                   "what the link can carry, drawn beside the rates: 600Mbit, or a file of 'lab "
                   "run --rate-log'; once, or per trace")
      ->type_name("RATE|FILE")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  const std::string plates = fmt::format("{}", fmt::join(plate_names, ", "));
  // Not as a set of CLI11: help would write it as one word, longer than a line.
  command->add_option("--only", plot.only, "draw these alone, with commas between: " + plates)
      ->type_name("PLATE,...")
      ->delimiter(',')
      ->check([plates](const std::string& name) {
        return std::ranges::count(plate_names, name) == 1
                   ? std::string{}
                   : "there is no plate '" + name + "'; there are " + plates;
      });
  command->add_option("--title", plot.title, "the report's title")->type_name("TITLE");
  command
      ->add_option("--out", plot.out,
                   "FILE.html, or a folder (default: this one); the pictures stand beside it")
      ->type_name("FILE");
  command->add_option("--on-exist", plot.on_exist, "what to do about outputs that exist")
      ->check(CLI::IsMember({"ask", "rename", "overwrite"}))
      ->capture_default_str();
  return command;
}

int plot_command(const PlotOptions& options) {
  const auto done = run(options);
  if (done.has_value()) return 0;
  say("onehop plot: " + done.error().message());
  return static_cast<int>(done.error().code);
}

}  // namespace onehop::plot
