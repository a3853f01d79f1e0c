// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Goal:   what cannot come to a group is refused at once, with the remedy.
// Method: the command's own parser; a folder that looks like the kernel's.
// Bounds: none but equality.
#include "tools/onehop/p2p/p2p_command.hpp"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <catch2/catch.hpp>
#include <fstream>

#include "tools/onehop/p2p/forming.hpp"
#include "tools/onehop/p2p/p2p_verbs.hpp"
#include "tools/onehop/text/report.hpp"

using namespace onehop;
using namespace onehop::p2p;

namespace {

bool is_taken(const std::string& words) {
  CLI::App app;
  P2pCommand command;
  add_verbs(*app.add_subcommand("p2p"), command);
  try {
    app.parse(words);
  } catch (const CLI::ParseError&) {
    return false;
  }
  return true;
}

}  // namespace

TEST_CASE("a PIN that nobody has shown is refused where it is typed", "[tools][p2p]") {
  CHECK(check_pin("12345670"));
  CHECK(check_pin("1234"));
  for (const char* wrong :
       {"12345671", "21345670", "1234567", "123456700", "1234567a", "-1234567", ""})
    CHECK_FALSE(check_pin(wrong));
}

TEST_CASE("D4 a PIN is no word of a command", "[tools][p2p]") {
  for (const std::string verb : {"p2p connect", "p2p accept", "p2p join", "p2p host"}) {
    CHECK(is_taken(verb + " --pin"));
    CHECK(is_taken(verb + " --pin --pin-file -"));
    CHECK_FALSE(is_taken(verb + " --pin=12345670"));
    CHECK_FALSE(is_taken(verb + " --pin-file -"));
  }
  CHECK_FALSE(is_taken("p2p host --pin 12345670"));
  // Where a peer may be named, it would be taken for one.
  const tool::Reporter reporter{{}, "p2p connect"};
  P2pOptions options;
  options.peer = "12345670";
  options.is_pin_entered = true;
  for (const auto verb : {connect_peer, accept_peer, join_group}) {
    const auto refused = verb(options, reporter);
    REQUIRE(refused.has_error());
    CHECK(refused.error().code == ExitCode::usage);
    CHECK(refused.error().message().find("12345670") == std::string::npos);
    CHECK(refused.error().hint.find("--pin-file") != std::string::npos);
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
