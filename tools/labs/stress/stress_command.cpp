// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/labs/stress/stress_command.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <thread>

#include "control/law/make_law.hpp"
#include "engine/base/time.hpp"
#include "tools/labs/stress/campaign.hpp"
#include "tools/labs/stress/player.hpp"
#include "tools/labs/stress/report.hpp"
#include "tools/labs/stress/stress_file.hpp"
#include "tools/onehop/laboratories.hpp"

namespace onehop::stress {

namespace {

constexpr std::uint64_t series_schedules_max = 1000;
constexpr Nanos progress_interval = 1s;

/// Output is the file of --out, closed at the end.
class Output {
 public:
  [[nodiscard]] static Result<Output> open(const std::string& path) {
    Output out;
    if (path.empty()) return out;
    out.file_ = std::fopen(path.c_str(), "we");
    if (out.file_ == nullptr)
      return errno_error(ExitCode::local_file_error, "write the time series to " + path,
                         "Name a file with --out in a folder that you may write to");
    return out;
  }
  Output(Output&& other) noexcept : file_{std::exchange(other.file_, nullptr)} {}
  Output& operator=(Output&&) = delete;
  ~Output() {
    if (file_ != nullptr) std::fclose(file_);
  }
  [[nodiscard]] std::FILE* file() const { return file_; }

