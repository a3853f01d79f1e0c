// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// The lab's profiles, without a lab: what they say, what is refused, which shaper they get.
#include <catch2/catch.hpp>

#include <filesystem>

#include "tools/lab/profile.hpp"

using namespace onehop;
using namespace onehop::lab;

namespace {
Profile parsed(const std::string& text) {
  const Result<Profile> profile = parse_profile(text, "test");
  if (profile.has_error()) FAIL(profile.error().message());
  return profile.value();
}
}  // namespace

TEST_CASE("each profile of configs/lab can be read", "[tools][lab]") {
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator{ONEHOP_LAB_PROFILES_SOURCE}) {
    const Result<Profile> profile = load_profile(entry.path());
    CAPTURE(entry.path().string());
    if (profile.has_error()) FAIL(profile.error().message());
    CHECK_FALSE(profile.value().description.empty());
    ++count;
  }
  CHECK(count >= 10);
}

TEST_CASE("a profile says what the link is like", "[tools][lab]") {
  const Profile profile = parsed("rate = '600Mbit'\nqueue = '1MB'\nburst = '16KB'\nloss_permille = 0.1\nmtu = 1400\nreverse_rate = '100Mbit'");
  CHECK(profile.rate->count == 75'000'000);
  CHECK(profile.queue == Bytes{1'000'000});
  CHECK(profile.burst == Bytes{16'000});
  CHECK(profile.loss_ppm == 100);
  CHECK(profile.reverse_loss_ppm == 100);  // the other direction loses as much unless it is told otherwise
  CHECK(profile.mtu_bytes == 1400);
  CHECK(profile.reverse_rate.count == 12'500'000);
  CHECK(profile.is_reverse_shaped);
  CHECK_FALSE(parsed("reverse_rate = 'none'\nrate = '1Gbit'").is_reverse_shaped);
  CHECK_FALSE(parsed("").is_reverse_shaped);
  CHECK(parsed("[disk]\nrate = '300Mbit'\nstall = ['2:10']").disk->stalls == std::vector<std::string>{"2:10"});
}

TEST_CASE("a steady rate gets TBF, a changing one HTB, one that nearly stops TBF", "[tools][lab]") {
  const auto shaper = [](const std::string& middle_rate, const std::string& until) {
    return shaper_of(parsed("trace_period = 4.0\n[[trace]]\nat = 0\nrate = '600Mbit'\n[[trace]]\nat = 1\nrate = '" + middle_rate +
                            "'\n[[trace]]\nat = " + until + "\nrate = '600Mbit'"));
  };
  CHECK(shaper_of(parsed("")) == Shaper::none);
  CHECK(shaper_of(parsed("rate = '600Mbit'")) == Shaper::tbf);
  CHECK(shaper("150Mbit", "1.5") == Shaper::htb);
  CHECK(shaper("8kbit", "1.2") == Shaper::tbf);
  CHECK(shaper("600Mbit", "1.0001") == Shaper::tbf);  // 7.5 KB: less than one super-packet
}

TEST_CASE("a profile with a slip is refused, and the key is named", "[tools][lab]") {
  const auto [text, word] = GENERATE(table<std::string, std::string>({
      {"rat = '600Mbit'", "rat"},
      {"rate = 600", "rate"},
      {"rate = '600 parsecs'", "parsecs"},
      {"rate = '1Mbit'\n[[trace]]\nat = 0\nrate = '1Mbit'", "rate"},
      {"trace_period = 1", "trace_period"},
      {"trace_period = 1\n[[trace]]\nat = 0\nrate = '1Mbit'\n[[trace]]\nat = 1\nrate = '2Mbit'", "trace_period"},
      {"trace_period = 9\n[[trace]]\nat = 0\nrate = '1Mbit'\n[[trace]]\nat = 0\nrate = '2Mbit'", "at"},
      {"trace = 5", "trace"},
      {"queue = '1 parsec'", "queue"},
      {"queue = '10B'", "queue"},
      {"mtu = 500", "mtu"},
      {"mtu = nan", "mtu"},
      {"loss_permille = 1001", "loss_permille"},
      {"direct = true\nloss_permille = 1", "direct"},
      {"disk = 1", "disk"},
      {"[disk]\nfolder = 'tmp'", "folder"},
      {"[disk]\nstall = '2:10'", "stall"},
      {"rate = ", "line 1"},
  }));
  CAPTURE(text);
  const Result<Profile> profile = parse_profile(text, "test");
  REQUIRE(profile.has_error());
  CHECK(profile.error().code == ExitCode::usage);
  CHECK(profile.error().message().find(word) != std::string::npos);
}
