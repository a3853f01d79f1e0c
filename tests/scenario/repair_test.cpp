// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Eager and lazy repair beside each other, in virtual time. Each case plays many seeds; the seed of
// a failure is printed.
#include <cmath>
#include <random>

#include "tests/scenario/scenarios.hpp"

namespace onehop::scenario {
namespace {

constexpr BytesPerSecond link_rate = mbit_per_s(600);
constexpr std::size_t frame_body_bytes = 1472 - 48;

WorldConfig world_of(std::uint64_t seed, std::uint64_t bytes, bool is_lazy) {
  WorldConfig config = scenario::world_of(seed, bytes, link_rate);
  config.is_repair_lazy = is_lazy;
  return config;
}

}  // namespace

//= [FWP] throughput is linear in 1 - p  type=test
// Goal:   at any independent loss the link carries what can arrive, however repair is done.
// Bounds: 95 % of (1 - p) x the link's rate of file bytes in full frames. Measured: 99.7 % and more
// up to 20 %; at 40 % eager
//         99.6, lazy 97.6 to 99.6. What is missing is the start and the last rounds, each a round
//         trip with ever less to send.
TEST_CASE("goodput is (1 - p) of the line rate under eager and lazy repair", "[scenario][repair]") {
  const bool is_lazy = GENERATE(false, true);
  const std::uint32_t loss_permille = GENERATE(1U, 10U, 50U, 100U, 200U, 400U);
  for (std::uint64_t seed = 1; seed <= (loss_permille == 400 ? 3 : 1); ++seed) {
    CAPTURE(seed, is_lazy, loss_permille);
    WorldConfig config = world_of(seed, 200'000'000, is_lazy);
    config.forward.loss_ppm = loss_permille * 1000;
    World world{config};
    world.start();
    world.run(60s);
    check_whole(world);
    const Outcome& outcome = world.outcome();
    const BytesPerSecond goodput =
        Bytes{200'000'000} / (outcome.finished_at - outcome.first_data_at);
    const auto payload = static_cast<std::int64_t>(world.sender().frame_payload_bytes());
    const std::int64_t ceiling = link_rate.count * payload / 1514 * (1000 - loss_permille) / 1000;
    CAPTURE(goodput.count, ceiling, world.receiver().totals().lists,
            world.sender().totals().probes);
    CHECK(goodput.count >= ceiling * 95 / 100);
  }
}

//= [FWP] loss discrimination  type=test
// Goal:   a law behind the loss mask, as the program makes it for lazy repair, does not take random
// loss for an overload. Method: independent loss from the first frame on, which the path has
// whatever the rate. Bounds: 95 % of (1 - p) x the link's rate, as without the mask.
TEST_CASE("a masked law carries (1 - p) of the line rate at any random loss",
          "[scenario][repair]") {
  const std::uint32_t loss_permille = GENERATE(10U, 100U, 200U, 400U);
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    CAPTURE(seed, loss_permille);
    WorldConfig config = world_of(seed, 200'000'000, true);
    config.has_loss_mask = true;
    config.forward.loss_ppm = loss_permille * 1000;
    World world{config};
    world.start();
    world.run(60s);
    check_whole(world);
    const BytesPerSecond goodput =
        Bytes{200'000'000} / (world.outcome().finished_at - world.outcome().first_data_at);
    const auto payload = static_cast<std::int64_t>(world.sender().frame_payload_bytes());
    const std::int64_t ceiling = link_rate.count * payload / 1514 * (1000 - loss_permille) / 1000;
    CAPTURE(goodput.count, ceiling, world.receiver().totals().lists,
            world.sender().totals().probes);
    CHECK(goodput.count >= ceiling * 95 / 100);
  }
}

//= [FWP] rounds = ln(packets) / ln(1 / p) + 1  type=test
// Goal:   one window is repaired in as many rounds as independent losses need, the first copies
// being one. Method: a file that is one window (11.9 MB), 24 seeds, the mean. The largest of n
// geometric counts has a mean of
//         ln(n)/ln(1/p) + 0.58/ln(1/p) + 1/2.
// Bounds: within 2 rounds of the expectation: the request or the list of a round may be lost, and
// is then sent again.
TEST_CASE("a lazy window takes as many rounds as its losses need", "[scenario][repair]") {
  const double loss = GENERATE(0.01, 0.1, 0.4);
  constexpr std::uint64_t bytes = 11'900'000;
  double rounds = 0;
  for (std::uint64_t seed = 1; seed <= 24; ++seed) {
    CAPTURE(seed, loss);
    WorldConfig config = world_of(seed, bytes, true);
    config.forward.loss_ppm = static_cast<std::uint32_t>(loss * 1e6);
    World world{config};
    world.start();
    world.run(20s);
    check_whole(world);
    rounds += static_cast<double>(1 + world.receiver().totals().lists) / 24;
  }
  const double expected =
      std::log(static_cast<double>(bytes) / frame_body_bytes) / std::log(1 / loss) + 1;
  CAPTURE(loss, rounds, expected);
  CHECK(std::abs(rounds - expected) <= 2.0);
}

