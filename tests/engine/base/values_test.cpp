// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Units, histogram and errors.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cerrno>
#include <cstdint>
#include <limits>
#include <random>
#include <utility>
#include <vector>

#include "engine/base/histogram.hpp"
#include "engine/base/rate_text.hpp"
#include "engine/base/result.hpp"
#include "engine/base/units.hpp"

using namespace onehop;

TEST_CASE("units: products of rates and times do not overflow on the way", "[base][units]") {
  CHECK(mbit_per_s(800).count == 100'000'000);
  CHECK(bps(mbit_per_s(1)) == 1'000'000);
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  CHECK(bps({most}) == most / 8 * 8);
  CHECK(bps({-most}) == -(most / 8 * 8));
  CHECK(mbit_per_s(100'000) * 3600s ==
        Bytes{45'000'000'000'000});  // 4.5e13 B needs 1.6e23 B*ns on the way
  CHECK(Bytes{45'000'000'000'000} / Nanos{3600s} == mbit_per_s(100'000));
  CHECK(time_for(Bytes{45'000'000'000'000}, mbit_per_s(100'000)) == 3600s);
  CHECK(time_for(Bytes{std::numeric_limits<std::int64_t>::max()}, BytesPerSecond{1}) ==
        Nanos::max());
  CHECK(time_for(Bytes{1}, BytesPerSecond{0}) == Nanos::max());
  CHECK(time_for(Bytes{0}, BytesPerSecond{1}) == Nanos{0});
  CHECK(BytesPerSecond{std::int64_t{1} << 50} * Gain{1500} ==
        BytesPerSecond{(std::int64_t{1} << 49) * 3});
  CHECK(Bytes{3} - Bytes{5} == Bytes{-2});
  CHECK(kib(2) == Bytes{2048});
  CHECK(mib(1) == kib(1024));
}

// Bounds: the class promises at most 1/16 too high, and never too low.
TEST_CASE("histogram percentiles are at most a sixteenth too high", "[base][histogram]") {
  const auto seed = GENERATE(1U, 2U, 3U);
  CAPTURE(seed);
  std::mt19937_64 random{seed};
  LogLinearHistogram histogram;
  std::vector<std::uint64_t> values;
  for (int i = 0; i < 5000; ++i) {
    const std::uint64_t value = random() >> (random() % 64);
    values.push_back(value);
    histogram.add(value);
  }
  std::sort(values.begin(), values.end());
  for (const std::uint32_t permille : {1U, 10U, 500U, 900U, 990U, 999U, 1000U}) {
    CAPTURE(permille);
    const std::uint64_t exact = values[(values.size() * permille + 999) / 1000 - 1];
    const std::uint64_t told = histogram.percentile(permille);
    CHECK(told >= exact);
    CHECK(told - exact <= exact / 16);
  }
  CHECK(histogram.max() == values.back());
  CHECK(histogram.count() == values.size());
}

TEST_CASE("histogram: two merged are one that counted both, and the list of its buckets holds all",
          "[base][histogram]") {
  LogLinearHistogram first, second, both;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    LogLinearHistogram& one = i % 3 == 0 ? first : second;
    one.add(i * i, 1 + i % 4);
    both.add(i * i, 1 + i % 4);
  }
  first.merge(second);
  CHECK(first.count() == both.count());
  CHECK(first.max() == both.max());
  CHECK(first.mean() == both.mean());
  for (const std::uint32_t permille : {1U, 500U, 990U})
    CHECK(first.percentile(permille) == both.percentile(permille));
  std::uint64_t counted = 0, edge_before = 0;
  both.for_each([&](std::uint64_t edge, std::uint64_t count) {
    CHECK((counted == 0 || edge > edge_before));
    edge_before = edge;
    counted += count;
  });
  CHECK(counted == both.count());
  CHECK(edge_before >= both.max());
}

TEST_CASE("histogram: empty, small numbers exact, weights, and the largest number",
          "[base][histogram]") {
  LogLinearHistogram histogram;
  CHECK(histogram.percentile(500) == 0);
  CHECK(histogram.mean() == 0);
  histogram.add(3, 9);
  histogram.add(15);
  CHECK(histogram.percentile(900) == 3);
  CHECK(histogram.percentile(1000) == 15);
  CHECK(histogram.mean() == (27 + 15) / 10);
  LogLinearHistogram extreme;
  extreme.add(std::numeric_limits<std::uint64_t>::max());
  CHECK(extreme.percentile(1000) == std::numeric_limits<std::uint64_t>::max());
}

TEST_CASE("an error names attempt, cause and hint", "[base][result]") {
  CHECK(Error{.attempt = "a", .cause = "c", .hint = "h"}.message() == "a: c. h");
  CHECK(Error{.attempt = "a"}.message() == "a");
  errno = ENOENT;
  const Error error = errno_error(ExitCode::local_file_error, "open x");
  CHECK(error.errno_value == ENOENT);
  CHECK(error.message() == "open x: No such file or directory");
  CHECK(errno_error(ExitCode::usage, "y", "z", EPERM).message() == "y: Operation not permitted. z");
}

TEST_CASE("a rate is bits per second with a prefix, and nothing else is one", "[base][rate]") {
  for (const auto& [text, bytes] : {std::pair<const char*, std::int64_t>{"600Mbit", 75'000'000},
                                    {"1.5G", 187'500'000},
                                    {"1.5Gbit/s", 187'500'000},
                                    {"800k", 100'000},
                                    {"8K", 1000},
                                    {"600m", 75'000'000},
                                    {"250000000", 31'250'000},
                                    {"8000bps", 1000},
                                    {"50MB/s", 50'000'000},
                                    {"7.5MB/s", 7'500'000},
                                    {"1kB/s", 1000},
                                    {"1000B/s", 1000},
                                    {"1GBps", 1'000'000'000},
                                    {"0.5Tbit", 62'500'000'000}}) {
    CAPTURE(text);
    const auto rate = parse_rate(text);
    REQUIRE(rate);
    CHECK(rate.value().count == bytes);
  }
  for (const char* bad : {"",   " 1M",  "-1M",    "nan",     "inf",      "infG",     "1e9",
                          "5x", "1",    "7.9k",   "1.1T",    "600Mbyte", "600 Mbit", "M",
                          "0",  "50MB", "50Mb/s", "0.9kB/s", "126GB/s",  "50MiB/s"}) {
    CAPTURE(bad);
    const auto rate = parse_rate(bad);
    REQUIRE_FALSE(rate);
    CHECK(rate.error().code == ExitCode::usage);
    CHECK(rate.error().message().find(bad) != std::string::npos);
  }
}
