// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Goal:   what a run tells people about its I/O can be read in a terminal of 80 columns.
// Method: the facts of runs with the longest reasons that there are, and the text that they make.
#include <catch2/catch.hpp>

#include <algorithm>
#include <sstream>

#include "tools/onehop/text/report.hpp"

using namespace onehop::tool;

namespace {

onehop::api::PortOpened facts(const char* requested, const char* used, const char* mode,
                              const char* reason) {
  return {requested, used, mode, reason};
}

std::size_t widest(const std::string& text) {
  std::size_t columns = 0;
  std::istringstream lines{text};
  for (std::string line; std::getline(lines, line);) columns = std::max(columns, line.size());
  return columns;
}

}  // namespace

TEST_CASE("the AF_XDP modes that were refused fit into 80 columns", "[tools]") {
  CHECK(io_text(
            facts("afxdp", "afxdp", "copy", "asked for; no zero-copy (Operation not supported)")) ==
        "I/O: afxdp in copy mode, asked for; no zero-copy (Operation not supported)");
  CHECK(io_text(facts(
            "afxdp", "afxdp", "skb",
            "asked for; no zero-copy (Operation not supported), no copy (Invalid argument)")) ==
        "I/O: afxdp in skb mode, asked for; no zero-copy (Operation not supported), no\n"
        "     copy (Invalid argument)");
}

TEST_CASE("why --io auto took what it took fits into 80 columns", "[tools]") {
  const std::string text = io_text(facts("auto", "udp", "",
                                         "no AF_XDP zero-copy on wlan0 (Operation not supported), "
                                         "and sending in copy mode costs more than UDP"));
  CAPTURE(text);
  CHECK(
      text.starts_with("I/O: udp, because no AF_XDP zero-copy on wlan0 (Operation not supported), "
                       "and\n     sending"));
  CHECK(widest(text) < 80);
}

TEST_CASE("where the CPU time of a byte went fits into 80 columns, and its parts are the whole",
          "[tools]") {
  onehop::api::End end{.bytes_total = 1'100'000'000,
                       .bytes_hole_total = 100'000'000,
                       .seconds = 2,
                       .cpu_seconds = 3.5,
                       .softirq_seconds = 0.25,
                       .thread_cpu_seconds = {{"commit", 0.25},
                                              {"engine", 1.5},
                                              {"plane", 0.5},
                                              {"rate", 0.25},
                                              {"write", 1}},
                       .frames_total = 800'000,
                       .engine_wakeups_total = 4'000,
                       .engine_syscalls_total = 10'000,
                       .voluntary_switches_total = 20'000};
  CHECK(cost_text(end) ==
        "CPU: 3.75 ns/B, commit 0.25, engine 1.50, plane 0.50, rate 0.25, write 1.00,\n"
        "     ksoftirqd 0.25\n"
        "wake-ups/s: engine 2000 (200 frames, 2.5 system calls each), all threads 10000");
  CHECK(widest(cost_text(end)) < 80);
  end.bytes_hole_total = end.bytes_total;
  CHECK(cost_text(end).empty());  // a file of holes alone
}
