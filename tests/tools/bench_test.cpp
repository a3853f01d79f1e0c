// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Goal:   what `onehop bench` tells of its rounds is arithmetic that holds, and its tables fit a
// terminal. Method: statistics, options, rounds and tables on values made by hand; meters on this
// process. Bounds: none on speed.
#include <catch2/catch.hpp>

#include <sched.h>
#include <unistd.h>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "engine/base/system/cpu.hpp"
#include "engine/wire/frame.hpp"
#include "tools/labs/bench/meters.hpp"
#include "tools/labs/bench/options.hpp"
#include "tools/labs/bench/output.hpp"
#include "tools/labs/bench/part_points.hpp"
#include "tools/labs/bench/parts/core_distance.hpp"
#include "tools/labs/bench/parts/file_part.hpp"
#include "tools/labs/bench/parts/hand_over.hpp"
#include "tools/labs/bench/parts/micro.hpp"
#include "tools/labs/bench/points.hpp"
#include "tools/labs/bench/table.hpp"

namespace onehop::bench {
namespace {

/// Parses a command line; the exit code of the parser, 0 where it took it.
struct Parsed {
  BenchOptions options;
  int code = 0;
  std::string text;
};
Parsed parse(const std::string& line) {
  Parsed parsed;
  CLI::App app;
  add_bench_command(app, parsed.options);
  std::istringstream words{line};
  std::vector<std::string> arguments;
  for (std::string word; words >> word;)
    arguments.insert(arguments.begin(), word);  // CLI11 takes them last first
  try {
    app.parse(arguments);
    const auto checked = check_options(parsed.options);
    if (checked.has_error()) {
      parsed.code = static_cast<int>(checked.error().code);
      parsed.text = checked.error().message();
    }
  } catch (const CLI::ParseError& error) {
    parsed.code = 2;
    parsed.text = error.what();
  }
  return parsed;
}

}  // namespace

TEST_CASE("the median of rounds is the middle one, and the mean of the middle two",
          "[tools][bench]") {
  CHECK_FALSE(summarize({}).has_value());
  CHECK(summarize({3})->median == 3);
  CHECK(summarize({9, 1, 5})->median == 5);
  const Summary even = *summarize({8, 2, 4, 100});
  CHECK(even.median == 6);
  CHECK(even.min == 2);
  CHECK(even.max == 100);
  CHECK(even.count == 4);
  CHECK(even.spread() == Approx(98.0 / 6));
  CHECK(Summary{}.spread() == 0);
}

TEST_CASE("a ratio is formed within a round", "[tools][bench]") {
  // The machine gets twice as slow from round to round: each round still says 1.5.
  const std::vector<Metrics> own{{{"x", 3}}, {{"x", 6}}, {{"x", 12}}};
  const std::vector<Metrics> base{{{"x", 2}}, {{"x", 4}}, {{"x", 8}}};
  const Summary ratio = *ratios_to(own, base, "x");
  CHECK(ratio.median == 1.5);
  CHECK(ratio.min == 1.5);
  CHECK(ratio.max == 1.5);
  CHECK(ratios_to(own, {{{"x", 0}}, {}, {{"x", 8}}}, "x")->count == 1);
  CHECK_FALSE(ratios_to(own, base, "y").has_value());
}

TEST_CASE("what a round did not measure is absent from the summary and not zero",
          "[tools][bench]") {
  const auto summaries = by_name({{{"a", 1}}, {{"a", 3}, {"b", 7}}});
  CHECK(summaries.at("a").count == 2);
  CHECK(summaries.at("b").count == 1);
  CHECK(summaries.at("b").median == 7);
}

TEST_CASE("rounds interleave the points and begin with another one each time", "[tools][bench]") {
  std::vector<std::string> order;
  std::vector<Point> points;
  for (const char* name : {"a", "b", "c"})
    points.push_back({.name = name,
                      .settings = Json::object(),
                      .run = [&order, name](const RunMode&) -> Result<RunResult> {
                        order.push_back(name);
                        RunResult run;
                        run.metrics = {{"bytes_total", 1000}};
                        run.threads["sender/engine"] = {
                            .user_s = 1e-6, .system_s = 2e-6, .softirq_s = std::nullopt};
                        return run;
                      }});
  const auto results = run_rounds(
      points, 3, [](int, const Point&) { return OnInterval{}; }, [](int, const PointResult&) {});
  REQUIRE(results.has_value());
  CHECK(join(order, "") == "abcbcacab");
  CHECK(results.value()[1].rounds.size() == 3);
  const auto threads = by_name(results.value()[1].threads.at("sender/engine"));
  CHECK(threads.at("user_ns_per_byte").median == Approx(1));
  CHECK(threads.at("system_ns_per_byte").median == Approx(2));
  CHECK_FALSE(threads.contains("softirq_ns_per_byte"));
}

TEST_CASE(
    "cycles and softirqs come from one run before the rounds, and no time of that run is used",
    "[tools][bench]") {
  std::vector<bool> counted;
  const std::vector<Point> points{{.name = "a",
                                   .settings = Json::object(),
                                   .run = [&counted](const RunMode& mode) -> Result<RunResult> {
                                     counted.push_back(mode.is_counted);
                                     RunResult run;
                                     run.metrics = {{"cpu_ns_per_byte", mode.is_counted ? 9 : 1},
                                                    {"bytes_total", mode.is_counted ? 500 : 1000}};
                                     run.threads["sender/engine"] = {
                                         .system_s = mode.is_counted ? 9e-6 : 2e-6};
                                     if (!mode.is_counted) return run;
                                     run.metrics["cycles_per_byte"] = 4;
                                     run.threads["sender/engine"].softirq_s = 1e-6;
                                     run.missing["softirq"] = "why";
                                     return run;
                                   },
                                   .is_counted_apart = true}};
  const auto results = run_rounds(
      points, 2, [](int, const Point&) { return OnInterval{}; }, [](int, const PointResult&) {});
  REQUIRE(results.has_value());
  // A round is measured again where the host moved our CPUs.
  REQUIRE(counted.size() >= 3);
  CHECK(counted.front());
  CHECK(std::count(counted.begin(), counted.end(), true) == 1);
  const auto summaries = by_name(results.value()[0].rounds);
  CHECK(summaries.at("cpu_ns_per_byte").count == 2);
  CHECK(summaries.at("cpu_ns_per_byte").median == 1);
  CHECK(summaries.at("cycles_per_byte").median == 4);
  const auto threads = by_name(results.value()[0].threads.at("sender/engine"));
  CHECK(threads.at("system_ns_per_byte").median == Approx(2));
  CHECK(threads.at("softirq_ns_per_byte").median == Approx(2));  // per byte of its own run
  CHECK(results.value()[0].latest.missing.at("softirq") == "why");
}

TEST_CASE("two round trips between CPUs tell whether the host moved them", "[tools][bench]") {
  CHECK(is_same_place(80ns, 105ns));
  CHECK_FALSE(is_same_place(80ns, 520ns));
  CHECK_FALSE(is_same_place(520ns, 80ns));
  CHECK(is_same_place(0ns, 0ns));
  if (const auto cpus = first_two_cpus()) {
    const auto trip = core_round_trip(*cpus);
    CHECK((!trip || *trip > 0ns));
  }
}

TEST_CASE("handing blocks over is measured between two CPUs, or not at all", "[tools][bench]") {
  const auto cpus = first_two_cpus();
  if (!cpus) return;
  const auto cost = hand_over_ns_per_byte(*cpus);
  REQUIRE(cost.has_value());
  CHECK(std::isfinite(*cost));
  CHECK(*cost != 0);
  CHECK_FALSE(hand_over_ns_per_byte({cpus->first, CPU_SETSIZE}).has_value());
}

TEST_CASE("an error in a round names its point and ends the rounds", "[tools][bench]") {
  const std::vector<Point> points{
      {.name = "bad", .settings = Json::object(), .run = [](const RunMode&) -> Result<RunResult> {
         return Error{ExitCode::io_unavailable, "open it", "no"};
       }}};
  const auto results = run_rounds(
      points, 3, [](int, const Point&) { return OnInterval{}; }, [](int, const PointResult&) {});
  REQUIRE(results.has_error());
  CHECK(results.error().code == ExitCode::io_unavailable);
  CHECK(results.error().message().find("measure bad: open it: no") == 0);
}

TEST_CASE("no line of a table is wider than a terminal", "[tools][bench]") {
  BenchOptions options;
  options.part =
      GENERATE(Part::loop, Part::port, Part::aead, Part::digest, Part::file, Part::law, Part::ring);
  std::vector<PointResult> results;
  for (const double scale : {1.0, 123456789.0, 1e-5}) {
    PointResult result;
    result.name =
        "afxdp:zero-copy 65000 x1024 adaptive 1500Mbit sha256 ipsec-mb io_uring safe-range";
    for (const char* name :
         {"cpu_ns_per_byte",         "sender_ns_per_byte",    "receiver_ns_per_byte",
          "busy_ns_per_byte",        "goodput_bps",           "frames_per_second",
          "seal_ns_per_byte",        "open_ns_per_byte",      "seal_ns_per_frame",
          "cycles_per_byte",         "read_ns_per_byte",      "write_ns_per_byte",
          "syscalls_per_block",      "ns_per_tick",           "cycles_per_tick",
          "ns_per_message",          "parts_ns_per_byte",     "whole_over_parts",
          "frames_over_flood",       "part_port_ns_per_byte", "part_aead_ns_per_byte",
          "part_digest_ns_per_byte", "part_read_ns_per_byte", "part_write_ns_per_byte",
          "part_law_ns_per_byte",    "hand_over_ns_per_byte", "whole_over_parts_and_hand_over"})
      for (const double factor : {0.7, 1.0, 1.3}) {
        if (result.rounds.size() < 3) result.rounds.resize(3);
        result.rounds[factor < 1 ? 0 : factor == 1.0 ? 1 : 2][name] = scale * factor;
      }
    result.latest.missing = {{"energy", std::string(200, 'e')}, {"softirq", std::string(200, 's')}};
    result.latest.used = {{"io_used", std::string(200, 'u')}};
    result.threads[std::string(90, 't')] = {
        {{"user_ns_per_byte", scale}, {"system_ns_per_byte", scale}}};
    results.push_back(std::move(result));
  }
  std::string text = overview(options, results, 0);
  for (const PointResult& result : results) text += details(result);
  std::istringstream lines{text};
  std::size_t count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    CAPTURE(line);
    CHECK(line.size() <= table_columns);
  }
  CHECK(count > results.size() * 8);
}

