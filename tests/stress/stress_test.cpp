// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// What `onehop stress rings` is made of: schedules that repeat, files that are read strictly,
// examples that hold.
#include <catch2/catch.hpp>

#include <filesystem>
#include <string>

#include "tools/labs/stress/player.hpp"
#include "tools/labs/stress/schedule.hpp"
#include "tools/labs/stress/stress_file.hpp"

namespace onehop::stress {
namespace {

constexpr std::uint64_t seed = 20;

std::string refusal(const std::string& text) {
  const auto file = parse_stress_file(text, "mine.toml");
  return file ? "" : file.error().message();
}

}  // namespace

TEST_CASE("a schedule is the same one each time, and another one by seed and number", "[stress]") {
  const Schedule one = draw_schedule(seed, 7, {}), same = draw_schedule(seed, 7, {});
  REQUIRE(one.events.size() == same.events.size());
  for (std::size_t i = 0; i < one.events.size(); ++i) {
    CHECK(one.events[i].at == same.events[i].at);
    CHECK(one.events[i].fault == same.events[i].fault);
  }
  CHECK(one.world.seed == same.world.seed);
  CHECK(one.world.seed != draw_schedule(seed, 8, {}).world.seed);
  CHECK(one.world.seed != draw_schedule(seed + 1, 7, {}).world.seed);
}

// Bounds: as promised for a run: 200 faults in 100 ms each, every kind in a tenth of all schedules.
TEST_CASE("schedules hold as many faults of every kind as is promised", "[stress]") {
  constexpr std::uint64_t schedules = 2000;
  std::uint64_t with_every_kind = 0;
  for (std::uint64_t i = 0; i < schedules; ++i) {
    const Schedule schedule = draw_schedule(seed, i, {});
    CHECK(schedule.events.size() == 200);
    CHECK(schedule.span == 100ms);
    FaultSet seen = schedule.kinds & ((FaultSet{1} << faults_of_the_world) - 1);
    for (const FaultEvent& event : schedule.events) {
      seen |= bit_of(event.fault);
      CHECK(event.at < schedule.span);
    }
    CHECK(seen == schedule.kinds);
    with_every_kind += seen == every_fault ? 1 : 0;
    if ((seen & bit_of(Fault::fill_starved)) != 0) CHECK(schedule.world.rings.has_value());
  }
  CHECK(with_every_kind * 10 >= schedules);
}

TEST_CASE("a schedule that is played again does the same, frame for frame", "[stress]") {
  for (const std::uint64_t index : {0U, 3U, 11U}) {
    CAPTURE(seed, index);
    const Schedule schedule = draw_schedule(seed, index, {});
    Tally first, second;
    const Broken broken = play_schedule(schedule, first, nullptr);
    INFO(broken.what());
    CHECK_FALSE(broken.is_broken());
    CHECK_FALSE(play_schedule(schedule, second, nullptr).is_broken());
    CHECK(first.frames == second.frames);
    CHECK(first.virtual_us == second.virtual_us);
    CHECK(first.tx_queue.mean() == second.tx_queue.mean());
    CHECK(first.events == 200);
  }
}

TEST_CASE("a stress file says where it is wrong and what would be right", "[stress]") {
  CHECK(refusal("law = \"auto\"\n") == "");
  CHECK_THAT(refusal("speed = 3\n"), Catch::Contains("'speed' in mine.toml:1") &&
                                         Catch::Contains("allowed: description, law"));
  CHECK_THAT(refusal("law = \"auto\"\n\nrate = 50\n"),
             Catch::Contains("'rate' in mine.toml:3") && Catch::Contains("text in quotes"));
  CHECK_THAT(refusal("law = \"fastest\"\n"),
             Catch::Contains("mine.toml:1") && Catch::Contains("safe-range"));
  CHECK_THAT(refusal("tx_frames = 48\n"), Catch::Contains("power of two"));
  CHECK_THAT(refusal("span_ms = -1\n"), Catch::Contains("from 1 to 60000"));
  CHECK_THAT(refusal("repair = \"never\"\n"), Catch::Contains("allowed: eager, lazy"));
  CHECK_THAT(refusal("[[event]]\nfault = \"earthquake\"\n"),
             Catch::Contains("'fault' in mine.toml:2") && Catch::Contains("drain-down"));
  CHECK_THAT(refusal("[[event]]\nfault = \"mtu\"\nwhen = 3\n"),
             Catch::Contains("'when' in mine.toml:3"));
  CHECK_THAT(refusal("[[event]]\nfault = \"mtu\"\nat_ms = 500\n"),
             Catch::Contains("from 0 to 100"));
  CHECK_THAT(refusal("span_ms = 1000\n[[event]]\nfault = \"mtu\"\nevery_ms = 0.001\n"),
             Catch::Contains("100000 events"));
  CHECK_THAT(refusal("event = 3\n"), Catch::Contains("[[event]]"));
  CHECK_THAT(refusal("[random]\nfaults = [\"mtu\", 3]\n"), Catch::Contains("list of texts"));
  CHECK_THAT(refusal("law = \n"), Catch::Contains("mine.toml:1"));
}

TEST_CASE("the examples in configs/stress hold", "[stress]") {
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator{ONEHOP_STRESS_CONFIGS}) {
    const auto file = load_stress_file(entry.path().string());
    INFO(entry.path().string() << (file ? "" : file.error().message()));
    REQUIRE(file.has_value());
    for (std::uint64_t index = 0; index < 3; ++index) {
      Tally tally;
      const Broken broken = play_schedule(schedule_from(file.value(), seed, index), tally, nullptr);
      INFO(broken.what());
      CHECK_FALSE(broken.is_broken());
      CHECK(tally.events > 0);
    }
    ++files;
  }
  CHECK(files >= 2);
}

}  // namespace onehop::stress