 private:
  Output() = default;
  std::FILE* file_ = nullptr;
};

Result<void> check_law(const std::string& law) {
  if (law.empty()) return success();
  const std::string spec = law == "fixed" ? "fixed:1Mbit" : law;
  ONEHOP_TRYV(law::make_law({.spec = spec}));
  return success();
}

/// named_faults reads --fault; `known` is what can be had.
Result<FaultSet> named_faults(const std::vector<std::string>& names, FaultSet known) {
  FaultSet kinds = 0;
  for (const std::string& name : names) {
    const auto fault = fault_of(name);
    if (!fault || (known & bit_of(*fault)) == 0)
      return Error{ExitCode::usage, "read --fault",
                   fmt::format("'{}' is not known{}", name, fault ? " to a lab" : ""),
                   "Known faults: " + fault_names(known), 0};
    kinds |= bit_of(*fault);
  }
  return kinds;
}

Result<DrawOptions> draw_options(const RingsOptions& options) {
  ONEHOP_TRYV(check_law(options.law));
  DrawOptions draw{.events = static_cast<std::size_t>(options.events),
                   .span = Nanos{static_cast<Nanos::rep>(options.span_ms * 1e6)},
                   .law = options.law};
  if (!options.faults.empty()) {
    ONEHOP_TRY(kinds, named_faults(options.faults, every_fault));
    draw.kinds = kinds;
  }
  return draw;
}

/// The words that name the same schedules, without what only says how to play them.
std::string again(const RingsOptions& options, std::uint64_t index) {
  std::string words = "onehop stress rings";
  if (!options.config.empty()) words += " --config " + options.config;
  words += fmt::format(" --seed {} --only {}", options.seed, index);
  if (!options.law.empty()) words += " --law " + options.law;
  for (const std::string& fault : options.faults) words += " --fault " + fault;
  if (options.events != RingsOptions{}.events) words += fmt::format(" --events {}", options.events);
  if (options.span_ms != RingsOptions{}.span_ms)
    words += fmt::format(" --span-ms {}", options.span_ms);
  return words;
}

Result<CampaignOptions> campaign_options(const RingsOptions& options) {
  CampaignOptions campaign;
  campaign.first = options.only >= 0 ? static_cast<std::uint64_t>(options.only) : 0;
  campaign.count = options.only >= 0 ? 1 : options.schedules;
  campaign.jobs =
      options.jobs > 0 ? options.jobs : std::max(1U, std::thread::hardware_concurrency());
  campaign.jobs = static_cast<unsigned>(std::min<std::uint64_t>(campaign.jobs, campaign.count));
  if (!options.config.empty()) {
    ONEHOP_TRY(file, load_stress_file(options.config));
    campaign.schedule_of = [file, seed = options.seed](std::uint64_t index) {
      return schedule_from(file, seed, index);
    };
  } else {
    ONEHOP_TRY(draw, draw_options(options));
    campaign.schedule_of = [draw, seed = options.seed](std::uint64_t index) {
      return draw_schedule(seed, index, draw);
    };
  }
  if (!options.out.empty()) {
    if (campaign.count > series_schedules_max)
      return Error{
          ExitCode::usage, "write a time series with --out",
          fmt::format("{} schedules are more than {}", campaign.count, series_schedules_max),
          "Take fewer with --schedules, or one with --only"};
    campaign.jobs = 1;
  }
  return campaign;
}

Result<int> play(const RingsOptions& options) {
  ONEHOP_TRY(campaign, campaign_options(options));
  ONEHOP_TRY(output, Output::open(options.out));
  if ((campaign.series = output.file()) != nullptr)
    fmt::print(campaign.series, "# {}\n{}", again(options, campaign.first), series_header());
  const Instant start = monotonic_now();
  const bool is_telling = !options.is_quiet && !options.is_json && ::isatty(STDERR_FILENO) != 0;
  campaign.on_progress = [&, told_at = start](std::uint64_t played) mutable {
    if (!is_telling || monotonic_now() - told_at < progress_interval) return;
    told_at = monotonic_now();
    fmt::print(stderr, "\r{} of {} schedules", played, campaign.count);
    std::fflush(stderr);
  };
  ONEHOP_TRY(result, run_campaign(campaign));
  if (is_telling) fmt::print(stderr, "\r\033[K");
  ReportContext context{.seed = options.seed,
                        .seconds = static_cast<double>((monotonic_now() - start).count()) / 1e9};
  if (result->failure) context.again = again(options, result->failure->index);
  if (options.is_json) {
    // A command line is bytes, and JSON is UTF-8.
    const auto print = [](const nlohmann::ordered_json& json) {
      fmt::print("{}\n", json.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace));
    };
    if (result->failure) print(failure_json(*result->failure, context));
    print(json_of(*result, context));
  } else {
    if (!options.is_quiet) fmt::print("{}", text_of(*result, context));
  }
  if (result->failure) fmt::print(stderr, "{}", failure_text(*result->failure, context));
  return result->failure ? static_cast<int>(ExitCode::internal_error) : 0;
}

/// Real schedules last seconds, not milliseconds: fewer of them, unless somebody says how many.
template <class Options>
void set_range(const RingsOptions& options, const CLI::App& rings, Options& real) {
  constexpr std::uint64_t schedules_usual = 10;
  real.first = options.only >= 0 ? static_cast<std::uint64_t>(options.only) : 0;
  real.count = options.only >= 0                              ? 1
               : rings.get_option("--schedules")->count() > 0 ? options.schedules
                                                              : schedules_usual;
}

Result<int> play_lab(const RingsOptions& options, const CLI::App& rings, const RealRunners& real) {
  LabRingsOptions lab{.seed = options.seed,
                      .io = options.io,
                      .law = options.law,
                      .is_json = options.is_json,
                      .is_quiet = options.is_quiet};
  set_range(options, rings, lab);
  if (!options.faults.empty()) {
    ONEHOP_TRY(kinds, named_faults(options.faults, lab_faults));
    lab.kinds = kinds;
  }
  return real.lab(lab);
}

InterfaceRingsOptions interface_options(const RingsOptions& options, const CLI::App& rings) {
  InterfaceRingsOptions real{.seed = options.seed,
                             .interface = options.interface,
                             .to = options.to,
                             .io = options.io,
                             .law = options.law,
                             .is_json = options.is_json,
                             .is_quiet = options.is_quiet};
  set_range(options, rings, real);
  return real;
}

void add_real_options(CLI::App& rings, RingsOptions& o) {
  CLI::Option* const lab = rings.add_flag("--lab", o.is_lab,
                                          "the program itself over the lab's link, with faults of "
                                          "the kernel's kind (root; 10 schedules)");
  CLI::Option* const interface =
      rings
          .add_option("--iface", o.interface,
                      "the program itself over this interface, to a peer that runs 'onehop recv'; "
                      "only this end has faults")
          ->type_name("IF");
  CLI::Option* const to =
      rings.add_option("--to", o.to, "with --iface: the peer; its code in ONEHOP_CODE")
          ->type_name("HOST[:PORT]");
  interface->needs(to)->excludes(lab);
  to->needs(interface);
  for (CLI::Option* const real : {lab, interface})
    for (const char* const other : {"--config", "--events", "--span-ms", "--jobs", "--out"})
      real->excludes(rings.get_option(other));
  interface->excludes(rings.get_option("--fault"));
  rings
      .add_option("--io", o.io,
                  "with --lab or --iface: the port (default: both by turns in the lab, else as "
                  "onehop send chooses)")
      ->check(CLI::IsMember({"udp", "afxdp"}));
}

}  // namespace

