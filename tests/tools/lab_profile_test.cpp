// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// The lab's profiles, without a lab: what they say, what is refused, which shaper they get.
#include <catch2/catch.hpp>

#include <filesystem>

#include "tools/labs/lab/profile.hpp"

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
  const Profile profile = parsed(
      "rate = '600Mbit'\nqueue = '1MB'\nburst = '16KB'\nloss_permille = 0.1\nmtu = "
      "1400\nreverse_rate = '100Mbit'");
  CHECK(profile.rate->count == 75'000'000);
  CHECK(profile.queue == Bytes{1'000'000});
  CHECK(profile.burst == Bytes{16'000});
  CHECK(profile.loss_ppm == 100);
  CHECK(profile.reverse_loss_ppm ==
        100);  // the other direction loses as much unless it is told otherwise
  CHECK(profile.mtu_bytes == 1400);
  CHECK(profile.reverse_rate.count == 12'500'000);
  CHECK(profile.is_reverse_shaped);
  CHECK_FALSE(parsed("reverse_rate = 'none'\nrate = '1Gbit'").is_reverse_shaped);
  CHECK_FALSE(parsed("").is_reverse_shaped);
  CHECK(parsed("[disk]\nrate = '300Mbit'\nstall = ['2:10']").disk->stalls ==
        std::vector<std::string>{"2:10"});
}

TEST_CASE("a steady rate gets TBF, a changing one HTB, one that nearly stops TBF", "[tools][lab]") {
  const auto shaper = [](const std::string& middle_rate, const std::string& until) {
    return shaper_of(parsed(
        "trace_period = 4.0\n[[trace]]\nat = 0\nrate = '600Mbit'\n[[trace]]\nat = 1\nrate = '" +
        middle_rate + "'\n[[trace]]\nat = " + until + "\nrate = '600Mbit'"));
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
      {"trace_period = 1\n[[trace]]\nat = 0\nrate = '1Mbit'\n[[trace]]\nat = 1\nrate = '2Mbit'",
       "trace_period"},
      {"trace_period = 9\n[[trace]]\nat = 0\nrate = '1Mbit'\n[[trace]]\nat = 0\nrate = '2Mbit'",
       "at"},
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

TEST_CASE("a Wi-Fi profile says what the channel is like", "[tools][lab][air]") {
  const Profile profile = parsed(
      "[wifi]\nstandard = 'ac'\nwidth_mhz = 160\nloss_permille = 10\nqueue_frames = "
      "300\ncontenders = 2\n"
      "[wifi.facts]\nperiod_ms = 2.5\nlate_ms = 4\nloss_permille = 100");
  REQUIRE(profile.wifi.has_value());
  CHECK(profile.wifi->channel.mode.standard == air::Standard::ac);
  CHECK(profile.wifi->channel.mode.mcs == 9);  // the best that the standard has
  CHECK(profile.wifi->channel.loss_ppm == 10'000);
  CHECK(profile.wifi->channel.stations == 4);
  CHECK(profile.wifi->queue_frames == 300);
  CHECK(profile.wifi->facts.period == Nanos{2'500'000});
  CHECK(profile.wifi->facts.late == 4ms);
  CHECK(profile.wifi->facts.loss_ppm == 100'000);
  CHECK(shaper_of(profile) == Shaper::none);
  const Profile trace = parsed(
      "[wifi]\ntrace_period = 2\n[[wifi.trace]]\nat = 0\nmcs = 11\n[[wifi.trace]]\nat = 0.5\nmcs = "
      "5");
  REQUIRE(trace.wifi->trace.size() == 2);
  CHECK(trace.wifi->trace[1].at == 500ms);
  CHECK(trace.wifi->trace[1].mcs == 5);
}

TEST_CASE("a Wi-Fi table that no link can be is refused, and the key is named",
          "[tools][lab][air]") {
  const auto [text, word] = GENERATE(table<std::string, std::string>({
      {"wifi = 5", "wifi"},
      {"rate = '1Mbit'\n[wifi]", "rate"},
      {"loss_permille = 1\n[wifi]", "loss_permille"},
      {"direct = true\n[wifi]", "direct"},
      {"queue = '1MB'\n[wifi]", "queue"},
      {"mtu = 4000\n[wifi]", "mtu"},
      {"[wifi]\nwidht_mhz = 80", "widht_mhz"},
      {"[wifi]\nstandard = 'be'", "standard"},
      {"[wifi]\nwidth_mhz = 90", "width_mhz"},
      {"[wifi]\nstandard = 'ac'\nmcs = 10", "mcs"},
      {"[wifi]\nmcs = 1.5", "mcs"},
      {"[wifi]\nstreams = 3", "streams"},
      {"[wifi]\nblock_ack = 128", "block_ack"},
      {"[wifi]\nstandard = 'ac'\nblock_ack = 256", "block_ack"},
      {"[wifi]\nstandard = 'ac'\naggregate_bytes = 4000000", "aggregate_bytes"},
      {"[wifi]\nloss_permille = 950", "loss_permille"},
      {"[wifi]\nretries = -1", "retries"},
      {"[wifi]\nqueue_frames = 1", "queue_frames"},
      {"[wifi]\ncontenders = 9", "contenders"},
      {"[wifi]\nseed = 'x'", "seed"},
      {"[wifi]\ntrace_period = 2", "trace_period"},
      {"[wifi]\nmcs = 3\ntrace_period = 2\n[[wifi.trace]]\nat = 0\nmcs = 3", "mcs"},
      {"[wifi]\n[[wifi.trace]]\nat = 0\nmcs = 3", "trace_period"},
      {"[wifi]\ntrace_period = 2\n[[wifi.trace]]\nat = 0", "mcs"},
      {"[wifi]\ntrace_period = 2\n[[wifi.trace]]\nat = 1\nmcs = 3", "trace"},
      {"[wifi]\nfacts = 1", "facts"},
      {"[wifi.facts]\nperiod_ms = 0", "period_ms"},
      {"[wifi.facts]\nlate_ms = -1", "late_ms"},
      {"[wifi.facts]\nage = 1", "age"},
  }));
  CAPTURE(text);
  const Result<Profile> profile = parse_profile(text, "test");
  REQUIRE(profile.has_error());
  CHECK(profile.error().code == ExitCode::usage);
  CHECK(profile.error().message().find(word) != std::string::npos);
}