TEST_CASE("points of a large sweep can be told apart", "[tools][bench]") {
  BenchOptions options;
  std::vector<PointResult> results(2);
  results[0].name = "udp sha256 openssl io_uring", results[1].name = "udp sha256 openssl threads";
  for (PointResult& result : results)
    for (const char* name : {"cpu_ns_per_byte", "sender_ns_per_byte", "receiver_ns_per_byte",
                             "busy_ns_per_byte", "goodput_bps", "frames_per_second"})
      result.rounds.resize(1), result.rounds[0][name] = 123456;
  const std::string text = overview(options, results, 0);
  CAPTURE(text);
  for (const PointResult& result : results)
    CHECK(text.find("\n" + result.name + "\n") != std::string::npos);
  results[0].name = "udp threads", results[1].name = "udp";
  CHECK(overview(options, results, 0).find("\nudp threads  123k") != std::string::npos);
}

TEST_CASE("figures keep three digits that mean something", "[tools][bench]") {
  CHECK(figure(0) == "0.00");
  CHECK(figure(0.0123) == "0.012");
  CHECK(figure(1.456) == "1.46");
  CHECK(figure(12.34) == "12.3");
  CHECK(figure(123.4) == "123");
  CHECK(figure(520'300) == "520k");
  CHECK(figure(1.5e9) == "1.5G");
}

TEST_CASE("bench takes iperf3's letters and lists", "[tools][bench]") {
  Parsed p = parse(
      "bench loop --io udp,afxdp:skb --frame-size 1472,3472 -t 0.5 -O 0.1 -i 0.25 -R -A 0,0 -r 3 "
      "--json-stream");
  CAPTURE(p.text);
  REQUIRE(p.code == 0);
  CHECK(p.options.part == Part::loop);
  CHECK(p.options.io == std::vector<std::string>{"udp", "afxdp:skb"});
  CHECK(p.options.frame_bytes == std::vector<std::size_t>{1472, 3472});
  CHECK(p.options.seconds == 0.5);
  CHECK(p.options.sender_cpu == 0);
  CHECK(p.options.receiver_cpu == 0);
  CHECK(p.options.is_reverse);
  CHECK(p.options.is_json);
  p = parse("bench port -n 2G -P 4 --bidir -J");
  CAPTURE(p.text);
  REQUIRE(p.code == 0);
  CHECK(p.options.bytes == std::uint64_t{2} << 30);
  CHECK(p.options.parallel == 4);
  CHECK(p.options.is_document);
  CHECK(parse("bench digest").options.digest.size() == 2);
  CHECK(parse("bench loop").options.digest == std::vector<std::string>{"xxh3"});
}

TEST_CASE("bench refuses what makes no sense and says why", "[tools][bench]") {
  const auto [line, words] = GENERATE(Catch::Generators::table<std::string, std::string>({
      {"bench", "subcommand"},
      {"bench loop --io tcp", "no such port"},
      {"bench loop --io udp:copy", "no such mode"},
      {"bench loop -n 12Q", "not a number of bytes"},
      {"bench loop -n 0", "not a number of bytes"},
      {"bench loop --source file", "a size, not a time"},
      {"bench loop --source file -n 1M --digest none", "always digested"},
      {"bench loop -n 1M -O 1", "from its first byte"},
      {"bench loop --rate 7", "7"},
      {"bench loop -A 0,1,2", "one or two"},
      {"bench loop -A x", "one or two"},
      {"bench loop -R --bidir", "exclude"},
      {"bench loop --json -J", "two forms"},
      {"bench loop --burst 3", "not expected"},
      {"bench loop --to host", "Name an amount"},
      {"bench loop --to host -n 1M --parts", "share memory"},
      {"bench loop --to host -n 1M -R", "one receiving end"},
      {"bench loop --to host -n 1M --baseline iperf3-tcp",
       "with --baseline: iperf3 is started in a lab only"},
      {"bench loop --to host -n 1M --baseline quinn", "in a lab only"},
      {"bench loop --baseline quinn -P 2", "one stream one way"},
      {"bench loop --baseline s2n-quic --rate 100Mbit", "one stream one way"},
      {"bench loop --peers /tmp", "nothing of it is measured"},
      {"bench loop --iface eth0", "two hosts"},
      {"bench serve -n 1M", "not expected"},
      {"bench port --io afxdp -P 2", "one process"},
      {"bench port --io afxdp --bidir", "one process"},
      {"bench port -u", "TCP and UDP"},
      {"bench port -b 1G", "--rate"},
      {"bench aead -P 2", "one thread"},
      {"bench aead -R", "no direction"},
      {"bench digest -n 1G", "-t"},
      {"bench digest --digest none", "none"},
      {"bench law -i 1", "one thread"},
      {"bench file -r 0", "range"},
  }));
  const Parsed parsed = parse(line);
  CAPTURE(line, parsed.text);
  CHECK(parsed.code == 2);
  CHECK(parsed.text.find(words) != std::string::npos);
}

TEST_CASE("a baseline that is no point is refused before anything runs", "[tools][bench]") {
  BenchOptions options;
  CHECK_FALSE(base_of(options, {"udp"}).value().has_value());
  CHECK(base_of(options, {"udp", "afxdp"}).value() == 0U);
  options.baseline = "afxdp";
  CHECK(base_of(options, {"udp", "afxdp"}).value() == 1U);
  options.baseline = "quic";
  REQUIRE(base_of(options, {"udp"}).has_error());
  CHECK(base_of(options, {"udp"}).error().code == ExitCode::usage);
}

TEST_CASE("every part measures something of its own work", "[tools][bench]") {
  constexpr double seconds = 0.01;
  const auto aead = measure_aead("openssl", 1472, seconds);
  REQUIRE(aead.has_value());
  CHECK(aead.value().metrics.at("seal_ns_per_byte") > 0);
  CHECK(aead.value().metrics.at("open_ns_per_byte") > 0);
  CHECK(aead.value().metrics.at("seal_ns_per_frame") ==
        Approx(aead.value().metrics.at("seal_ns_per_byte") * (1472 - wire::overhead_bytes)));
  CHECK(measure_digest("xxh3", seconds).metrics.at("cpu_ns_per_byte") > 0);
  CHECK(measure_law("auto", seconds).value().metrics.at("ns_per_tick") > 0);
  CHECK(measure_law("no-such-law", seconds).error().code == ExitCode::usage);
  CHECK(measure_aead("openssl", wire::overhead_bytes, seconds).error().code == ExitCode::usage);
  const auto file = measure_file("threads", "/tmp", 3 << 20);
  REQUIRE(file.has_value());
  CHECK(file.value().metrics.at("bytes_total") == 3 << 20);
  CHECK(file.value().metrics.at("syscalls_per_block") == Approx(1));
  CHECK(measure_file("threads", "/no/such/folder", 1).error().code == ExitCode::local_file_error);
}

TEST_CASE("timed work is run as often as it says", "[tools][bench]") {
  class Counted final : public Work {
   public:
    void run() override { ++runs; }
    std::uint64_t items_per_run() const noexcept override { return 1; }
    std::uint64_t runs = 0;
  } work;
  const Timing timing = time_work(work, 2ms);
  CHECK(work.runs == timing.runs + 1);  // one to warm up
  CHECK(timing.seconds >= 0.002);
}

TEST_CASE("threads are read with the CPU time they used", "[tools][bench]") {
  name_this_thread("onehop-reading");
  volatile std::uint64_t sum = 0;
  while (thread_cpu_time() < 30ms) sum = sum + 1;
  const std::vector<ThreadTime> threads = read_threads(::getpid());
  const auto own = std::ranges::find(threads, std::string{"onehop-reading"}, &ThreadTime::name);
  REQUIRE(own != threads.end());
  CHECK(own->tid == ::getpid());
  CHECK(own->user_s + own->system_s > 0);
  CHECK(read_threads(0x7ffffff).empty());
}

TEST_CASE("counters and energy are there or say why not", "[tools][bench]") {
  const auto counters = PerfCounters::open(::getpid());
  if (counters.has_value()) {
    const auto before = counters.value().read();
    volatile std::uint64_t sum = 0;
    for (int i = 0; i < 100'000; ++i) sum = sum + 1;
    const auto after = counters.value().read();
    REQUIRE(before);
    REQUIRE(after);
    CHECK(after->instructions > before->instructions);
  } else {
    CHECK_FALSE(counters.error().cause.empty());
  }
  const EnergyMeter energy;
  const auto reading = energy.read();
  CHECK(energy.joules(reading, reading).has_value() == energy.missing().empty());
}

}  // namespace onehop::bench
