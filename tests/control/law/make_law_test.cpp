// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Law parameters from files, and laws from words.
#include <catch2/catch.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "control/law/auto_law.hpp"
#include "control/law/cupid.hpp"
#include "control/law/make_law.hpp"
#include "control/law/notice.hpp"
#include "control/law/param_reader.hpp"
#include "control/law/qcut.hpp"
#include "control/law/wdtcp.hpp"
#include "tests/control/law/law_sample.hpp"

namespace onehop::law {
namespace {

using nlohmann::json;

std::string file_text(const std::filesystem::path& path) {
  std::ifstream in{path};
  REQUIRE(in);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

/// The same value, one that differs by a hundredth, in the form that its key has.
json nudged(const json& value) {
  if (value.is_array()) return {value[0].get<double>() * 1.01, value[1].get<double>() * 1.01};
  if (value.is_number_integer())
    return value.get<std::int64_t>() + std::max<std::int64_t>(value.get<std::int64_t>() / 100, 1);
  return value.get<double>() * 1.01;
}

std::string file_of(std::string_view law) {
  return file_text(std::filesystem::path{ONEHOP_CONFIGS} / "law" / (std::string{law} + ".json"));
}

/// The parameters of a law as `file` gives them.
template <class Params>
Params read_from(const json& file) {
  Params params;
  ParamReader reader{file, "file"};
  params.read(reader);
  if (const auto rc = reader.finish(); !rc) FAIL(rc.error().message());
  if constexpr (std::is_same_v<Params, SafeRangeParams>) params.is_start_known = false;
  return params;
}

template <class Params>
void check_defaults(const std::string& law) {
  CAPTURE(law);
  const json file = json::parse(file_of(law));
  CHECK(read_from<Params>(file) == Params{});
  for (const auto& [key, value] : file.items()) {
    if (key == "law") continue;
    CAPTURE(key);
    json changed = file;
    changed[key] = nudged(value);
    CHECK_FALSE(read_from<Params>(changed) == Params{});
  }
}

// Goal:   what the files in configs/law say is what the code does without them.
// Method: each file whole, then with each of its values changed by a hundredth.
TEST_CASE("the files in configs/law hold the defaults of every law", "[control][law][params]") {
  check_defaults<AutoParams>("auto");
  check_defaults<SafeRangeParams>("safe-range");
  check_defaults<WdtcpParams>("wdtcp");
  check_defaults<AirtimeShareParams>("cupid");
  check_defaults<QcutParams>("qcut");
}

// Goal:   the files say all that can be said: an unknown key is told all the keys of the file.
TEST_CASE("every law with parameters has a file with all of its keys", "[control][law][params]") {
  for (const std::string_view law : param_files()) {
    CAPTURE(std::string{law});
    std::string keys;
    const json file = json::parse(file_of(law));
    for (const auto& [key, value] : file.items()) keys += (keys.empty() ? "" : ", ") + key;
    LawParams params;
    const auto rc = read_params(json{{"law", law}, {"no_such_key", 1}}.dump(), "file", params);
    REQUIRE_FALSE(rc);
    CHECK_THAT(rc.error().message(), Catch::Contains("Known keys: " + keys + "."));
  }
}

TEST_CASE("a wrong parameter file is refused with the key, the cause and what would be right",
          "[control][law][params]") {
  struct Case {
    const char* text;
    const char* part;
  };
  const Case cases[] = {
      {"", "not a JSON object"},
      {"[1]", "not a JSON object"},
      {"{}", "\"law\" is missing"},
      {R"({"law": 5})", "\"law\" is missing"},
      {R"({"law": "fixed"})", "'fixed' has no parameters"},
      {R"({"law": "qcut", "tau_wird_ms": 4})", "tau_wird_ms"},
      {R"({"law": "qcut", "tau_wired_ms": "4"})", "must be a number"},
      {R"({"law": "qcut", "tau_wired_ms": 0})", "not within"},
      {R"({"law": "qcut", "tau_wired_ms": 40})", "below tau_wired_ms"},
      {R"({"law": "safe-range", "v_1_bounds": [2, 0.5]})", "above the highest"},
      {R"({"law": "safe-range", "v_1_bounds": 2})", "[lowest, highest]"},
      {R"({"law": "safe-range", "v_1_bounds": [0.5, 2, 3]})", "[lowest, highest]"},
      {R"({"law": "safe-range", "v_1_bounds": [1.5, 2]})", "around 1"},
      {R"({"law": "safe-range", "v_rx_bounds": [0.5, 0.9]})", "around 1"},
      {R"({"law": "safe-range", "d_1_ms": 1e999})", "not a JSON object"},
      {R"({"law": "safe-range", "rate_min_bps": null})", "'rate_min_bps'"},
      {R"({"law": "safe-range", "batch_frames_max": 1})", "within 2"},
      {R"({"law": "safe-range", "rate_min_bps": 900000000})", "between rate_min_bps"},
      {R"({"law": "wdtcp", "pairs_min": 2.5})", "whole number"},
      {R"({"law": "wdtcp", "aggregate_least_bytes": 1000000})", "between aggregate_least_bytes"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.text);
    LawParams params;
    const auto rc = read_params(c.text, "x.json", params);
    REQUIRE_FALSE(rc);
    CHECK(rc.error().code == ExitCode::usage);
    CHECK_THAT(rc.error().message(), Catch::Contains(c.part));
    CHECK_THAT(rc.error().message(), Catch::Contains("x.json"));
    CHECK(params.law.empty());
    CHECK(params.safe_range == SafeRangeParams{});
  }
}

TEST_CASE("a parameter file changes what it names and nothing else", "[control][law][params]") {
  LawParams params;
  const auto law = read_params(
      R"({"law": "safe-range", "d_1_ms": 2.5, "v_1_bounds": [0.25, 3], "rate_start_bps": 2e8})",
      "x", params);
  REQUIRE(law);
  CHECK(law.value() == "safe-range");
  CHECK(params.safe_range.d_1 == 2500us);
  CHECK(params.safe_range.v_1_lo == Gain{250});
  CHECK(params.safe_range.v_1_up == Gain{3000});
  CHECK(params.safe_range.rate_start == mbit_per_s(200));
  CHECK(params.safe_range.is_start_known);
  CHECK(params.safe_range.latch_min == SafeRangeParams{}.latch_min);
}

// Goal:   a law is made with what the file of its own name says, and with no other's.
// Method: the gate around a fixed rate, without a file, with its own and with one of another law.
TEST_CASE("a law is made with the parameters of its file", "[control][law][params]") {
  const auto gate_after = [](std::string_view file) {
    LawParams params;
    if (!file.empty()) REQUIRE(read_params(file, "x", params));
    const auto law = make_law({.spec = "fixed:600M", .has_qcut = true, .params = params}).value();
    test::SampleMaker make;
    for (int i = 0; i < 100; ++i) law->step(make.step(1ms, {75'000}, {120'000}));
    return law->trace().details.tau.value_or(Nanos{0});
  };
  CHECK(gate_after("") == 8ms);
  CHECK(gate_after(R"({"law": "qcut", "tau_wifi_ms": 6})") == 6ms);
  CHECK(gate_after(R"({"law": "auto", "beta_max": 0.25})") == 8ms);
}

TEST_CASE("a law uses its own parameters and those of what it falls back to or is wrapped in",
          "[control][law][params]") {
  CHECK(uses_params("auto", false, "auto"));
  CHECK(uses_params("auto", false, "safe-range"));
  CHECK(uses_params("auto", false, "cupid"));
  CHECK(uses_params("wdtcp:paper", false, "wdtcp"));
  CHECK(uses_params("fixed:5M", true, "qcut"));
  CHECK_FALSE(uses_params("fixed:5M", false, "safe-range"));
  CHECK_FALSE(uses_params("safe-range", false, "auto"));
  CHECK_FALSE(uses_params("wdtcp", false, "cupid"));
  CHECK_FALSE(uses_params("auto", false, "qcut"));
}

TEST_CASE("an unknown key lists the known ones", "[control][law][params]") {
  LawParams params;
  const auto rc = read_params(R"({"law": "qcut", "tau": 4})", "x.json", params);
  REQUIRE_FALSE(rc);
  CHECK_THAT(rc.error().message(), Catch::Contains("tau_max_ms, tau_wifi_ms, tau_wired_ms"));
}

TEST_CASE("every law word makes its law, and qcut wraps it", "[control][law][params]") {
  for (const char* word : {"auto", "safe-range", "wdtcp", "wdtcp:paper", "cupid"}) {
    CAPTURE(word);
    const auto law = make_law({.spec = word});
    REQUIRE(law);
    CHECK(law.value()->name() == word);
    const auto gated = make_law({.spec = word, .has_qcut = true});
    REQUIRE(gated);
    CHECK(gated.value()->name() == std::string{word} + "+qcut");
  }
  for (const char* bad : {"wdtcp:", "wdtcp:papers", "cupid:2", "qcut", "auto+qcut", "AUTO"}) {
    CAPTURE(bad);
    const auto law = make_law({.spec = bad});
    REQUIRE_FALSE(law);
    CHECK_THAT(law.error().message(), Catch::Contains("auto, safe-range, wdtcp"));
  }
}

TEST_CASE("every notice has a sentence of its own", "[control][law][params]") {
  std::uint32_t bits = 0;
  for (std::uint32_t i = 0; i < notices_max; ++i) {
    const auto notice = static_cast<Notice>(i);
    CHECK_FALSE(text_of(notice).empty());
    CHECK((bits & bit_of(notice)) == 0);
    bits |= bit_of(notice);
  }
  CHECK(text_of(static_cast<Notice>(notices_max)).empty());
}

TEST_CASE("make_law reads its names and names what it does not know", "[control][law]") {
  CHECK(make_law({.spec = "safe-range"}).value()->name() == "safe-range");
  CHECK(make_law({.spec = "fixed:600M"}).value()->name() == "fixed");
  CHECK(make_law({.spec = "fixed:300Mbit"}).value()->name() == "fixed");
  for (const char* bad : {"", "fixed:", "fixed:-1M", "fixed:nan", "fixed:infG", "fixed:1e9",
                          "fixed:5x", "fixed:1", "vegas"}) {
    CAPTURE(bad);
    const auto law = make_law({.spec = bad});
    REQUIRE_FALSE(law);
    CHECK(law.error().code == ExitCode::usage);
  }
  CHECK_FALSE(make_law({.target = "over"}));
  CHECK_FALSE(make_law({.bounds = "loose"}));
}

}  // namespace
}  // namespace onehop::law
