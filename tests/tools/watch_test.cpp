// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// What a transfer tells observers, as lines and as a picture. The sockets are in
// watch_socket_test.cpp.
#include <catch2/catch.hpp>

#include <nlohmann/json.hpp>
#include <sstream>

#include "control/transfer/account/recent_rate.hpp"
#include "tests/tools/watch_sample.hpp"
#include "tools/onehop/watch/screen.hpp"

namespace onehop::watch {
namespace {

std::vector<std::string> lines_in(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in{text};
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::string without_sgr(const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\x1b')
      i = text.find('m', i);
    else
      out += text[i];
  }
  return out;
}

std::string picture(const Telemetry& t, ScreenOptions options) {
  return text_of(lines_of(t, {}, options), options);
}

std::string changed(const std::string& line, const std::string& from, const std::string& to) {
  const std::size_t at = line.find(from);
  REQUIRE(at != std::string::npos);
  return std::string{line}.replace(at, from.size(), to);
}

}  // namespace

TEST_CASE("a telemetry line is read back as it was written", "[tools][watch]") {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    CAPTURE(seed);
    const std::string line = line_of(random_telemetry(seed));
    const auto read = read_line(line);
    REQUIRE(read);
    CHECK(line_of(std::get<Telemetry>(read.value())) == line);
  }
  const auto ended = read_line(
      line_of(Ended{.exit_code = 7, .bytes_total = 5, .seconds = 1.5, .goodput_bps = 32}));
  REQUIRE(ended);
  CHECK(std::get<Ended>(ended.value()).exit_code == 7);
  CHECK(std::get<Ended>(ended.value()).goodput_bps == 32);
}

TEST_CASE("the telemetry line has the keys that programs are promised", "[tools][watch]") {
  const auto json = nlohmann::json::parse(line_of(sample_telemetry()));
  for (const char* key : {"schema_version",
                          "type",
                          "pid",
                          "role",
                          "version",
                          "t_ns",
                          "phase",
                          "peer",
                          "interface",
                          "io",
                          "io_mode",
                          "law",
                          "repair",
                          "link_source",
                          "elapsed_ns",
                          "bytes_done",
                          "bytes_expected",
                          "files_done",
                          "files_total",
                          "is_all_known",
                          "goodput_bps",
                          "eta_seconds",
                          "rate_bps",
                          "backlog_max_bytes",
                          "bottleneck",
                          "bottleneck_permille",
                          "is_degraded",
                          "srtt_ns",
                          "packets_sent_total",
                          "packets_lost_total",
                          "retransmitted_bytes_total",
                          "auth_failures_total",
                          "cpu_seconds",
                          "link_rate_bps",
                          "details",
                          "buffers"})
    CHECK(json.contains(key));
  CHECK(json["schema_version"] == 1);
  CHECK(json["type"] == "telemetry");
  for (const char* key :
       {"name", "scope", "occupancy_bytes", "target_bytes", "under_bytes", "over_bytes",
        "limit_bytes", "capacity_bytes", "drain_bps", "allowed_bps", "takes_part", "refused_total"})
    CHECK(json["buffers"][0].contains(key));
}

