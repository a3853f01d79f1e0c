// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// The scenario driver itself: time moves to what is due next, runs repeat, and an idle world is
// known to be idle.
#include <catch2/catch.hpp>

#include "tests/support/virtual_world.hpp"

namespace onehop::test {
namespace {

constexpr std::size_t frame_bytes = 958;  // 1000 on the wire

struct Outcome {
  std::size_t arrived = 0;
  std::size_t turns = 0;
  Instant done_at{};
  bool is_idle = false;
  auto operator<=>(const Outcome&) const = default;
};

// A sender that pushes `frames` whenever the queue takes them, a receiver that sleeps until a frame
// comes. The link stands still from 50 to 150 ms.
Outcome run(std::uint32_t loss_ppm) {
  VirtualLink::Options options;
  options.directions[0] = {
      .rate = mbit_per_s(80), .queue_capacity = kib(64), .delay = 1ms, .loss_ppm = loss_ppm};
  VirtualLink link{options};
  VirtualPort a{link, 0};
  VirtualPort b{link, 1};
  VirtualWorld world{link};
  Outcome outcome;
  std::size_t left = 1000;
  world.add([&](Instant now) {
    while (left > 0 && !a.lend(frame_bytes).empty()) {
      a.commit(frame_bytes);
      left -= 1;
    }
    const std::size_t held = a.flush(now);
    return left > 0 || held > 0 ? now + 1ms : Instant::max();
  });
  world.add(
      [&](Instant now) {
        std::array<RxFrame, rx_batch_max> views;
        while (const std::size_t count = b.receive(views)) {
          outcome.arrived += count;
          outcome.done_at = now;
          b.release();
        }
        outcome.turns += 1;
        (void)b.wait(Instant::max(), true);
        return Instant::max();
      },
      b);
  world.at(Instant{} + 50ms, [&] { link.set_rate(0, BytesPerSecond{0}); });
  world.at(Instant{} + 150ms, [&] { link.set_rate(0, mbit_per_s(80)); });
  outcome.is_idle = world.run_until(Instant{} + 10s);
  return outcome;
}

}  // namespace

// Bounds: exact; 1000 frames of 1000 bytes at 80 Mbit/s are 100 ms, plus 100 ms of standstill, plus
// the delay.
TEST_CASE("a world ends idle when all frames have arrived, at the exact time",
          "[scenario][world]") {
  const Outcome outcome = run(0);
  CHECK(outcome.arrived == 1000);
  CHECK(outcome.is_idle);
  CHECK(outcome.done_at == Instant{} + 201ms);
  CHECK(outcome.turns <= 1001);
}

TEST_CASE("a lossy world repeats from its seed", "[scenario][world]") {
  const Outcome outcome = run(100'000);
  CHECK(outcome.arrived < 950);
  CHECK(outcome == run(100'000));
}

TEST_CASE("a world stops at the end it is given", "[scenario][world]") {
  VirtualLink link{VirtualLink::Options{}};
  VirtualWorld world{link};
  std::size_t ticks = 0;
  world.add([&](Instant now) {
    ticks += 1;
    return now + 10ms;
  });
  CHECK_FALSE(world.run_until(Instant{} + 95ms));
  CHECK(world.now() == Instant{} + 95ms);
  CHECK(ticks == 10);
  CHECK(world.run_while([&] { return ticks < 20; }, Instant{} + 1s));
  CHECK(ticks == 20);
}

}  // namespace onehop::test
