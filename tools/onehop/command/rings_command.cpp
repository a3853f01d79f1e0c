// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// onehop rings: how full the AF_XDP rings of any program on this machine are, from outside.
#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "engine/base/time.hpp"
#include "tools/onehop/command/commands.hpp"
#include "tools/onehop/privilege.hpp"
#include "tools/onehop/rings/trace.hpp"
#include "tools/onehop/rings/view.hpp"
#include "tools/onehop/text/report.hpp"
#include "tools/onehop/watch/terminal.hpp"

namespace onehop::tool {

namespace {

constexpr Nanos rescan_interval{1s};

/// one_of picks the program that is meant: the only one, or the one named. Errors: 3, none; 2,
/// several.
Result<pid_t> one_of(const std::string& wanted) {
  pid_t pid = 0;
  const char* const last = wanted.data() + wanted.size();
  if (const auto [end, fault] = std::from_chars(wanted.data(), last, pid);
      !wanted.empty() && fault == std::errc{} && end == last)
    return pid;
  rings::Found found = rings::find_programs();
  if (!wanted.empty()) {
    ONEHOP_TRY(named, rings::named(std::move(found.programs), wanted));
    found.programs = std::move(named);
  }
  if (found.programs.size() == 1) return found.programs.front().pid;
  const std::string with_name = wanted.empty() ? "" : fmt::format(" named '{}'", wanted);
  if (found.programs.empty()) {
    const bool is_root_needed = !found.is_all && ::geteuid() != 0;
    return Error{ExitCode::peer_unreachable, "find a program with AF_XDP rings" + with_name,
                 found.is_all ? "none has any" : "none of those that may be looked at has any",
                 is_root_needed ? "Run it as root (sudo) to see the programs of all users"
                                : "Start one, or give its PID"};
  }
  std::string list;
  for (const rings::Program& program : found.programs)
    list += fmt::format("\n  onehop rings {:<8} {}, {} rings", program.pid, program.name,
                        program.rings.size());
  return Error{ExitCode::usage, "look at the rings of a program" + with_name,
               fmt::format("{} have AF_XDP rings", found.programs.size()), "Choose one:" + list};
}

class RingViewer {
 public:
  RingViewer(const RingsOptions& options, rings::Sampler sampler, const Reporter& reporter)
      : options_{options},
        sampler_{std::move(sampler)},
        reporter_{reporter},
        is_drawing_{!options.is_json && !options.is_once && watch::is_terminal()},
        sample_interval_{static_cast<Nanos::rep>(1e9 / options.rate_hz)} {
    const double fallback = is_drawing_ ? 0.2 : 1;
    interval_ = Nanos{static_cast<Nanos::rep>(options.interval_seconds.value_or(fallback) * 1e9)};
    screen_.is_utf8 = watch::is_utf8_locale();
    screen_.has_color = is_drawing_ && watch::wants_color();
  }

  Result<void> run(rings::RingTrace* trace) {
    ONEHOP_TRY(signals, watch::Signals::open());
    Result<void> result = success();
    {
      std::optional<watch::Terminal> terminal;
      if (is_drawing_) terminal.emplace();
      result = follow(signals, terminal ? &*terminal : nullptr, trace);
    }
    if (result.has_value() && (is_drawing_ || (is_ended_ && !is_shown_))) show(nullptr);
    if (result.has_value() && is_ended_) reporter_.say("the program has ended");
    return result;
  }

  [[nodiscard]] const rings::Sampler& sampler() const { return sampler_; }
  [[nodiscard]] bool is_ended() const { return is_ended_; }

 private:
  /// follow samples until the program ends, somebody wants an end or, with --once, an interval is
  /// over.
  Result<void> follow(const watch::Signals& signals, watch::Terminal* terminal,
                      rings::RingTrace* trace) {
    begun_at_ = monotonic_now();
    Instant sample_at = begun_at_, rescan_at = begun_at_ + rescan_interval;
    while (!is_ended_) {
      ONEHOP_TRYV(sample(trace));
      if (is_ended_) return success();
      const Instant now = monotonic_now();
      if (now - begun_at_ >= interval_) {
        show(terminal);
        if (options_.is_once) return success();
        begin_interval(now);
      }
      if (now >= rescan_at) {
        ONEHOP_TRY(is_there, sampler_.rescan());
        is_ended_ = !is_there;
        rescan_at = now + rescan_interval;
      }
      sample_at = std::max(sample_at + sample_interval_, now);
      ONEHOP_TRY(wish, wait(signals, terminal, std::min(sample_at, begun_at_ + interval_)));
      if (wish == watch::Wish::end) return success();
      if (wish == watch::Wish::draw) show(terminal);
    }
    return success();
  }

  Result<void> sample(rings::RingTrace* trace) {
    ONEHOP_TRY(is_there, sampler_.sample());
    is_ended_ = !is_there;
    if (is_there) is_shown_ = false;
    if (!is_there || trace == nullptr) return success();
    return trace->write(monotonic_now().time_since_epoch(), sampler_.sockets());
  }

  void begin_interval(Instant now) {
    sampler_.begin_interval();
    begun_at_ = now;
  }

