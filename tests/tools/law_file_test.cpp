// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// A law's parameter file: what it sets, and that a slip is refused by name.
#include <catch2/catch.hpp>

#include <fstream>
#include <iterator>

#include "tools/onehop/law_file.hpp"

using namespace onehop;
using namespace onehop::tool;

TEST_CASE("the parameter file of configs/law holds the defaults", "[tools][law]") {
  std::ifstream file{ONEHOP_LAW_CONFIGS "/safe-range.json"};
  const std::string text{std::istreambuf_iterator<char>{file}, {}};
  const auto read = parse_law_params(text, "safe-range.json");
  if (!read) FAIL(read.error().message());
  const law::SafeRangeParams& params = read.value();
  const law::SafeRangeParams defaults;
  CHECK(params.d_1 == defaults.d_1);
  CHECK(params.v_1_lo == defaults.v_1_lo);
  CHECK(params.v_1_up == defaults.v_1_up);
  CHECK(params.v_rx_lo == defaults.v_rx_lo);
  CHECK(params.v_rx_up == defaults.v_rx_up);
  CHECK(params.d_rx_min == defaults.d_rx_min);
  CHECK(params.latch_min == defaults.latch_min);
  CHECK(params.rate_start == defaults.rate_start);
  CHECK(params.rate_min == defaults.rate_min);
  CHECK(params.rate_max == defaults.rate_max);
  CHECK(params.backlog_start == defaults.backlog_start);
  CHECK(params.batch_frames_max == defaults.batch_frames_max);
}

TEST_CASE("a parameter file changes what it names and nothing else", "[tools][law]") {
  const auto read = parse_law_params(R"({"law": "safe-range", "d_1_ms": 2.5, "v_1_bounds": [0.25, 3], "rate_start_bps": 2e8})", "x");
  REQUIRE(read);
  CHECK(read.value().d_1 == 2500us);
  CHECK(read.value().v_1_lo == Gain{250});
  CHECK(read.value().v_1_up == Gain{3000});
  CHECK(read.value().rate_start == mbit_per_s(200));
  CHECK(read.value().is_start_known);
  CHECK(read.value().latch_min == law::SafeRangeParams{}.latch_min);
  CHECK_FALSE(parse_law_params(R"({"law": "safe-range"})", "x").value().is_start_known);
}

TEST_CASE("a parameter file with a slip is refused with exit code 2, and the key is named", "[tools][law]") {
  const auto [text, word] = GENERATE(table<std::string, std::string>({
      {"", "JSON"}, {"[]", "JSON"}, {"{\"law\": \"safe-range\",}", "JSON"}, {"{}", "which law"},
      {R"({"law": "fixed"})", "which law"}, {R"({"law": "safe-range", "d1_ms": 4})", "'d1_ms'"},
      {R"({"law": "safe-range", "target": "mid"})", "'target'"}, {R"({"law": "safe-range", "d_1_ms": "4"})", "'d_1_ms'"},
      {R"({"law": "safe-range", "d_1_ms": 0})", "0.5 to 100"}, {R"({"law": "safe-range", "d_1_ms": 1e999})", "JSON"},
      {R"({"law": "safe-range", "v_1_bounds": 2})", "LOWER"}, {R"({"law": "safe-range", "v_1_bounds": [2, 0.5]})", "LOWER"},
      {R"({"law": "safe-range", "v_1_bounds": [0.5, 2, 3]})", "LOWER"}, {R"({"law": "safe-range", "batch_frames_max": 1})", "2 to 64"},
      {R"({"law": "safe-range", "rate_max_bps": 50000000})", "ascend"}, {R"({"law": "safe-range", "rate_min_bps": null})", "rate_min_bps"}}));
  CAPTURE(text);
  const auto read = parse_law_params(text, "some.json");
  REQUIRE_FALSE(read);
  CHECK(read.error().code == ExitCode::usage);
  CHECK(read.error().message().find("some.json") != std::string::npos);
  CHECK(read.error().message().find(word) != std::string::npos);
}
