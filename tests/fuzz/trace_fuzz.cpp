// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Traces from anywhere: read within bounds, times go forward, and what was read can be drawn as a
// page without a script.
#include <algorithm>
#include <sstream>
#include <string>

#include "engine/base/check.hpp"
#include "tests/fuzz/fuzz.hpp"
#include "tools/labs/plot/page.hpp"

namespace onehop::fuzz {

std::uint64_t accepted_total = 0;

std::size_t make_valid(std::uint64_t random, std::span<std::byte, input_bytes_max> out) {
  const bool is_of_rings = random % 4 == 0;
  std::string text = "# command line: onehop send <f>\n# version: 1\n# config: " +
                     std::string{is_of_rings       ? "rings of"
                                 : random % 3 == 0 ? "recv"
                                                   : "send"} +
                     " law auto\n" +
                     (is_of_rings ? "t_ns,rx_held_entries,socket,rx_ring_entries,tx_held_entries,"
                                    "tx_ring_entries,bottleneck,rx_dropped_total,law\n"
                                  : "t_ns,tx_queue_bytes,tx_queue_drain_bytes_per_s,"
                                    "tx_queue_under_bytes,tx_queue_over_bytes,rate_bytes_per_s,"
                                    "bottleneck,srtt_ns,law\n");
  for (std::uint64_t i = 0, at = random % 1000; i < 1 + random % 12;
       ++i, at += random % 700'000'000)
    text += std::to_string(at) + "," + std::to_string(random >> (i * 4 + 1)) +
            ",1000,10,20,5,tx_queue,,auto\n";
  const std::size_t size = std::min(text.size(), out.size());
  std::copy_n(reinterpret_cast<const std::byte*>(text.data()), size, out.begin());
  return size;
}

}  // namespace onehop::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace onehop;
  std::istringstream in{std::string{reinterpret_cast<const char*>(data), size}};
  auto read = plot::read_runs(in, "fuzz", {}, 20);
  if (!read.has_value()) {
    const std::string& cause = read.error().cause;
    ONEHOP_CHECK(cause.starts_with("line ") || cause.starts_with("it has more sockets"));
    ONEHOP_CHECK(std::ranges::all_of(cause, [](char c) { return c >= ' ' && c <= '~'; }));
    return 0;
  }
  ++fuzz::accepted_total;
  const std::vector<plot::RunData>& runs = read.value();
  for (const plot::RunData& run : runs) {
    ONEHOP_CHECK(run.rows > 0);
    ONEHOP_CHECK(run.span >= Nanos{0});
    ONEHOP_CHECK(run.samples.size() <= 40);
  }
  const std::string page = plot::page_of(runs, plot::plates_of(runs), {});
  ONEHOP_CHECK(page.size() < 1'000'000);
  ONEHOP_CHECK(page.find("<script") == std::string::npos);
  return 0;
}
