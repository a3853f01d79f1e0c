// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// LinkWatch and PollBudget with a clock of the test's own, and the plain sources on this machine's
// kernel.
#include <catch2/catch.hpp>

#include <net/if.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "control/link/link_watch.hpp"
#include "control/link/poll_budget.hpp"
#include "control/link/softnet_source.hpp"
#include "control/link/wired_source.hpp"
#include "engine/base/time.hpp"

namespace onehop::link {
namespace {

/// World is what the fake sources read: a clock that stands but for what a reading costs, and a
/// link.
struct World {
  Instant now{100s};
  Nanos cost{20us};
  int readings = 0;
  int looks = 0;
  LinkState link{.name = "wlan0", .is_running = true};
};

/// Sensor reads a rate every 2 ms, at a cost.
class Sensor final : public FactSource {
 public:
  explicit Sensor(World& world) : world_{world} {}
  [[nodiscard]] std::string_view name() const noexcept override { return "sensor"; }
  void read(Instant now, law::LinkFacts& facts) override {
    budget_.run(now, [&] {
      world_.now += world_.cost;
      ++world_.readings;
      facts.phy_rate = {mbit_per_s(600), now, budget_.period()};
    });
  }

 private:
  World& world_;
  PollBudget budget_{2ms, [this] { return world_.now; }};
};

/// Backlog reads a queue of this machine, which is there with and without a carrier.
struct Backlog final : FactSource {
  [[nodiscard]] std::string_view name() const noexcept override { return "backlog"; }
  void read(Instant now, law::LinkFacts& facts) override {
    facts.lower_queue = {{.queue = {.occupancy = kib(7)}}, now, 4ms};
  }
  void read_backlog(Instant now, law::LinkFacts& facts) override { read(now, facts); }
};

LinkWatch watch_of(World& world) {
  const auto find = [&world]() -> Result<SourceSet> {
    ++world.looks;
    SourceSet set;
    set.push_back({"backlog", std::make_unique<Backlog>(), "", false});
    set.push_back({"sensor", std::make_unique<Sensor>(world), ""});
    return set;
  };
  return std::move(LinkWatch::open(find, [&world] { return world.link; })).value();
}

struct SysFolder {
  std::string path = "/tmp/onehop-sys-XXXXXX";
  SysFolder() { REQUIRE(::mkdtemp(path.data()) != nullptr); }
  ~SysFolder() { std::filesystem::remove_all(path); }
  void write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path{path + "/" + name}.parent_path());
    std::ofstream{path + "/" + name} << text;
  }
};

}  // namespace

// Bounds: a second of ticks of 1 ms; 500 readings at 2 ms, 10 where each costs 2 ms, one where each
// costs a second.
TEST_CASE("a sensor is asked as often as its cost allows", "[control][link][watch]") {
  for (const auto& [cost, readings] :
       {std::pair{Nanos{20us}, 500}, {Nanos{2ms}, 10}, {Nanos{1s}, 1}}) {
    World world{.cost = cost};
    LinkWatch watch = watch_of(world);
    law::LinkFacts facts;
    for (Instant now = world.now, end = now + 1s; now < end; now += 1ms) watch.read(now, facts);
    CHECK(world.readings == readings);
    CHECK(facts.phy_rate->period ==
          std::clamp(cost * PollBudget::cost_divisor, Nanos{2ms}, Nanos{1s}));
  }
}

// A fact that says a shorter period than it has is dropped before the next one comes.
TEST_CASE("one slow reading does not make a sensor rare for long, and no fact is missed meanwhile",
          "[control][link][watch]") {
  World world;
  LinkWatch watch = watch_of(world);
  law::LinkFacts facts;
  Instant now = world.now;
  const auto run = [&](Nanos span) {
    const int before = world.readings;
    for (const Instant end = now + span; now < end; now += 1ms) {
      watch.read(now, facts);
      REQUIRE(law::fresh(facts.phy_rate, now) != nullptr);
    }
    return world.readings - before;
  };
  CHECK(run(100ms) == 50);
  world.cost = 8ms;
  run(2ms);
  world.cost = 20us;
  run(500ms);
  CHECK(run(100ms) == 50);
}

TEST_CASE("a fact's age is that of its reading, whatever the tick", "[control][link][watch]") {
  World world;
  LinkWatch watch = watch_of(world);
  law::LinkFacts facts;
  const Instant now = world.now;
  watch.read(now, facts);
  watch.read(now + 1ms, facts);
  CHECK(facts.phy_rate->at == now);
  CHECK(law::fresh(facts.phy_rate, now + 4ms) != nullptr);
  CHECK(law::fresh(facts.phy_rate, now + 4ms + 1ns) == nullptr);
}

TEST_CASE("N10 a link that loses its carrier is blind at once and looked at again when it is back",
          "[control][link][watch]") {
  World world;
  LinkWatch watch = watch_of(world);
  law::LinkFacts facts;
  Instant now = world.now;
  watch.read(now, facts);
  CHECK(watch.name() == "sensor");
  world.link.is_running = false;
  watch.read(now += 1ms, facts);
  CHECK_FALSE(facts.phy_rate);
  CHECK(watch.name() == "none");
  CHECK(watch.found().back().reason == "the interface has no carrier");
  watch.read(now += 1s, facts);
  CHECK_FALSE(facts.phy_rate);
  world.link.is_running = true;
  watch.read(now += 1ms, facts);
  CHECK(facts.phy_rate);
  CHECK(watch.name() == "sensor");
  world.link = {};
  watch.read(now += 1ms, facts);
  CHECK_FALSE(facts.phy_rate);
  CHECK(watch.found().back().reason == "the interface is gone");
}

