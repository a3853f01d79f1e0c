// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/labs/bench/output.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <iostream>

#include "tools/labs/bench/table.hpp"
#include "tools/onehop/options.hpp"
#include "tools/onehop/text/quantity.hpp"
#include "tools/onehop/text/report.hpp"

namespace onehop::bench {

namespace {

Json json_of(const Summary& s) {
  return {{"median", s.median}, {"min", s.min}, {"max", s.max}, {"count", s.count}};
}

Json json_of(const std::map<std::string, Summary>& summaries) {
  Json json = Json::object();
  for (const auto& [name, summary] : summaries) json[name] = json_of(summary);
  return json;
}

bool is_measured_by_ends(Part part) {
  return part == Part::loop || part == Part::serve || part == Part::port;
}

/// methods says how each figure came about.
Json methods_of(Part part) {
  if (!is_measured_by_ends(part))
    return {
        {"cpu", part == Part::file ? "getrusage(self) over the pass"
                                   : "CLOCK_THREAD_CPUTIME_ID over all runs, after one to warm up"},
        {"cycles", "perf_event_open, this process"}};
  return {
      {"cpu_seconds", part != Part::port ? "getrusage of both ends (of this one, between two "
                                           "hosts) from their start; with -O between the readings"
                                         : "getrusage of both ends between the readings"},
      {"softirq_seconds", "growth of ksoftirqd's time between the readings"},
      {"cpu_ns_per_byte", "(cpu_seconds + softirq_seconds) / payload bytes that arrived"},
      {"system_busy_seconds",
       "growth of non-idle time of all cores (/proc/stat) between the readings"},
      {"threads", "/proc/PID/task: schedstat, split as the ticks of user and system are"},
      {"softirq",
       "raw tracepoints softirq_entry and softirq_exit, by the thread they interrupt; contained in "
       "its system time; counted with the cycles"},
      {"cycles",
       "perf_event_open with inherit on both ends, in a run before the rounds whose times are not "
       "used: counting makes each switch between threads and each softirq dearer (between two "
       "hosts: in the rounds)"},
      {"core_round_trip_ns",
       "a cache line between the first two CPUs and back, right before and after the run: the "
       "longer. Compare runs in which it is equal: a host may move its virtual CPUs"},
      {"energy", "RAPL packages between the readings: all of the machine"},
      {"iperf3",
       "wait4 of client and server as whole processes; ksoftirqd and busy time meanwhile"},
      {"quic", "likewise of both of its programs"}};
}

}  // namespace

void Output::event(const std::string& type, Json body) {
  if (is_for_people()) return;
  if (options_.is_document) {
    if (type == "start" || type == "end" || type == "error")
      document_[type] = std::move(body);
    else
      document_[type + "s"].push_back(std::move(body));
    return;
  }
  Json line{{"schema_version", tool::schema_version}, {"type", type}};
  line.update(body);
  std::cout << line.dump(-1, ' ', true, Json::error_handler_t::replace) << '\n' << std::flush;
}

void Output::start() {
  document_ = {{"schema_version", tool::schema_version}, {"type", "bench"}};
  event("start", {{"bench", name_of(options_.part)},
                  {"version", ONEHOP_VERSION},
                  {"command", tool::command_line()},
                  {"rounds", options_.rounds},
                  {"profile", options_.profile},
                  {"seconds", options_.seconds},
                  {"omit_seconds", options_.omit_seconds},
                  {"bytes", options_.bytes},
                  {"methods", methods_of(options_.part)}});
}

void Output::interval(int round, const std::string& point, const Interval& interval) {
  const double bps = 8 * static_cast<double>(interval.bytes) / interval.span_s;
  event("interval", {{"round", round},
                     {"name", point},
                     {"at_seconds", interval.at_s},
                     {"seconds", interval.span_s},
                     {"bytes", interval.bytes},
                     {"goodput_bps", bps}});
  if (is_for_people())
    fmt::print(stderr, "  {} {:6.1f} s  {}\n", point, interval.at_s,
               tool::format_rate({static_cast<std::int64_t>(bps / 8)}));
}

void Output::sample(int round, const PointResult& point) {
  Json threads = Json::object();
  for (const auto& [name, rounds] : point.threads) threads[name] = rounds.back();
  event("sample", {{"round", round},
                   {"name", point.name},
                   {"metrics", point.rounds.back()},
                   {"threads", threads}});
  if (is_for_people() && !options_.is_quiet)
    fmt::print(stderr, "round {}/{}: {}\n", round + 1, options_.rounds, point.name);
}

void Output::results(const std::vector<PointResult>& results) {
  std::vector<std::string> names;
  for (const PointResult& result : results) names.push_back(result.name);
  const auto found = base_of(options_, names);
  const std::optional<std::size_t> base = found.has_value() ? found.value() : std::nullopt;
  for (const PointResult& result : results) {
    Json threads = Json::object();
    for (const auto& [name, rounds] : result.threads) threads[name] = json_of(by_name(rounds));
    Json body{{"name", result.name},        {"settings", result.settings},
              {"used", result.latest.used}, {"metrics", json_of(by_name(result.rounds))},
              {"threads", threads},         {"not_available", result.latest.missing}};
    if (base) {
      Json ratios = Json::object();
      for (const auto& [name, summary] : by_name(result.rounds))
        if (const auto ratio = ratios_to(result.rounds, results[*base].rounds, name))
          ratios[name] = json_of(*ratio);
      body["baseline"] = results[*base].name;
      body["ratios"] = std::move(ratios);
    }
    event("result", std::move(body));
  }
  if (!is_for_people()) return;
  fmt::print("{}", overview(options_, results, base));
  if (base)
    fmt::print("ratio: to {}, within each round; median of {} rounds\n", results[*base].name,
               results.front().rounds.size());
  if (is_measured_by_ends(options_.part))
    for (const PointResult& result : results) fmt::print("{}", details(result));
  std::fflush(stdout);
}

void Output::error(const Error& error) {
  fmt::print(stderr, "onehop bench: {}\n", error.message());
  event("error", {{"exit_code", static_cast<int>(error.code)},
                  {"attempt", error.attempt},
                  {"cause", error.cause},
                  {"hint", error.hint}});
}

void Output::end(ExitCode code) {
  event("end", {{"exit_code", static_cast<int>(code)}});
  if (options_.is_document)
    std::cout << document_.dump(2, ' ', true, Json::error_handler_t::replace) << '\n' << std::flush;
}

Result<std::optional<std::size_t>> base_of(const BenchOptions& options,
                                           const std::vector<std::string>& names) {
  if (options.baseline.empty())
    return names.size() > 1 ? std::optional<std::size_t>{0} : std::nullopt;
  const auto at = std::ranges::find(names, options.baseline);
  if (at != names.end()) return std::optional{static_cast<std::size_t>(at - names.begin())};
  return Error{ExitCode::usage, "take --baseline " + options.baseline, "there is no such point",
               "The points are: " + join(names, ", ")};
}

}  // namespace onehop::bench