CLI::App* add_stress_command(CLI::App& app, StressCommand& command, const RealRunners& real) {
  CLI::App& stress = *app.add_subcommand("stress", tool::find_laboratory("stress")->about);
  stress.require_subcommand(1);
  CLI::App& rings = *stress.add_subcommand(
      "rings",
      "whole transfers in virtual time, each with its own faults; every invariant is watched");
  command.rings_ = &rings;
  RingsOptions& o = command.options_;
  rings.add_option("--seed", o.seed, "schedules are drawn from it, the same ones each time")
      ->type_name("N")
      ->capture_default_str();
  rings.add_option("--schedules", o.schedules, "how many")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1'000'000'000}))
      ->capture_default_str();
  rings.add_option("--only", o.only, "play this one alone, by its number")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1'000'000'000}));
  rings.add_option("--events", o.events, "faults per schedule")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{100'000}))
      ->capture_default_str();
  rings.add_option("--span-ms", o.span_ms, "milliseconds that they fall in")
      ->check(CLI::Range(1.0, 60'000.0))
      ->capture_default_str();
  rings.add_option("--law", o.law, "one rate law instead of a drawn one: " + law::law_words())
      ->type_name("LAW");
  rings
      .add_option("--fault", o.faults,
                  "draw from these kinds of fault: " + fault_names(every_fault))
      ->type_name("KIND");
  rings
      .add_option("--config", o.config,
                  "a schedule that you wrote (TOML; configs/stress has examples)")
      ->type_name("FILE")
      ->excludes("--law")
      ->excludes("--fault")
      ->excludes("--events")
      ->excludes("--span-ms");
  rings.add_option("--jobs", o.jobs, "schedules played at a time (default: one per core)")
      ->check(CLI::Range(1U, 1024U));
  rings.add_option("--out", o.out, "write a time series, one row per control tick (CSV)")
      ->type_name("FILE");
  command.real_ = real;
  if (real.lab != nullptr) add_real_options(rings, o);
  rings.add_flag("--json", o.is_json, "JSON lines on standard output");
  rings.add_flag("--quiet", o.is_quiet, "say nothing but what broke");
  return &stress;
}

int StressCommand::run() {
  if (!options_.io.empty() && !options_.is_lab && options_.interface.empty()) {
    fmt::print(stderr,
               "onehop stress: use --io {}: virtual time has ports of its own. Give --lab or "
               "--iface as well\n",
               options_.io);
    return static_cast<int>(ExitCode::usage);
  }
  const auto code = options_.is_lab ? play_lab(options_, *rings_, real_)
                    : !options_.interface.empty()
                        ? real_.interface(interface_options(options_, *rings_))
                        : play(options_);
  if (code) return code.value();
  fmt::print(stderr, "onehop stress: {}\n", code.error().message());
  return static_cast<int>(code.error().code);
}

}  // namespace onehop::stress