TEST_CASE("the backlog of this machine is read without a carrier, and alone while it drains",
          "[control][link][watch]") {
  World world;
  LinkWatch watch = watch_of(world);
  law::LinkFacts facts;
  Instant now = world.now;
  watch.read_backlog(now, facts);
  CHECK((facts.lower_queue && !facts.phy_rate));
  world.link.is_running = false;
  watch.read(now += 1ms, facts);
  CHECK((facts.lower_queue && facts.lower_queue->at == now));
}

TEST_CASE("a link that stays as it is is not looked at again, and a flapping one rarely",
          "[control][link][watch]") {
  World world;
  LinkWatch watch = watch_of(world);
  law::LinkFacts facts;
  Instant now = world.now;
  CHECK(world.looks == 1);
  for (int i = 0; i < 100; ++i) watch.read(now += 1ms, facts);
  CHECK(world.looks == 1);
  for (int i = 0; i < 1000; ++i) {
    world.link.is_running = i % 2 != 0;
    watch.read(now += 1ms, facts);
  }
  CHECK(world.looks <= 1 + 1 + 1000ms / LinkWatch::look_period);
  CHECK(world.looks >= 1000ms / LinkWatch::look_period);
}

TEST_CASE("loopback has the host's counters and says why it has nothing else",
          "[control][link][watch]") {
  auto watch = LinkWatch::open({.ifindex = static_cast<int>(::if_nametoindex("lo"))});
  REQUIRE(watch);
  CHECK(watch.value().name() == "softnet");
  for (const FoundSource& found : watch.value().found())
    CHECK((found.source != nullptr) == found.reason.empty());
  law::LinkFacts facts;
  watch.value().read(monotonic_now(), facts);
  CHECK(facts.host);
  CHECK_FALSE(facts.phy_rate);
  CHECK_FALSE(facts.exact_queue);
  CHECK(facts.medium == law::Medium::unknown);
}

TEST_CASE("softnet lines are summed over CPUs, and anything else is refused",
          "[control][link][softnet]") {
  const auto parse = [](const char* text) {
    std::istringstream lines{text};
    return parse_softnet(lines);
  };
  const auto two =
      parse("00000010 00000002 0000000a 00000000 0 0\n00000020 00000003 00000001 00000000 0 0\n");
  REQUIRE(two);
  CHECK(two->dropped_total == 5);
  CHECK(two->squeezed_total == 11);
  CHECK_FALSE(parse(""));
  CHECK_FALSE(parse("00000010 00000002\n"));
  CHECK_FALSE(parse("hello world again\n"));
  CHECK_FALSE(parse("00000010 00000002 xyz\n"));
  CHECK_FALSE(parse("00000010 00000002 123456789abc\n"));
}

TEST_CASE("softnet is read anew each time", "[control][link][softnet]") {
  const SysFolder folder;
  folder.write("stat", "00000010 00000002 00000003 0\n");
  auto source = SoftnetSource::open((folder.path + "/stat").c_str());
  REQUIRE(source);
  law::LinkFacts facts;
  source.value().read(Instant{1s}, facts);
  REQUIRE(facts.host);
  CHECK(facts.host->value.dropped_total == 2);
  folder.write("stat", "00000010 0000000f 00000003 0\n");
  source.value().read(Instant{2s}, facts);
  CHECK(facts.host->value.dropped_total == 15);
  folder.write("stat", "nothing\n");
  source.value().read(Instant{3s}, facts);
  CHECK(source.value().error());
  CHECK(facts.host->at == Instant{2s});
}

TEST_CASE("byte queue limits are summed over queues and need the right /sys",
          "[control][link][wired]") {
  const SysFolder sys;
  const Interface link{.ifindex = 7, .name = "eth0"};
  CHECK_FALSE(ByteQueueLimits::open(link, sys.path));
  sys.write("class/net/eth0/ifindex", "7\n");
  const auto none = ByteQueueLimits::open(link, sys.path);
  REQUIRE_FALSE(none);
  CHECK(none.error().cause == "its driver has none");
  sys.write("class/net/eth0/queues/tx-0/byte_queue_limits/inflight", "3028\n");
  sys.write("class/net/eth0/queues/tx-1/byte_queue_limits/inflight", "1514\n");
  const auto limits = ByteQueueLimits::open(link, sys.path);
  REQUIRE(limits);
  CHECK(limits.value().inflight() == Bytes{4542});
  sys.write("class/net/eth0/queues/tx-1/byte_queue_limits/inflight", "");
  CHECK_FALSE(limits.value().inflight());
  sys.write("class/net/eth0/ifindex", "8\n");
  const auto foreign = ByteQueueLimits::open(link, sys.path);
  REQUIRE_FALSE(foreign);
  CHECK(foreign.error().cause == "/sys shows another network namespace");
}

TEST_CASE("qdisc and ring together are one queue whose drained total never goes back",
          "[control][link][wired]") {
  const QueueTelemetry qdisc{.at = Instant{5s},
                             .occupancy = kib(100),
                             .drained_total = mib(10),
                             .capacity = mib(1),
                             .refused_total = 2};
  const law::QueueReading queue = exact_wired_queue(qdisc, kib(4), mib(9));
  CHECK(queue.queue.occupancy == kib(104));
  CHECK(queue.queue.drained_total == mib(10) - kib(4));
  CHECK(queue.queue.refused_total == 2);
  CHECK(queue.sensor == law::QueueSensor::ring);
  CHECK(exact_wired_queue(qdisc, mib(2), mib(9)).queue.drained_total == mib(9));
}

}  // namespace onehop::link
