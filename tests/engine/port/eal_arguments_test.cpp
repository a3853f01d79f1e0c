// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// What onehop makes of --eal before DPDK sees it. No DPDK is needed.
#include <catch2/catch.hpp>

#include <algorithm>

#include "engine/port/dpdk/eal_arguments.hpp"

namespace onehop::dpdk {
namespace {

using Words = std::vector<std::string>;

bool has(const Words& words, const std::string& word) {
  return std::ranges::find(words, word) != words.end();
}

Words completed(const Words& words, std::uint64_t huge_bytes = 0) {
  return complete(words, {.huge_bytes_free = huge_bytes, .process_id = 42, .main_cpu = 1}).words;
}

}  // namespace

TEST_CASE("--eal is split as a shell would", "[port][dpdk]") {
  const auto words = [](const char* text) { return split_words(text).value(); };
  CHECK(words("").empty());
  CHECK(words("  \t ").empty());
  CHECK(words("--vdev net_null0  -l\t1") == Words{"--vdev", "net_null0", "-l", "1"});
  CHECK(words("--vdev='net_x0,a=b c' \"it's\" a\\ b 'c\\d' \"\"") ==
        Words{"--vdev=net_x0,a=b c", "it's", "a b", "c\\d", ""});
  for (const char* text : {"'x", "a \"b", "'\""}) {
    CAPTURE(text);
    REQUIRE_FALSE(split_words(text).has_value());
    CHECK(split_words(text).error().code == ExitCode::usage);
  }
}

TEST_CASE("arguments of which no device can come are wrong usage", "[port][dpdk]") {
  for (const Words& words :
       {Words{}, Words{"-l", "0"}, Words{"--vdev=net_null0", "--help"},
        Words{"--vdev=net_null0", "-h"}, Words{"--vdev=net_null0", "--proc-type=secondary"},
        Words{"--vdevil=net_null0"}}) {
    CAPTURE(words);
    REQUIRE_FALSE(check_words(words).has_value());
    CHECK(check_words(words).error().code == ExitCode::usage);
    CHECK_FALSE(check_words(words).error().hint.empty());
  }
  for (const Words& words :
       {Words{"--vdev=net_null0"}, Words{"--vdev", "net_null0"}, Words{"-a", "0000:01:00.0"},
        Words{"-a0000:01:00.0"}, Words{"--allow=0000:01:00.0"}}) {
    CAPTURE(words);
    CHECK(check_words(words).has_value());
  }
}

TEST_CASE("what the user did not name is added, and nothing else", "[port][dpdk]") {
  const Words small = completed({"--vdev=net_null0"});
  CHECK(small.front() == "--vdev=net_null0");
  for (const char* word : {"--no-huge", "--no-shconf", "-m", "--file-prefix=onehop-42",
                           "--lcores=0@1", "--no-telemetry", "--no-pci"})
    CHECK(has(small, word));
  CHECK_FALSE(has(small, "--in-memory"));  // EAL refuses it beside --no-huge

  const Words huge = completed({"--vdev=net_null0"}, 1U << 30);
  CHECK(has(huge, "--in-memory"));
  CHECK_FALSE(has(huge, "--no-huge"));
  CHECK_FALSE(has(huge, "-m"));

  const Words own{"-a",   "0000:01:00.0", "--legacy-mem", "--file-prefix",
                  "mine", "-c3",          "--telemetry",  "--socket-mem=64"};
  CHECK(completed(own, 1U << 30) == own);
  CHECK(completed(own) == own);
  const Words own_small = completed({"--vdev=net_null0", "--no-huge", "-m256", "-l0"});
  CHECK(std::ranges::count(own_small, "--no-huge") == 1);
  CHECK_FALSE(has(own_small, "-m"));
  CHECK_FALSE(has(own_small, "--lcores=0@1"));
}

TEST_CASE("a device's arguments are found and added to", "[port][dpdk]") {
  Words words{"-l", "1", "--vdev", "net_af_xdp0,iface=va,start_queue=1",
              "--vdev=net_af_packet3,iface=vb"};
  CHECK(device_argument(words, "net_af_xdp", "iface") == "va");
  CHECK(device_argument(words, "net_af_xdp", "queue").empty());
  CHECK(device_argument(words, "net_af_packet", "iface") == "vb");
  CHECK(device_argument(words, "net_af", "iface").empty());
  CHECK(has_device(words, "net_af_xdp"));
  CHECK_FALSE(has_device(words, "net_memif"));
  add_device_argument(words, "net_af_xdp", "xdp_prog=/x");
  CHECK(words[3] == "net_af_xdp0,iface=va,start_queue=1,xdp_prog=/x");
  CHECK(words[4] == "--vdev=net_af_packet3,iface=vb");
}

}  // namespace onehop::dpdk
