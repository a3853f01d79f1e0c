// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Whole transfers in virtual time. Each case plays many seeds; the seed of a failure is printed.
#include "tests/scenario/scenarios.hpp"

namespace onehop::scenario {
namespace {

constexpr BytesPerSecond link_rate = mbit_per_s(600);

WorldConfig world_of(std::uint64_t seed, std::uint64_t bytes) {
  return scenario::world_of(seed, bytes, link_rate);
}

/// File bytes per second from the first data frame until the last block was checked.
BytesPerSecond goodput(const World& world) {
  const Outcome& outcome = world.outcome();
  return Bytes{static_cast<std::int64_t>(outcome.bytes_checked)} /
         (outcome.finished_at - outcome.first_data_at);
}

/// The file bytes that a wire rate can carry in frames of 1472 bytes of UDP payload.
BytesPerSecond ceiling(BytesPerSecond wire) { return {wire.count * 1400 / 1514}; }

}  // namespace

// Goal:   a clean link is used to the full, and the lower queue stays where the law wants it.
// Bounds: 97 % of the ceiling; no frame lost, none sent twice.
TEST_CASE("a clean link is filled and nothing is sent twice", "[scenario]") {
  for (const std::uint64_t seed : seeds(3)) {
    CAPTURE(seed);
    World world{world_of(seed, 60'000'000)};
    world.start();
    world.run(10s);
    check_whole(world);
    CHECK(goodput(world).count >= ceiling(link_rate).count * 97 / 100);
    CHECK(world.sender().totals().retransmitted_bytes == 0);
    CHECK(world.lower_queue().refused_total == 0);
  }
}

// Goal:   a long way is proven from both ends, since each takes the answer to any of its PINGs, not
// only to the newest. Method: round-trip times of 120, 240 and 800 ms; a PING leaves every 50 ms
// until one is answered. Bounds: both ends know a round-trip time that is at least the link's and
// less than the link's plus what stands in queues.
TEST_CASE("a path of a long round-trip time is proven from both ends and used", "[scenario]") {
  const Nanos delay = GENERATE(60ms, 120ms, 400ms);
  for (const std::uint64_t seed : seeds(2)) {
    CAPTURE(seed, delay.count());
    WorldConfig config = world_of(seed, 20'000'000);
    config.forward.delay = config.backward.delay = delay;
    World world{config};
    world.start();
    world.run(delay * 2 + 60ms);
    REQUIRE_FALSE(world.outcome().has_failed);
    CHECK(world.outcome().first_data_at != Instant{});
    world.run(60s);
    check_whole(world);
    for (const Nanos srtt : {world.sender().srtt(), world.receiver_srtt()}) {
      CHECK(srtt >= delay * 2);
      CHECK(srtt <= delay * 2 + 30ms);
    }
  }
}

// Bounds: every byte arrives at any loss; up to 5 % the rate is 97 % of (1 - loss) x ceiling.
TEST_CASE("N11 repair converges at any random loss", "[scenario]") {
  const auto loss_percent = GENERATE(1U, 5U, 20U, 40U);
  for (const std::uint64_t seed : seeds(12)) {
    CAPTURE(seed, loss_percent);
    WorldConfig config = world_of(seed, loss_percent <= 5 ? 40'000'000 : 6'000'000);
    config.forward.loss_ppm = loss_percent * 10'000;
    config.backward.loss_ppm = loss_percent * 10'000;
    World world{config};
    world.start();
    world.run(60s);
    check_whole(world);
    if (loss_percent <= 5)
      CHECK(goodput(world).count >=
            ceiling(link_rate).count * (100 - loss_percent) / 100 * 95 / 100);
  }
}

TEST_CASE("N1 N2 bursts, reordering, duplication, corruption and truncation change no byte",
          "[scenario]") {
  for (const std::uint64_t seed : seeds(60)) {
    CAPTURE(seed);
    WorldConfig config = world_of(seed, 3'000'000);
    for (VirtualLinkConfig* way : {&config.forward, &config.backward}) {
      way->burst_enter_ppm = 200 + static_cast<std::uint32_t>(seed % 7) * 100;
      way->burst_leave_ppm = 50'000;
      way->reorder_ppm = 20'000;
      way->reorder_delay = 500us * static_cast<int>(1 + seed % 6);
      way->duplicate_ppm = 20'000;
      way->corrupt_ppm = 5'000;
      way->truncate_ppm = 2'000;
    }
    World world{config};
    world.start();
    world.run(60s);
    check_whole(world);
  }
}

// Goal:   a link that is blocked both ways for seconds is used again afterwards, and a block for
// good ends typed.
TEST_CASE("N11 a blackhole both ways and one way is survived, or ends in silence", "[scenario]") {
  const auto way = GENERATE(0, 1, 2);  // 2: both
  for (const std::uint64_t seed : seeds(4)) {
    CAPTURE(seed, way);
    World world{world_of(seed, 30'000'000)};
    world.start();
    world.run(150ms);
    const auto set_loss = [&](std::uint32_t ppm) {
      if (way != 1) world.link().config(0).loss_ppm = ppm;
      if (way != 0) world.link().config(1).loss_ppm = ppm;
    };
    set_loss(1'000'000);
    world.run(10s);
    REQUIRE_FALSE(world.outcome().has_failed);
    set_loss(0);
    world.run(30s);
    check_whole(world);
  }
  World world{world_of(1, 30'000'000)};
  world.start();
  world.run(150ms);
  if (way != 1) world.link().config(0).loss_ppm = 1'000'000;
  if (way != 0) world.link().config(1).loss_ppm = 1'000'000;
  world.run(60s);
  CHECK(world.outcome().has_failed);
  CHECK(world.outcome().failure == EventKind::feedback_silent);
}

// Goal:   the lower queue stops for 200 ms (8 kbit/s): nothing is refused, nothing is sent twice.
TEST_CASE("N11 a link that crawls for 200 ms costs no frame", "[scenario]") {
  for (const std::uint64_t seed : seeds(4)) {
    CAPTURE(seed);
    World world{world_of(seed, 60'000'000)};
    world.start();
    world.run(300ms);
    world.link().set_rate(0, bit_per_s(8000));
    world.run(200ms);
    world.link().set_rate(0, link_rate);
    world.run(50ms);
    const Bytes before = world.lower_queue().drained_total;
    world.run(100ms);
    const Bytes after = world.lower_queue().drained_total;
    CHECK((after - before).count >= (link_rate * 100ms).count * 95 / 100);
    world.run(20s);
    check_whole(world);
    CHECK(world.sender().totals().retransmitted_bytes == 0);
    CHECK(world.lower_queue().refused_total == 0);
  }
}

// Goal:   a disk slower than the link is the bottleneck, and the receiver's buffers stay within
// their capacity.
TEST_CASE("a slow or stalled disk stops the sender by credit and loses nothing", "[scenario]") {
  for (const std::uint64_t seed : seeds(3)) {
    CAPTURE(seed);
    WorldConfig config = world_of(seed, 90'000'000);
    config.disk_rate = mbit_per_s(300);
    World world{config};
    world.start();
    world.run(1s);
    world.stall_disk_until(world.now() + 10s);
    world.run(9s);
    const QueueTelemetry buffer = world.receiver().app_buffer(world.now());
    CHECK(buffer.occupancy <= buffer.capacity);
    REQUIRE_FALSE(world.outcome().has_failed);
    world.run(30s);
    check_whole(world);
    CHECK(world.receiver().totals().no_room == 0);
    CHECK(world.sender().totals().retransmitted_bytes == 0);
    const Nanos busy = world.outcome().finished_at - world.outcome().first_data_at - 10s;
    CHECK((Bytes{90'000'000} / busy).count >= mbit_per_s(300).count * 97 / 100);
  }
}

TEST_CASE("T2 every counter wraps without a wrong byte", "[scenario]") {
  const auto first = GENERATE((std::uint64_t{1} << 32) - 500, (std::uint64_t{1} << 16) - 500,
                              (std::uint64_t{1} << 61) - 500);
  for (const std::uint64_t seed : seeds(3)) {
    CAPTURE(seed, first);
    WorldConfig config = world_of(seed, 8'000'000);
    config.first_packet_number = first;
    config.key_interval_packets = 256;
    config.forward.loss_ppm = config.backward.loss_ppm = 20'000;
    World world{config};
    world.start();
    world.run(20s);
    check_whole(world);
  }
}

TEST_CASE("C4 files of every awkward size arrive", "[scenario]") {
  for (const std::uint64_t seed : seeds(6)) {
    CAPTURE(seed);
    WorldConfig config = world_of(seed, 0);
    config.file_sizes = {
        0, 1, block_bytes - 1, block_bytes, block_bytes + 1, 0, 1425, 3 * block_bytes + 7, 0};
    config.forward.loss_ppm = config.backward.loss_ppm = 30'000;
    World world{config};
    world.start();
    world.run(20s);
    check_whole(world);
  }
}

// Goal:   a tree, of which the receiver learns volume by volume, is one file to the link; loss
// and
//         disorder between volumes change no byte.
// Bounds: 97 % of the ceiling on a clean link, as for one file.
TEST_CASE("C4 a tree of many volumes arrives at the rate of one file", "[scenario]") {
  const bool is_clean = GENERATE(true, false);
  for (const std::uint64_t seed : seeds(3)) {
    CAPTURE(seed, is_clean);
    std::mt19937_64 draw{seed};
    WorldConfig config = world_of(seed, 0);
    config.file_sizes.clear();
    config.volume_files = 16 + draw() % 64;
    for (std::uint64_t left = 40'000'000; left > 0;) {
      const bool is_pack = config.file_sizes.size() % config.volume_files == 0;
      const bool is_packed = !is_pack && draw() % 4 != 0;
      const std::uint64_t size = std::min<std::uint64_t>(left, draw() % 300'000);
      config.file_sizes.push_back(is_packed ? file_without_blocks : size);
      left -= is_packed ? 0 : size;
    }
    if (!is_clean) {
      config.forward.loss_ppm = config.backward.loss_ppm = 20'000;
      config.forward.reorder_ppm = 10'000;
      config.forward.reorder_delay = 3ms;
    }
    World world{config};
    world.start();
    world.run(20s);
    check_whole(world);
    CHECK(world.volumes_told() >= 10);
    if (is_clean) CHECK(goodput(world).count >= ceiling(link_rate).count * 97 / 100);
  }
}

// Goal:   a clock that stands still (two turns at the same now) breaks nothing; time is an
// argument.
TEST_CASE("T1 a clock that stands still is no harm", "[scenario]") {
  World world{world_of(7, 2'000'000)};
  world.start();
  for (int i = 0; i < 1000; ++i) world.run(0ns);
  world.run(10s);
  check_whole(world);
}

// Goal:   hundreds of mixed worlds: rate, delay, loss, queue and file sizes drawn from the seed.
TEST_CASE("N11 hundreds of drawn worlds end whole", "[scenario]") {
  for (const std::uint64_t seed : seeds(200)) {
    CAPTURE(seed);
    std::mt19937_64 draw{seed};
    WorldConfig config = world_of(seed, 0);
    config.file_sizes.clear();
    const std::uint64_t files = 1 + draw() % 4;
    for (std::uint64_t i = 0; i < files; ++i) config.file_sizes.push_back(draw() % 600'000);
    config.forward.rate = mbit_per_s(static_cast<std::int64_t>(5 + draw() % 2000));
    config.backward.rate = mbit_per_s(static_cast<std::int64_t>(5 + draw() % 2000));
    config.forward.delay = Nanos{static_cast<Nanos::rep>(draw() % 20'000'000)};
    config.backward.delay = Nanos{static_cast<Nanos::rep>(draw() % 20'000'000)};
    config.forward.loss_ppm = static_cast<std::uint32_t>(draw() % 300'000);
    config.backward.loss_ppm = static_cast<std::uint32_t>(draw() % 300'000);
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

}  // namespace onehop::scenario