  /// wait sleeps until then, or until a signal, a key or the program's end.
  Result<watch::Wish> wait(const watch::Signals& signals, watch::Terminal* terminal,
                           Instant until) {
    std::array<pollfd, 3> entries{
        pollfd{signals.fd(), POLLIN, 0},
        pollfd{terminal != nullptr && terminal->has_keys() ? STDIN_FILENO : -1, POLLIN, 0},
        pollfd{sampler_.ended_fd(), POLLIN, 0}};
    const Nanos left = std::max(until - monotonic_now(), Nanos{0});
    const timespec timeout{.tv_sec = left / 1s, .tv_nsec = static_cast<long>((left % 1s).count())};
    if (::ppoll(entries.data(), entries.size(), &timeout, nullptr) < 0 && errno != EINTR)
      return errno_error(ExitCode::internal_error, "wait for the next sample");
    is_ended_ = (entries[2].revents & POLLIN) != 0;
    return watch::attend(signals, terminal, entries[1].revents);
  }

  void show(watch::Terminal* terminal) {
    is_shown_ = true;
    const Instant now = monotonic_now();
    const rings::Moment moment{.pid = sampler_.pid(),
                               .name = sampler_.name(),
                               .samples = sampler_.samples(),
                               .at = now.time_since_epoch(),
                               .interval = now - begun_at_,
                               .is_whole = is_drawing_};
    if (options_.is_json) {
      for (const rings::Socket& socket : sampler_.sockets())
        reporter_.event("rings", rings::json_of(moment, socket));
      return;
    }
    const watch::Size size = watch::terminal_size();
    screen_.columns = terminal != nullptr ? size.columns : 80;
    screen_.rows = terminal != nullptr ? size.rows : 0;
    const std::string text =
        watch::text_of(rings::lines_of(moment, sampler_.sockets(), screen_), screen_);
    if (terminal != nullptr) return terminal->draw(text);
    fmt::print("{}{}", text, is_drawing_ || options_.is_once ? "" : "\n");
    std::fflush(stdout);
  }

  const RingsOptions& options_;
  rings::Sampler sampler_;
  const Reporter& reporter_;
  const bool is_drawing_;
  const Nanos sample_interval_;
  Nanos interval_{0};
  watch::ScreenOptions screen_;
  Instant begun_at_{};
  bool is_ended_ = false, is_shown_ = false;
};

Result<std::vector<rings::Threshold>> thresholds_of(const RingsOptions& options) {
  std::vector<rings::Threshold> thresholds;
  for (const auto& [texts, is_above] :
       {std::pair{&options.fail_above, true}, std::pair{&options.fail_below, false}})
    for (const std::string& text : *texts) {
      ONEHOP_TRY(threshold, rings::read_threshold(text, is_above));
      thresholds.push_back(threshold);
    }
  return thresholds;
}

Result<std::optional<rings::RingTrace>> open_trace(const std::string& path,
                                                   const rings::Sampler& sampler) {
  if (path.empty()) return std::optional<rings::RingTrace>{};
  const auto rights = CallerRights::take();  // it belongs to who called sudo
  if (rights.has_error()) return rights.error();
  const rings::Program of{.pid = sampler.pid(), .name = sampler.name(), .rings = {}};
  ONEHOP_TRY(trace, rings::RingTrace::open(path, command_line(), of));
  return std::optional{std::move(trace)};
}

Result<void> run(const RingsOptions& options, const Reporter& reporter) {
  ONEHOP_TRY(thresholds, thresholds_of(options));
  ONEHOP_TRY(pid, one_of(options.program));
  ONEHOP_TRY(sampler, rings::Sampler::open(pid));
  ONEHOP_TRY(trace, open_trace(options.trace_file, sampler));
  RingViewer viewer{options, std::move(sampler), reporter};
  Result<void> done = viewer.run(trace ? &*trace : nullptr);
  if (trace) {
    const Result<void> closed = trace->close();
    if (done.has_value()) done = closed;
  }
  ONEHOP_TRYV(done);
  const std::vector<std::string> crossed = rings::crossed(viewer.sampler().sockets(), thresholds);
  if (crossed.empty()) return success();
  return Error{ExitCode::verification_failed, "hold the rings to their thresholds",
               fmt::format("{}", fmt::join(crossed, "; ")),
               "docs/rings.md says what a ring that is full or empty means"};
}

}  // namespace

ExitCode rings_command(const RingsOptions& options) {
  OutputOptions common;
  common.is_json = options.is_json;
  const Reporter reporter{common, "rings"};
  auto done = run(options, reporter);
  if (done.has_value()) return ExitCode::done;
  reporter.error(done.error());
  return done.error().code;
}

void add_rings_options(CLI::App& command, RingsOptions& rings) {
  command
      .add_option("PROGRAM", rings.program,
                  "its PID, or its name as for pgrep (default: the only one that has rings)")
      ->type_name("PID|NAME");
  command.add_option("--rate", rings.rate_hz, "samples a second")
      ->check(CLI::Range(1.0, 2000.0))
      ->capture_default_str();
  command
      .add_option("--interval", rings.interval_seconds,
                  "seconds between two pictures (default: 0.2 on a terminal, else 1)")
      ->check(CLI::Range(0.1, 3600.0));
  CLI::Option* once =
      command.add_flag("--once", rings.is_once, "show one interval as text, and end");
  command
      .add_option("--fail-above", rings.fail_above,
                  "exit code 6 where a ring held more than this part of its entries, "
                  "in percent; rx=80: that ring alone")
      ->type_name("[RING=]PERCENT")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->allow_extra_args(false)
      ->needs(once);
  command.add_option("--fail-below", rings.fail_below, "likewise for less: fill=10")
      ->type_name("[RING=]PERCENT")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->allow_extra_args(false)
      ->needs(once);
  command
      .add_option("--trace", rings.trace_file, "write each sample to this file, for 'onehop plot'")
      ->type_name("FILE");
  command.add_flag("--json", rings.is_json,
                   "one JSON line per socket and interval on standard output");
}

}  // namespace onehop::tool
