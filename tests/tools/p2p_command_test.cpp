// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Goal:   what cannot come to a group is refused at once, with the remedy.
// Method: the command's own parser; a folder that looks like the kernel's.
// Bounds: none but equality.
#include "tools/p2p/p2p_command.hpp"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <catch2/catch.hpp>
#include <fstream>

#include "tools/p2p/forming.hpp"

using namespace onehop;
using namespace onehop::p2p;

namespace {

bool is_taken(const std::string& words) {
  CLI::App app;
  P2pCommand command;
  add_p2p_command(app, command);
  try {
    app.parse(words);
  } catch (const CLI::ParseError&) {
    return false;
  }
  return true;
}

}  // namespace

TEST_CASE("a PIN that nobody has shown is refused where it is typed", "[tools][p2p]") {
  for (const std::string verb : {"p2p connect --pin ", "p2p join --pin ", "p2p host --pin "}) {
    CHECK(is_taken(verb + "12345670"));
    CHECK(is_taken(verb + "1234"));
    for (const char* wrong :
         {"12345671", "21345670", "1234567", "123456700", "1234567a", "-1234567"})
      CHECK_FALSE(is_taken(verb + wrong));
  }
}

TEST_CASE("a radio that a switch keeps off is told of, with what switches it on", "[tools][p2p]") {
  namespace fs = std::filesystem;
  const fs::path devices =
      fs::temp_directory_path() / ("onehop-devices-" + std::to_string(::getpid()));
  const fs::path rfkill = devices / "wlan0/phy80211/rfkill3";
  fs::create_directories(rfkill);
  const auto check = [&](const char* soft, const char* hard) {
    std::ofstream{rfkill / "soft"} << soft << "\n";
    std::ofstream{rfkill / "hard"} << hard << "\n";
    return check_rfkill("wlan0", devices);
  };
  CHECK(check("0", "0").has_value());
  CHECK(check_rfkill("wlan1", devices).has_value());
  const auto soft = check("1", "0");
  REQUIRE(soft.has_error());
  CHECK(soft.error().code == ExitCode::io_unavailable);
  CHECK(soft.error().hint == "rfkill unblock wifi");
  REQUIRE(check("0", "1").has_error());
  CHECK(check("0", "1").error().cause.find("switch") != std::string::npos);
  fs::remove_all(devices);
  CHECK(check_rfkill("wlan0", devices).has_value());  // no rfkill in this kernel
}