//= threat D2  type=test
TEST_CASE(
    "a line that is not as promised is refused by name, and control characters do not pass (D2)",
    "[tools][watch]") {
  const std::string line = line_of(sample_telemetry());
  const auto cause = [](const std::string& text) {
    const auto read = read_line(text);
    REQUIRE_FALSE(read);
    return read.error().cause;
  };
  CHECK_THAT(cause(""), Catch::Contains("JSON"));
  CHECK_THAT(cause("[1]"), Catch::Contains("JSON"));
  CHECK_THAT(cause(std::string(70'000, '[')), Catch::Contains("64 KiB"));
  CHECK_THAT(cause(std::string(60'000, '[')), Catch::Contains("JSON"));
  CHECK_THAT(cause(changed(line, "\"schema_version\":1", "\"schema_version\":2")),
             Catch::Contains("schema version is 2"));
  CHECK_THAT(cause(changed(line, "\"telemetry\"", "\"gossip\"")), Catch::Contains("gossip"));
  CHECK_THAT(cause(changed(line, "\"send\"", "\"root\"")), Catch::Contains("role"));
  CHECK_THAT(cause(changed(line, "\"pid\":4711", "\"pid\":-1")), Catch::Contains("pid"));
  CHECK_THAT(cause(changed(line, "\"srtt_ns\":8000000", "\"srtt_ns\":18446744073709551615")),
             Catch::Contains("srtt_ns"));
  CHECK_THAT(cause(changed(line, "\"srtt_ns\":8000000", "\"srtt_ns\":\"8\"")),
             Catch::Contains("srtt_ns"));
  CHECK_THAT(cause(changed(line, "\"eta_seconds\":9.0", "\"eta_seconds\":-9.0")),
             Catch::Contains("eta_seconds"));
  CHECK_THAT(cause(changed(line, "\"buffers\":[", "\"buffers\":[1,")),
             Catch::Contains("three buffers"));
  CHECK_THAT(cause(changed(line, "\"takes_part\":true", "\"takes_part\":1")),
             Catch::Contains("tx_queue, takes_part"));
  const auto read = read_line(changed(line, "\"wlan0\"", "\"w\\u001b[2J\\u0007\\u00e4\""));
  REQUIRE(read);
  const std::string& shown = std::get<Telemetry>(read.value()).interface;
  CHECK(shown == "w?[2J???");
}

TEST_CASE("what nobody has told is not shown as nothing", "[tools][watch]") {
  Telemetry t = sample_telemetry();
  t.buffers[1] = {.scope = "none"};
  const std::string text =
      picture(t, {.columns = 80, .rows = 0, .is_utf8 = false, .has_color = false});
  CHECK_THAT(text, Catch::Contains("not known\n[" + std::string(78, ' ') + "]\nheld: not known\n"));
  t.buffers[1].scope = "own_ring";
  CHECK_THAT(picture(t, {.columns = 80, .rows = 0, .is_utf8 = false, .has_color = false}),
             Catch::Contains("held 0 B\n"));
}

TEST_CASE("the picture fits 80 x 24 and every other terminal, whatever is told", "[tools][watch]") {
  for (std::uint64_t seed = 0; seed <= 300; ++seed) {
    CAPTURE(seed);
    const Telemetry t = seed == 0 ? sample_telemetry() : random_telemetry(seed);
    for (const auto& [columns, rows] : {std::pair<std::size_t, std::size_t>{80, 24},
                                        {80, 10},
                                        {40, 24},
                                        {20, 5},
                                        {200, 60},
                                        {1, 1}}) {
      const bool is_utf8 = seed % 2 == 0;
      const std::string text = picture(
          t, {.columns = columns, .rows = rows, .is_utf8 = is_utf8, .has_color = seed % 3 == 0});
      const auto lines = lines_in(without_sgr(text));
      CHECK(lines.size() <= rows);
      for (const std::string& line : lines) {
        CHECK(columns_of(line) <= columns);
        if (!is_utf8) CHECK(std::ranges::all_of(line, [](char c) { return c >= ' ' && c <= '~'; }));
      }
    }
  }
}

TEST_CASE("80 x 24 shows all buffers, their ranges, the rates, the law and the bottleneck by name",
          "[tools][watch]") {
  const std::string text = picture(
      sample_telemetry(), {.columns = 80, .rows = 24, .is_utf8 = false, .has_color = false});
  for (const char* word : {"onehop send",
                           "PID 4711",
                           "to 192.168.49.1 over wlan0, udp",
                           "transferring",
                           " 42 %",
                           "451 MB of 1.07 GB  3/17 files",
                           "goodput 553 Mbit/s",
                           "granted 612 Mbit/s",
                           "drains 600 Mbit/s",
                           "link 866 Mbit/s",
                           "ETA 0:09",
                           "our queue to the link",
                           "in its safe range",
                           "BOTTLENECK",
                           "receiver's ring",
                           "below: not limiting",
                           "refused 3",
                           "receiver's disk queue  out 500 Mbit/s",
                           "above its safe range",
                           "held 614 kB of 4.19 MB  target 600 kB",
                           "safe 600 kB to 655 kB",
                           "bottleneck: the link",
                           "law auto, eager repair, queue read by port",
                           "alpha 1.00",
                           "beta -32.0 kbit/s",
                           "tau 4.00 ms",
                           "stations 2",
                           "lost 160 packets (0.05 %)",
                           "CPU 1.8 s"}) {
    CAPTURE(word, text);
    CHECK(text.find(word) != std::string::npos);
  }
  const std::string other = picture(
      [] {
        Telemetry t = sample_telemetry();
        t.bottleneck_permille = {{"tx_queue", 300}, {"app_buffer", 700}};
        return t;
      }(),
      {.columns = 80, .rows = 24, .is_utf8 = false, .has_color = false});
  CHECK(other.find("bottleneck: the receiver's disk") != std::string::npos);
  CHECK(other.find("BOTTLENECK") > other.find("disk queue"));
}

TEST_CASE("a small terminal keeps title, progress and bars, and gives up what explains them",
          "[tools][watch]") {
  const std::string text = picture(
      sample_telemetry(), {.columns = 80, .rows = 11, .is_utf8 = false, .has_color = false});
  CHECK(text.find("onehop send") != std::string::npos);
  CHECK(text.find("42 %") != std::string::npos);
  CHECK(text.find("receiver's ring") != std::string::npos);
  CHECK(text.find("alpha") == std::string::npos);
  CHECK(lines_in(text).size() == 11);
}

TEST_CASE("ten rows have a bar for each buffer and name the bottleneck", "[tools][watch]") {
  const auto lines = lines_in(picture(
      sample_telemetry(), {.columns = 80, .rows = 10, .is_utf8 = false, .has_color = false}));
  CHECK(lines.size() == 10);
  CHECK(std::ranges::count_if(lines,
                              [](const std::string& line) { return line.starts_with('['); }) == 4);
  CHECK(lines.back() == "bottleneck: the link");
}

TEST_CASE("what is told of the law goes on in the next row, and crossed ends are no range",
          "[tools][watch]") {
  Telemetry t = sample_telemetry();
  t.is_degraded = true;
  t.link_source = "nl80211+softnet";
  t.buffers[0].under_bytes = 640 << 10;
  t.buffers[0].over_bytes = 200 << 10;
  const std::string text =
      picture(t, {.columns = 80, .rows = 24, .is_utf8 = false, .has_color = false});
  CAPTURE(text);
  CHECK(text.find("law auto, eager repair, queue read by port, no safe range\n  link by "
                  "nl80211+softnet\n  alpha 1.00") != std::string::npos);
  CHECK(text.find("too small for a safe range") != std::string::npos);
  CHECK(text.find("dry below 655 kB, full above 205 kB") != std::string::npos);
}

TEST_CASE("before a session there is a title and no empty bars", "[tools][watch]") {
  Telemetry t;
  t.pid = 12;
  t.role = api::Role::receiving;
  t.phase = api::Phase::listening;
  const auto lines =
      lines_in(picture(t, {.columns = 80, .rows = 24, .is_utf8 = false, .has_color = false}));
  REQUIRE(lines.size() == 2);
  CHECK_THAT(lines[0], Catch::Contains("onehop recv") && Catch::EndsWith("listening"));
  CHECK(lines[1] == "no sender yet");
}

TEST_CASE("a bar shows held, target and safe range where they are, without colour",
          "[tools][watch]") {
  const auto flat = [](const BufferView& b) {
    std::string text;
    for (const Span& span : bar_of(b, 100, 20, false)) text += span.text;
    return text;
  };
  const BufferView b{
      .occupancy_bytes = 50, .target_bytes = 30, .under_bytes = 20, .over_bytes = 80};
  CHECK(flat(b) == "****##|###------    ");
  CHECK(flat({.occupancy_bytes = 90, .target_bytes = 30, .under_bytes = 20, .over_bytes = 80}) ==
        "****##|#########**  ");
  CHECK(flat({.occupancy_bytes = 0, .target_bytes = 0, .under_bytes = 20, .over_bytes = 80}) ==
        "    ------------    ");
  CHECK(flat({.occupancy_bytes = 50}) == "##########          ");
  CHECK(flat({.occupancy_bytes = 5000, .target_bytes = 5000, .under_bytes = 90, .over_bytes = 10})
            .size() == 20);
  CHECK(scale_of(b) == 1000);
  CHECK(scale_of({.occupancy_bytes = 1'900'000, .over_bytes = 1'500'000}) == 2'000'000);
  CHECK(scale_of(
            {.occupancy_bytes = 1'100'000, .over_bytes = 1'000'000, .capacity_bytes = 1'300'000}) ==
        1'300'000);
  CHECK(scale_of({.occupancy_bytes = INT64_MAX / 2}) > 0);
}

TEST_CASE("colour is left out where it is not wanted", "[tools][watch]") {
  CHECK(picture(sample_telemetry(), {.has_color = false}).find('\x1b') == std::string::npos);
  CHECK(picture(sample_telemetry(), {.has_color = true}).find("\x1b[31m") != std::string::npos);
}

TEST_CASE("the recent rate follows within a second and begins anew with a new count",
          "[tools][watch]") {
  transfer::RecentRate rate;
  Instant now{1s};
  std::uint64_t count = 0;
  for (int i = 0; i < 100; ++i) rate.add(now += 100ms, count += 1000);
  CHECK(std::abs(rate.now().count - 10'000) <= 1);
  CHECK(std::abs(rate.trend_per_s() - 10'000) <= 1);
  for (int i = 0; i < 20; ++i) rate.add(now += 100ms, count += 2000);
  CHECK(rate.now().count > 19'000);
  CHECK(rate.trend_per_s() < 14'000);
  rate.add(now += 100ms, 5);
  CHECK(rate.now() == BytesPerSecond{0});
}

}  // namespace onehop::watch