// Goal:   under lazy repair a report names nothing between two lists, and nothing is sent twice
// that arrived. Bounds: five reports for each list: after a loss on an unknown medium one comes in
// each round trip, and a list takes several of them.
TEST_CASE("lazy repair sends counters between its lists", "[scenario][repair]") {
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    CAPTURE(seed);
    WorldConfig config = world_of(seed, 100'000'000, true);
    config.forward.loss_ppm = 10'000;
    World world{config};
    world.start();
    world.run(20s);
    check_whole(world);
    CHECK(world.receiver().totals().lists * 5 <= world.receiver().totals().reports);
    CHECK(world.receiver().totals().duplicate_bytes == 0);
    const double lost = static_cast<double>(world.sender().totals().packets_lost);
    CHECK(lost / static_cast<double>(world.sender().totals().packets_sent) ==
          Approx(0.01).margin(0.002));
  }
}

// Goal:   lazy repair ends whole where requests, lists, buffers and blocks are few, late, lost or
// reordered.
TEST_CASE("N11 drawn worlds end whole under lazy repair", "[scenario][repair]") {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 draw{seed};
    WorldConfig config = world_of(seed, 0, true);
    config.file_sizes.clear();
    const std::uint64_t files = 1 + draw() % 4;
    for (std::uint64_t i = 0; i < files; ++i) config.file_sizes.push_back(draw() % 2'000'000);
    for (VirtualLinkConfig* way : {&config.forward, &config.backward}) {
      way->rate = mbit_per_s(static_cast<std::int64_t>(5 + draw() % 2000));
      way->delay = Nanos{static_cast<Nanos::rep>(draw() % 20'000'000)};
      way->loss_ppm = static_cast<std::uint32_t>(draw() % 400'000);
      way->reorder_ppm = static_cast<std::uint32_t>(draw() % 20'000);
      way->duplicate_ppm = static_cast<std::uint32_t>(draw() % 20'000);
    }
    config.forward.queue_capacity = Bytes{static_cast<std::int64_t>(60'000 + draw() % 2'000'000)};
    config.forward.is_drop_tail = draw() % 2 == 0;
    config.forward.ring_frames = 256 + draw() % 4096;
    config.receiver_slots = 4 + draw() % 64;
    config.sender_slots = 4 + draw() % 64;
    World world{config};
    world.start();
    world.run(120s);
    check_whole(world);
  }
}

// Goal:   a link that is blocked for seconds in the middle of a window, either way, is used again
// afterwards.
TEST_CASE("N11 a blackhole within a lazy window is survived", "[scenario][repair]") {
  const auto way = GENERATE(0U, 1U);
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    CAPTURE(seed, way);
    WorldConfig config = world_of(seed, 30'000'000, true);
    config.forward.loss_ppm = 20'000;
    World world{config};
    world.start();
    world.run(150ms);
    world.link().config(way).loss_ppm = 1'000'000;
    world.run(8s);
    REQUIRE_FALSE(world.outcome().has_failed);
    world.link().config(way).loss_ppm = 20'000;
    world.run(30s);
    check_whole(world);
  }
}

// Goal:   a disk that stalls under lazy repair stops the sender by credit and loses nothing.
TEST_CASE("a stalled disk under lazy repair stops the sender by credit", "[scenario][repair]") {
  for (std::uint64_t seed = 1; seed <= 2; ++seed) {
    CAPTURE(seed);
    WorldConfig config = world_of(seed, 90'000'000, true);
    config.forward.loss_ppm = 10'000;
    config.disk_rate = mbit_per_s(300);
    World world{config};
    world.start();
    world.run(1s);
    world.stall_disk_until(world.now() + 5s);
    world.run(30s);
    check_whole(world);
    CHECK(world.receiver().totals().no_room == 0);
  }
}

}  // namespace onehop::scenario
