// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// TraceWriter for real: what a trace begins with, and what stands in its rows.
#include <catch2/catch.hpp>

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "control/law/fixed.hpp"
#include "control/rate/rate_loop.hpp"

namespace onehop::rate {
namespace {

struct TempFile {
  std::string path = "/tmp/onehop-trace-XXXXXX";
  TempFile() { ::close(::mkstemp(path.data())); }
  ~TempFile() { ::unlink(path.c_str()); }
  [[nodiscard]] std::vector<std::string> lines() const {
    std::ifstream in{path};
    std::vector<std::string> lines;
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    return lines;
  }
};

TEST_CASE("a trace begins with command line, version and config and has one full row per tick",
          "[control][rate]") {
  const TempFile file;
  law::Fixed law{mbit_per_s(400)};
  Latest<PathReport> path;
  Latest<Limits> limits;
  Latest<RateGrant> grant;
  Latest<RateState> state;
  auto trace = TraceWriter::open(
      file.path, {.command_line = "onehop send a\nb", .version = "1", .config = "law=fixed"});
  REQUIRE(trace);
  RateLoop loop{law, {path, limits, grant, state}, &trace.value()};
  for (int i = 1; i <= 5; ++i) loop.tick(Instant{1s} + i * 1ms);
  REQUIRE(trace.value().close());
  const auto lines = file.lines();
  REQUIRE(lines.size() == 9);
  CHECK(lines[0] == "# command line: onehop send a b");
  CHECK(lines[1] == "# version: 1");
  CHECK(lines[2] == "# config: law=fixed");
  const auto columns = std::count(lines[3].begin(), lines[3].end(), ',');
  for (std::size_t i = 4; i < lines.size(); ++i)
    CHECK(std::count(lines[i].begin(), lines[i].end(), ',') == columns);
}

TEST_CASE("a trace row names law and sensor, and what the law does not have is empty",
          "[control][rate]") {
  const TempFile file;
  auto trace = TraceWriter::open(file.path, {});
  REQUIRE(trace);
  RateState state;
  state.law.details = {
      .sensor = law::QueueSensor::mac, .beta = BytesPerSecond{-5}, .stations = 3, .tau = 4ms};
  trace.value().write(state, {}, "probe", "none");
  REQUIRE(trace.value().close());
  const auto lines = file.lines();
  REQUIRE(lines.size() == 5);
  CHECK_THAT(
      lines[3],
      Catch::Contains(
          ",law,sensor,alpha_permille,beta_bytes_per_s,a_bytes,b_bytes,aggregate_bytes,"
          "phy_rate_bytes_per_s,airtime_use_permille,stations,share_bytes_per_s,tau_ns,gate_bytes,"
          "loss_cap_bytes_per_s,feedback_interval_ns,link_source,"));
  CHECK_THAT(lines[4],
             Catch::EndsWith(",probe,mac,,-5,,,,,,3,,4000000,,,,none,,,,,,,,,,,,,,,,,,,,0"));
}

TEST_CASE("a trace row holds the link's facts with their ages, and an absent fact is empty",
          "[control][rate]") {
  const TempFile file;
  auto trace = TraceWriter::open(file.path, {});
  REQUIRE(trace);
  RateState state{.at = Instant{5s}};
  law::QueueReading queue{.sensor = law::QueueSensor::txq};
  queue.queue.occupancy = kib(2);
  queue.queue.drained_total = kib(9);
  state.facts.exact_queue = {queue, Instant{5s} - 3ms, 2ms};
  state.facts.phy_rate = {mbit_per_s(8), Instant{5s}, 2ms};
  state.facts.mac = {
      {.tx_frames_total = 100, .tx_retries_total = 7, .tx_failed_total = 2}, Instant{5s}, 2ms};
  trace.value().write(state, {}, "probe", "nl80211+softnet");
  REQUIRE(trace.value().close());
  CHECK_THAT(file.lines().back(),
             Catch::EndsWith(",nl80211+softnet,2048,9216,3000000,1000000,0,,7,2,,,,,,,,,,,,0"));
}

TEST_CASE(
    "a trace row holds each buffer's safe range, and the process's CPU time where it was read",
    "[control][rate]") {
  const TempFile file;
  auto trace = TraceWriter::open(file.path, {});
  REQUIRE(trace);
  RateState state{.cpu_total = 7us};
  state.path.tx_queue.drained_total = {9000};
  state.law.buffers[0] = {.under = kib(1), .over = kib(3), .occupancy_max = kib(4)};
  state.law.buffers[2] = {.under = Bytes{}, .occupancy_max = kib(8)};
  trace.value().write(state, {}, "probe", "none");
  REQUIRE(trace.value().close());
  const auto lines = file.lines();
  CHECK_THAT(
      lines[3],
      Catch::EndsWith(
          ",tx_queue_under_bytes,tx_queue_over_bytes,tx_queue_limit_bytes,rx_ring_under_bytes,"
          "rx_ring_over_bytes,rx_ring_limit_bytes,app_buffer_under_bytes,app_buffer_over_bytes,"
          "app_buffer_limit_bytes,cpu_ns_total,tx_drained_bytes_total"));
  CHECK_THAT(lines[4], Catch::EndsWith(",1024,3072,4096,,,,0,,8192,7000,9000"));
}

TEST_CASE("a trace that cannot be written says so", "[control][rate]") {
  const auto nowhere = TraceWriter::open("/nonexistent/trace.csv", {});
  REQUIRE_FALSE(nowhere);
  CHECK(nowhere.error().code == ExitCode::local_file_error);
  auto full = TraceWriter::open("/dev/full", {.command_line = "x"});
  REQUIRE(full);
  full.value().write({}, {}, "probe", "none");
  CHECK_FALSE(full.value().close());
}

}  // namespace
}  // namespace onehop::rate
