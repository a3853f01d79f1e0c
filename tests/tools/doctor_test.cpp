// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// How findings are shown. What doctor finds is tested on real interfaces
// (tests/lab/doctor_test.py).
#include <catch2/catch.hpp>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "tools/onehop/doctor/doctor.hpp"

namespace onehop::tool {
namespace {

Diagnosis example() {
  Diagnosis out{.interface = "wlan0", .is_usable = true};
  out.findings = {
      {"interface", "state", Verdict::good, "up, with a carrier", "running"},
      {"io", "afxdp-zero-copy", Verdict::bad,
       "no: bind AF_XDP socket to wlan0: Operation not supported, which takes more than one line "
       "to tell in full",
       false,
       "take --xdp-mode skb, which works on every interface, or --io udp, which is no dearer on "
       "Wi-Fi"},
      {"telemetry", "a-key-that-is-longer-than-its-column", Verdict::info, "text", nullptr},
  };
  return out;
}

}  // namespace

TEST_CASE("doctor's text keeps to its columns and loses no word", "[tools][doctor]") {
  for (const std::size_t columns : {60UL, 80UL, 120UL}) {
    const std::string text = doctor_text(example(), columns);
    std::istringstream lines{text};
    for (std::string line; std::getline(lines, line);) CHECK(line.size() <= columns);
    std::istringstream found{text};
    std::string flat;
    for (std::string word; found >> word;) flat += word + ' ';
    CHECK(flat.find("wlan0 The interface + state up, with a carrier") != std::string::npos);
    CHECK(flat.find("more than one line to tell in full > take --xdp-mode skb,") !=
          std::string::npos);
    CHECK(flat.find("a-key-that-is-longer-than-its-column text") != std::string::npos);
  }
}

TEST_CASE("doctor's JSON has one entry per finding with verdict, value and remedy",
          "[tools][doctor]") {
  const Json json = doctor_json(example());
  CHECK(json["interface"] == "wlan0");
  CHECK(json["is_usable"] == true);
  CHECK(json["link"]["state"]["ok"] == true);
  CHECK(json["link"]["state"]["value"] == "running");
  CHECK_FALSE(json["link"]["state"].contains("remedy"));
  CHECK(json["io"]["afxdp-zero-copy"]["ok"] == false);
  CHECK(json["io"]["afxdp-zero-copy"]["remedy"].get<std::string>().starts_with("take"));
  CHECK(json["telemetry"]["a-key-that-is-longer-than-its-column"]["ok"].is_null());
}

TEST_CASE("a report of a machine whose names are no UTF-8 is written", "[tools][doctor]") {
  Diagnosis found{.interface = "eth\xff", .is_usable = true};
  found.findings = {{"interface", "qdisc", Verdict::good, "\xfe", "q\xff", "\xfd"},
                    {"io", "xdp-program", Verdict::bad, "\xfe", "\xff", "\xfd", "cause \xc3"},
                    {"telemetry", "nl80211", Verdict::good, "x", {{"key\xff", 1}}}};
  const std::string file =
      (std::filesystem::temp_directory_path() / ("onehop-report-" + std::to_string(::getpid())))
          .string();
  REQUIRE(write_report(file, {&found, 1}).has_value());
  std::ifstream written{file};
  CHECK(Json::parse(written)["interfaces"].size() == 1);
  std::filesystem::remove(file);
}

// Method: each value that could identify a machine stands in a finding, known or unknown, and in
//         every text. tests/lab/doctor_test.py plants them in a real machine.
TEST_CASE("a report has what is known to be harmless, and nothing else", "[tools][doctor]") {
  const std::string secret = "planted";
  Diagnosis found{.interface = secret, .is_usable = true};
  found.findings = {
      {"interface", "addresses", Verdict::good, secret, Json::array({secret}), secret},
      {"interface", "driver", Verdict::info, secret, "igb", secret},
      {"interface", "of-a-later-version", Verdict::info, secret, secret, secret},
      {"io", "xdp-program", Verdict::bad, secret, secret, secret},
      {"io", "afxdp-zero-copy", Verdict::bad, secret, false, secret, "bind: Invalid argument"},
      {"telemetry", "nl80211", Verdict::good, secret, {{"tx_rate", secret}, {"cost_ns", 7}}},
      {"radio", "5 GHz", Verdict::good, secret, {{"channels", 25}}},
  };
  const Json report = report_json({&found, 1});
  CHECK(report.dump().find(secret) == std::string::npos);
  const Json& of = report["interfaces"][0];
  CHECK(of["interface"]["driver"]["value"] == "igb");
  CHECK(of["interface"]["addresses"]["ok"] == true);
  CHECK(of["io"]["afxdp-zero-copy"]["cause"] == "bind: Invalid argument");
  CHECK(of["telemetry"]["nl80211"]["tells"] == Json::array({"tx_rate"}));
  CHECK(of["telemetry"]["nl80211"]["cost_ns"] == 7);
  CHECK(of["radio"]["5 GHz"]["value"]["channels"] == 25);
  CHECK_FALSE(report["kernel"].get<std::string>().empty());
}

}  // namespace onehop::tool
