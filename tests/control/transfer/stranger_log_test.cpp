// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Goal:   strangers cannot fill the log, and what is left out is counted.
// Method: StrangerLog alone, in a time that the test makes.
#include <catch2/catch.hpp>

#include "control/transfer/stranger_log.hpp"

using namespace onehop;
using namespace onehop::transfer;

namespace {
IpAddress address(std::uint32_t number) {
  IpAddress made;
  for (std::size_t i = 0; i < 4; ++i)
    made.bytes[i] = static_cast<std::byte>((number >> (24 - 8 * i)) & 0xff);
  return made;
}
const Instant start{3600s};
}  // namespace

TEST_CASE("an address gets one line a minute, which counts the others", "[tools]") {
  StrangerLog log;
  CHECK(log.note(address(1), start) == 0);
  for (int i = 1; i < 1500; ++i) REQUIRE_FALSE(log.note(address(1), start + i * 2ms));
  CHECK(log.note(address(2), start + 1s) == 0);  // another one is not its fault
  CHECK(log.note(address(1), start + 60s) == 1499);
  CHECK_FALSE(log.note(address(1), start + 61s));
  CHECK(log.note(address(1), start + 120s) == 1);
}

TEST_CASE("strangers with many addresses share one line a minute, and none is lost to the count",
          "[tools]") {
  StrangerLog log;
  std::uint64_t lines = 0, counted = 0, connections = 0;
  for (std::uint32_t i = 0; i < 100'000; ++i, ++connections)
    if (const auto unsaid = log.note(address(i), start + i * 1ms)) ++lines, counted += *unsaid;
  // 100 s: at most two lines of each address that has a place, and two of the rest.
  CHECK(lines <= 2 * StrangerLog::addresses_max + 2);
  // Later, one by one, all lines are told again, and what was left out with them.
  for (std::uint32_t i = 0; i < 200'000; i += 1'000, ++connections)
    if (const auto unsaid = log.note(address(i), start + 1h + i * 1s)) ++lines, counted += *unsaid;
  CHECK(lines + counted == connections);
}
