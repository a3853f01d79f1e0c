// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Traces as they are read, gathered and drawn. The program with its files is in
// plot_program_test.py.
#include <catch2/catch.hpp>

#include <fmt/format.h>

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "control/rate/trace.hpp"
#include "tools/labs/plot/gnuplot.hpp"
#include "tools/labs/plot/output.hpp"
#include "tools/labs/plot/page.hpp"
#include "tools/labs/plot/svg.hpp"

namespace onehop::plot {
namespace {

constexpr const char* head =
    "# command line: onehop send a\n# version: 1\n# config: send law "
    "auto\nt_ns,rate_bytes_per_s,bottleneck,law,tx_queue_bytes\n";

std::string refusal(const std::string& text) {
  std::istringstream in{text};
  const std::array<std::string_view, 2> wanted{"rate_bytes_per_s", "tx_queue_bytes"};
  const auto read = read_trace(in, "x.csv", wanted, [](const TraceRow&) {});
  REQUIRE_FALSE(read);
  CHECK(read.error().code == ExitCode::local_file_error);
  CHECK_THAT(read.error().attempt, Catch::Contains("x.csv"));
  return read.error().cause;
}

RunData run_of(const std::string& text, std::size_t buckets = 100, std::string label = "run") {
  std::istringstream in{text};
  auto runs = read_runs(in, "folder/x.csv", std::move(label), buckets);
  REQUIRE((runs && runs.value().size() == 1));
  return std::move(runs.value().front());
}

/// A trace as the program writes it, of `rows` rows 1 ms apart.
std::string real_trace(
    int rows, const std::string& command = "onehop send a",
    const std::string& config = "send law auto frame 1472 payload 1425 wire 1511 link none") {
  const std::string path = "/tmp/onehop-plot-test-" + std::to_string(::getpid());
  auto writer =
      rate::TraceWriter::open(path, {.command_line = command, .version = "1", .config = config});
  REQUIRE(writer);
  rate::RateState state;
  for (int i = 0; i < rows; ++i) {
    state.at = Instant{5s} + Nanos{1ms} * i;
    state.path.srtt = 4ms;
    state.path.counters.wakeups_total = 2;
    state.path.packets_lost_total = static_cast<std::uint64_t>(i / 10);
    state.cpu_total = Nanos{200us} * i;
    state.path.tx_queue.drained_total = Bytes{75'000} * i;  // 600 Mbit/s
    state.grant.rate = mbit_per_s(600);
    state.bottleneck = i < rows / 4 ? Bottleneck::source : Bottleneck::tx_queue;
    state.law.buffers[0] = {.occupancy = {300'000 + 1000 * (i % 100)},
                            .drain = mbit_per_s(590),
                            .target = {350'000},
                            .rate = mbit_per_s(600),
                            .takes_part = true,
                            .under = Bytes{330'000},
                            .over = Bytes{380'000},
                            .occupancy_max = {500'000}};
    if (i == rows / 2) state.law.buffers[0].occupancy = {480'000};
    writer.value().write(state, {}, "auto", "none");
  }
  REQUIRE(writer.value().close());
  std::ifstream in{path};
  std::string text{std::istreambuf_iterator<char>{in}, {}};
  std::remove(path.c_str());
  return text;
}

}  // namespace

TEST_CASE("a trace is read row by row, and an empty cell is no number", "[tools][plot]") {
  std::istringstream in{std::string{head} + "1000,5,tx_queue,auto,7\n2000,6,source,auto,\n"};
  const std::array<std::string_view, 3> wanted{"tx_queue_bytes", "rate_bytes_per_s", "not_there"};
  std::vector<std::vector<std::optional<double>>> rows;
  std::string words;
  const auto read = read_trace(in, "x", wanted, [&](const TraceRow& row) {
    rows.emplace_back(row.values.begin(), row.values.end());
    words += fmt::format("{} {} {};", row.at.count(), row.bottleneck, row.law);
  });
  REQUIRE(read);
  CHECK(read.value().command_line == "onehop send a");
  CHECK(read.value().config == "send law auto");
  CHECK(rows == std::vector<std::vector<std::optional<double>>>{{7, 5, std::nullopt},
                                                                {std::nullopt, 6, std::nullopt}});
  CHECK(words == "1000 tx_queue auto;2000 source auto;");
}

TEST_CASE("a trace that is not one is refused with line and column", "[tools][plot]") {
  const std::string row = "1000,5,tx_queue,auto,7\n";
  CHECK(refusal("") == "line 1: the file is empty");
  CHECK(refusal("# only a comment\n") == "line 1: the columns are missing");
  CHECK(refusal(head) == "line 4: it has no rows after its columns");
  CHECK(refusal("a,b,c\n1,2,3\n") == "line 1: there is no column 't_ns'");
  CHECK(refusal("t_ns,bottleneck\n1,x\n") == "line 1: there is no column 'rate_bytes_per_s'");
  CHECK(refusal("t_ns,x,rate_bytes_per_s,bottleneck,x\n") ==
        "line 1: column 5: a second one is called 'x'");
  CHECK(refusal(head + row + "2000,x5,tx_queue,auto,7\n") ==
        "line 6: column 2 (rate_bytes_per_s): 'x5' is no whole number");
  CHECK(refusal(head + row + "2000,5.5,tx_queue,auto,7\n") ==
        "line 6: column 2 (rate_bytes_per_s): '5.5' is no whole number");
  CHECK(refusal(head + row + "2000,5,tx_queue,auto,99999999999999999999\n") ==
        "line 6: column 5 (tx_queue_bytes): '99999999999999999999' is out of range");
  CHECK(refusal(head + row + "2000,5,tx_queue\n") ==
        "line 6: column 3: the row ends here, and 2 follow in the others");
  CHECK(refusal(head + row + "2000,5,tx_queue,auto,7,8\n") ==
        "line 6: column 6: the row goes on behind the last one");
  CHECK(refusal(head + row + "999,5,tx_queue,auto,7\n") ==
        "line 6: column 1 (t_ns): '999' is before the row before it");
  CHECK(refusal(head + std::string{"-1,5,tx_queue,auto,7\n"}) ==
        "line 5: column 1 (t_ns): '-1' is no time");
  CHECK(refusal(head + std::string{",5,tx_queue,auto,7\n"}) ==
        "line 5: column 1 (t_ns): '' is no whole number");
  CHECK(refusal(head + row + "2000,5,tx_q") == "line 6: column 3: the file is cut off here");
  CHECK(refusal(head + row + "2000,5,tx_queue,auto,7") ==
        "line 6: column 5: the file is cut off here");
  CHECK(refusal(head + row + std::string(70'000, '1') + "\n") ==
        "line 6: it is longer than 64 KiB");
  CHECK(refusal("t_ns" + std::string(600, ',') + "\n") ==
        "line 1: column 513: there are more than 512");
  // What is shown of a cell can do nothing to a terminal.
  CHECK(refusal(head + std::string{"1,\x1b[2J\x07,tx_queue,auto,7\n"}) ==
        "line 5: column 2 (rate_bytes_per_s): '?[2J?' is no whole number");
}

TEST_CASE("samples stay few and keep every peak, every sum and every gap", "[tools][plot]") {
  Samples samples{1, 100};
  double sum = 0;
  for (int i = 0; i < 600'000; ++i) {
    const double value = i == 345'678 ? 1e9 : i == 234'567 ? -5 : i % 10;
    sum += value;
    if (i < 100'000 || i >= 200'000)
      samples.add(Nanos{1ms} * i, std::array<std::optional<double>, 1>{value});
    else
      sum -= value;
  }
  const auto& buckets = samples.series(0);
  CHECK(buckets.size() > 100);
  CHECK(buckets.size() <= 200);
  Bucket all;
  std::size_t empty = 0;
  for (const Bucket& bucket : buckets) bucket.is_empty() ? ++empty : (all.merge(bucket), 0U);
  CHECK(all.most == 1e9);
  CHECK(all.least == -5);
  CHECK(all.count == 500'000);
  CHECK(all.sum == Approx(sum));
  CHECK(empty > buckets.size() / 10);
  const auto at = static_cast<std::size_t>(Nanos{345'678ms} / samples.width());
  CHECK(buckets[at].most == 1e9);
}

TEST_CASE("a run says how long it was in its safe range and who held it up", "[tools][plot]") {
  const RunData run = run_of(real_trace(1001));
  CHECK(run.rows == 1001);
  CHECK(run.span == 1s);
  CHECK(run.law == "auto");
  // 300 + i % 100 kB, range 330 .. 380: 30 below, 51 within, 19 above of 100, but for the one peak.
  const RangeShare& range = run.ranges[0];
  CHECK(range.below / range.known() == Approx(0.30).margin(0.002));
  CHECK(range.inside / range.known() == Approx(0.51).margin(0.002));
  CHECK(range.above / range.known() == Approx(0.19).margin(0.002));
  CHECK(run.share(0) == Approx(0.75).margin(0.002));
  CHECK(run.share(3) == Approx(0.25).margin(0.002));
  CHECK(run.whole[lost_step].sum == 100);
  CHECK(run.whole[cpu_step].sum == Approx(200e6));
  CHECK(run.whole[of(0, occupancy)].most == 480'000);
  CHECK(run.ranges[1].known() == 0);
}

TEST_CASE("plates share their axes, and what a trace does not have is not drawn", "[tools][plot]") {
  const std::vector<RunData> runs{run_of(real_trace(1001), 100, "long"),
                                  run_of(real_trace(301), 100, "short"),
                                  run_of(head + std::string{"1,5,none,auto,7\n"}, 100, "one row")};
  const std::vector<Plate> plates = plates_of(runs);
  std::vector<std::string> ids;
  for (const Plate& plate : plates) {
    ids.push_back(plate.id);
    CHECK(plate.figures.size() == 3);
    CHECK(plate.y_label.size() > 3);
    for (std::size_t i = 0; i < 2; ++i) {
      CHECK(plate.figures[i].x_max == Approx(1.0));
      if (!plate.figures[i].is_empty())
        CHECK(plate.figures[i].y_max == Approx(plate.figures[0].y_max));
    }
  }
  CHECK(ids == std::vector<std::string>{"rates", "tx_queue", "bottleneck", "delay", "cpu",
                                        "wakeups", "losses"});
  CHECK(plates[1].figures[0].bands.front().label == "safe range");
  CHECK(plates[1].figures[0].y_max >= 480);  // the peak, in kB
  CHECK(plates[4].figures[0].curves.front().points.size() >= 40);
  CHECK(plates[4].figures[0].curves.front().points[20].y == Approx(20));  // 200 us per ms
  for (std::size_t i = 0; i < plates[2].figures[0].stack.x.size(); ++i) {
    double sum = 0;
    for (const Share& share : plates[2].figures[0].stack.shares) sum += share.parts[i];
    CHECK(sum == Approx(100));
  }
}

TEST_CASE("an axis has no numbers of five digits", "[tools][plot]") {
  std::string text =
      "# command line: a\n# version: 1\n# config: "
      "a\nt_ns,rate_bytes_per_s,bottleneck,law,wakeups,syscalls\n";
  for (int i = 0; i < 400; ++i) text += std::to_string(i * 1'000'000) + ",5,none,auto,2,20\n";
  const Plate plate = plates_of({run_of(text, 100)}, {"wakeups"}).front();
  CHECK(plate.y_label == "thousand per second");
  CHECK(plate.figures[0].y_max < 100);
  double most = 0;
  for (const Point& point : plate.figures[0].curves[1].points) most = std::max(most, point.y);
  CHECK(most > 10);
  CHECK(most < 40);
}

TEST_CASE("rates are those of whole frames, and stand beside the link's capacity",
          "[tools][plot]") {
  std::istringstream in{
      "# onehop lab run: profile "
      "x\nt_ns,rate_bytes_per_s\n1,37500000\n5500000000,75000000\n9900000000,1\n"};
  auto capacity = Capacity::read(in, "x.csv");
  REQUIRE(capacity);
  std::vector<RunData> runs{run_of(real_trace(1001))};  // from 5 s to 6 s
  CHECK(runs[0].wire_per_payload() == Approx(1511.0 / 1425));
  runs[0].capacity = capacity.value();
  CHECK(runs[0].capacity_mean() == Approx(56'250'000));
  const Figure rates = plates_of(runs, {"rates"}).front().figures[0];
  const auto curve = [&](const std::string& label) {
    const auto found = std::ranges::find(rates.curves, label, &Curve::label);
    REQUIRE(found != rates.curves.end());
    return *found;
  };
  CHECK(curve("left our queue").points[20].y == Approx(600));
  CHECK(curve("drain of the link, as the law measures it").points[100].y ==
        Approx(590.0 * 1511 / 1425));
  const Curve known = curve("capacity of the link");
  REQUIRE(known.points.size() == 4);
  CHECK(known.points[1].x == Approx(0.5));
  CHECK(known.points[1].y == Approx(300));
  CHECK(known.points[2].y == Approx(600));
  CHECK(page_of(runs, plates_of(runs), {}).find("450.0 Mbit/s") != std::string::npos);
  CHECK(run_of(head + std::string{"1,5,none,auto,7\n"}).wire_per_payload() == 1);
  CHECK(run_of(real_trace(2, "onehop send a", "send payload 10 wire 99999999999999999999"))
            .wire_per_payload() == 1);
  CHECK(Capacity::steady(mbit_per_s(8)).between(5s, 6s).front().rate == mbit_per_s(8));
  CHECK(capacity.value().between(Nanos{0}, Nanos{0}).empty());
  std::istringstream bad{"t_ns,rate_bytes_per_s\n1,\n"}, none{"t_ns,x\n1,1\n"};
  CHECK_FALSE(Capacity::read(bad, "x.csv"));
  CHECK(Capacity::read(none, "x.csv").error().cause ==
        "line 1: there is no column 'rate_bytes_per_s'");
}

TEST_CASE("where the ends of a safe range cross, no safe range is drawn", "[tools][plot]") {
  const std::string columns =
      "t_ns,rate_bytes_per_s,bottleneck,tx_queue_bytes,tx_queue_under_bytes,tx_queue_over_bytes\n";
  std::string text = columns;
  for (int i = 0; i < 100; ++i)
    text += fmt::format("{},1,tx_queue,300000,{},400000\n", i * 1'000'000 + 1,
                        i < 50 ? 200'000 : 500'000);
  const std::vector<RunData> runs{run_of(text)};
  CHECK(runs[0].ranges[0].none / runs[0].ranges[0].known() == Approx(0.5).margin(0.02));
  CHECK(runs[0].ranges[0].inside / runs[0].ranges[0].known() == Approx(0.5).margin(0.02));
  const Figure queue = plates_of(runs, {"tx_queue"}).front().figures[0];
  REQUIRE(queue.bands.size() == 3);
  CHECK(queue.bands[0].label == "safe range");
  CHECK(queue.bands[0].points[10].low < queue.bands[0].points[10].high);
  CHECK(queue.bands[0].points[90].low > queue.bands[0].points[90].high);
  CHECK(queue.bands[1].label == "no safe range: may run dry and overflow");
  CHECK(queue.bands[1].points[90].low < queue.bands[1].points[90].high);
  CHECK_THAT(queue.note, Catch::Contains("for 5") &&
                             Catch::Contains("% of the time it was too small for a safe range"));
}

TEST_CASE("a run that would be lost on the others' axes has its own and says so", "[tools][plot]") {
  const std::vector<RunData> runs{run_of(real_trace(2001), 100, "long"),
                                  run_of(real_trace(101), 100, "short")};
  const Plate plate = plates_of(runs, {"cpu"}).front();
  CHECK(plate.figures[0].x_max == Approx(2));
  CHECK(plate.figures[0].note.empty());
  CHECK(plate.figures[1].x_max == Approx(0.1));
  CHECK(plate.figures[1].note == "a time axis of its own");
}

TEST_CASE("of a receiving end no rate of a law is drawn", "[tools][plot]") {
  const std::vector<RunData> runs{run_of(real_trace(101, "onehop recv", "recv law auto"))};
  for (const Plate& plate : plates_of(runs)) {
    CHECK(plate.id != "bottleneck");
    for (const Curve& curve : plate.figures[0].curves)
      CHECK((curve.label != "granted" && curve.label != "target"));
  }
}

TEST_CASE("ten minutes at 1 ms are a page of less than 3 MB, and four of them too",
          "[tools][plot]") {
  // Noise, so that nothing is level: the worst case for what is left out.
  const auto noisy = [](std::size_t buckets) {
    RunData run = run_of(real_trace(2), buckets);
    run.samples = Samples{quantities, buckets};
    std::uint64_t state = 1;
    std::vector<std::optional<double>> values(quantities);
    for (int i = 0; i < 600'000; ++i) {
      for (auto& value : values) {
        state = state * 6364136223846793005ULL + 1442695040888963407ULL;
        value = static_cast<double>(state >> 34);
      }
      run.samples.add(Nanos{1ms} * i, values);
      if (i % 1000 == 0)
        for (std::size_t q = 0; q < quantities; ++q) run.whole[q].add(*values[q]);
    }
    run.span = 600s;
    return run;
  };
  const std::vector<RunData> one{noisy(450)};
  const std::size_t size = page_of(one, plates_of(one), {}).size();
  CAPTURE(size);
  CHECK(size < 3'000'000);
  CHECK(size > 100'000);
  const std::vector<RunData> four(4, noisy(450));
  const std::size_t size_four = page_of(four, plates_of(four), {}).size();
  CAPTURE(size_four);
  CHECK(size_four < 3'000'000);
}

//= threat D2  type=test
TEST_CASE("no text of a trace is markup in the page or a command in the script (D2)",
          "[tools][plot]") {
  const std::string evil = "onehop send `touch /tmp/pwned` '\"</svg><script>alert(1)</script>\\";
  const std::vector<RunData> runs{run_of(real_trace(50, evil), 100, evil),
                                  run_of(real_trace(50), 100, "b")};
  const PageText text{.title = evil, .command_line = evil, .version = "1"};
  const auto plates = plates_of(runs);
  const std::string page = page_of(runs, plates, text);
  CHECK(page.find("<script") == std::string::npos);
  CHECK(page.find("&lt;script&gt;") != std::string::npos);
  CHECK(page.find("http://") == std::string::npos);
  CHECK(page.find("https://") == std::string::npos);
  const std::string script = script_of(runs, plates, text, {"a.svg", "a.png"});
  for (const char c : {'`', '\\', '"', '<', '!', '@'}) {
    CAPTURE(c);
    // A backslash ends the lines of a plot command, and heredocs begin with "<< E": nothing else.
    std::size_t at = 0, others = 0;
    while ((at = script.find(c, at)) != std::string::npos) {
      const bool is_ours =
          (c == '\\' && script[at + 1] == '\n' && script[at - 2] == ',') ||
          (c == '<' && (script.substr(at, 4) == "<< E" || script.substr(at - 1, 4) == "<< E"));
      others += is_ours ? 0 : 1;
      ++at;
    }
    CHECK(others == 0);
  }
}

TEST_CASE("a figure has axes with units, and stays within its picture", "[tools][plot]") {
  const std::vector<RunData> runs{run_of(real_trace(1001))};
  for (const Plate& plate : plates_of(runs)) {
    const std::string svg = svg_of(plate, plate.figures[0], "a <b>");
    CHECK(svg.starts_with("<svg viewBox"));
    CHECK(svg.ends_with("</svg>"));
    CHECK(svg.find("time [s]") != std::string::npos);
    CHECK(svg.find(escape(plate.y_label)) != std::string::npos);
    CHECK(svg.find("a &lt;b&gt;") != std::string::npos);
    CHECK(svg.find("nan") == std::string::npos);
    CHECK(svg.find("inf") == std::string::npos);
  }
}

TEST_CASE("ticks are round, few and within the axis", "[tools][plot]") {
  CHECK(ticks_of(10, 5) == std::vector<double>{0, 2, 4, 6, 8, 10});
  CHECK(ticks_of(0.7, 5).size() == 4);
  CHECK(ticks_of(0, 5) == std::vector<double>{0});
  CHECK(ticks_of(1e300, 5).size() <= 11);
  for (double most = 0.001; most < 1e9; most *= 1.7) {
    const auto ticks = ticks_of(most, 5);
    CHECK(ticks.size() >= 3);
    CHECK(ticks.size() <= 11);
    CHECK(ticks.back() <= most * 1.0001);
  }
  CHECK(tick_text(2000) == "2000");
  CHECK(tick_text(12000) == "12 000");
  CHECK(tick_text(0.25) == "0.25");
}

TEST_CASE("a report's files have one place, and a control character none", "[tools][plot]") {
  const auto place = place_of("/tmp", "some/where/trace.csv");
  REQUIRE(place);
  CHECK(place.value().path(".png") == "/tmp/trace.png");
  CHECK(place_of("/tmp/a b.html", "x.csv").value().path(".svg") == "/tmp/a b.svg");
  CHECK(place_of("here.html", "x.csv").value().path(".html") == "./here.html");
  CHECK_FALSE(place_of("/tmp", "bad\nname.csv"));
  CHECK_FALSE(place_of("/tmp", ""));
}

}  // namespace onehop::plot
