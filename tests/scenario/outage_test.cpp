// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// A link that goes and comes back in the middle of a transfer, in virtual time, under every law and
// over both kinds of port.
//
//   ──full rate──┤ away 0.1 .. 5 s ├── 0.2 s ──├── judged: 0.5 s ──├─ a while ─┤ away ├─ ...
//
// ONEHOP_SEEDS multiplies the seeds (default 1), ONEHOP_SEED plays one seed alone. The seed of a
// failure is printed.
#include <random>
#include <string>

#include "tests/scenario/scenarios.hpp"

namespace onehop::scenario {
namespace {

constexpr BytesPerSecond link_rate = mbit_per_s(300);
constexpr Nanos settled = 200ms, judged = 500ms;

/// Away is what becomes of the link.
enum class Away : std::uint8_t {
  down,       ///< the interface: what stood in its queue is gone, and what is sent is refused
  stalled,    ///< nothing leaves the queue
  swallowed,  ///< everything leaves the queue, and nothing arrives, either way
};

/// QueueFacts tells what a driver would that knows its queue and its rate.
class QueueFacts final : public link::FactSource {
 public:
  explicit QueueFacts(VirtualLink& link) : link_{link} {}
  [[nodiscard]] std::string_view name() const noexcept override { return "virtual-queue"; }
  void read(Instant now, law::LinkFacts& facts) override {
    facts.medium = law::Medium::wired;
    facts.exact_queue = {
        {.queue = link_.lower_queue(0), .sensor = law::QueueSensor::ring}, now, 20ms};
    facts.phy_rate = {link_rate, now, 20ms};
  }

 private:
  VirtualLink& link_;
};

struct Play {
  std::string law;
  bool has_qcut = false, has_rings = false, has_facts = false;
};

void set_away(World& world, Away away, bool is_away) {
  for (const std::size_t way : {std::size_t{0}, std::size_t{1}}) {
    if (away == Away::stalled) world.link().set_rate(way, is_away ? BytesPerSecond{} : link_rate);
    if (away == Away::swallowed) world.link().config(way).loss_ppm = is_away ? 1'000'000 : 0;
  }
  if (away != Away::down) return;
  world.link().set_up(!is_away);
  for (const std::size_t way : {std::size_t{0}, std::size_t{1}})
    world.link().take_opportunity(way, world.link().waiting(way));
}

/// rate_over plays `span` and returns the file bytes per second that arrived in it.
double rate_over(World& world, Nanos span) {
  const std::uint64_t before = world.receiver().totals().bytes_accepted;
  world.run(span);
  return static_cast<double>(world.receiver().totals().bytes_accepted - before) * 1e9 /
         static_cast<double>(span.count());
}

void play(const Play& p, Away away, std::uint64_t seed, int rounds) {
  std::mt19937_64 random{seed};
  WorldConfig config = world_of(seed, std::uint64_t{1} << 40, link_rate);
  config.law = p.law;
  config.has_qcut = p.has_qcut;
  config.tick = 0ns;
  if (p.has_rings) config.rings = RingShape{.tx_frames = 1024, .rx_frames = 4096};
  World world{config};
  QueueFacts facts{world.link()};
  if (p.has_facts) world.set_source(&facts);
  world.start();
  world.run(500ms);
  const double full = rate_over(world, 500ms);
  CHECK(full >= 0.85 * static_cast<double>(link_rate.count));
  for (int round = 0; round < rounds; ++round) {
    const Nanos span{100'000'000 + static_cast<Nanos::rep>(random() % 4'900'000'000)};
    CAPTURE(p.law, p.has_qcut, p.has_rings, p.has_facts, static_cast<int>(away), seed, round,
            span.count());
    set_away(world, away, true);
    world.run(span);
    set_away(world, away, false);
    world.run(settled);
    const double after = rate_over(world, judged);
    const law::BufferRow& own = world.law().trace().buffers[0];
    CAPTURE(full, after, world.grant().rate.count, world.grant().backlog_max.count,
            world.sender().srtt().count(), own.drain.count, own.target.count);
    REQUIRE_FALSE(world.outcome().has_failed);
    CHECK(after >= 0.95 * full);
    world.run(Nanos{static_cast<Nanos::rep>(random() % 500'000'000)});
  }
  CHECK(world.outcome().bytes_wrong == 0);
}

}  // namespace

// Goal:   whatever an outage did to what the program remembers, the full rate is back soon after
// it. Method: three outages of 0.1 to 5 s per seed; the rate over half a second, beginning 0.2 s
// after each return, against the rate
//         before the first one.
// Bounds: 95 %.
TEST_CASE("the full rate is back 0.2 s after an outage under every law", "[scenario][outage]") {
  const auto away = GENERATE(Away::down, Away::stalled, Away::swallowed);
  const bool has_rings = GENERATE(false, true);
  const auto p = GENERATE(table<std::string, bool, bool>({{"auto", false, false},
                                                          {"auto", false, true},
                                                          {"safe-range", false, false},
                                                          {"wdtcp", false, false},
                                                          {"wdtcp", false, true},
                                                          {"cupid", false, false},
                                                          {"auto", true, true},
                                                          {"safe-range", true, false},
                                                          {"fixed:280Mbit", false, false}}));
  for (const std::uint64_t seed : seeds(1))
    play({.law = std::get<0>(p),
          .has_qcut = std::get<1>(p),
          .has_rings = has_rings,
          .has_facts = std::get<2>(p)},
         away, seed, 3);
}

}  // namespace onehop::scenario
