// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Goal:   a loop that goes over to another port keeps its keys, and never uses a packet number
//         twice; the queues that laws read go on.
// Method: the receiving loop over two virtual links, one after the other, and a peer that looks at
//         what leaves on each.
#include <catch2/catch.hpp>

#include <thread>

#include "engine/port/fallback_port.hpp"
#include "tests/engine/run/loop_bench.hpp"

using namespace onehop;
using namespace onehop::run;

namespace {

using TwoPorts = FallbackPort<VirtualPort, VirtualPort>;
static_assert(Port<TwoPorts>);

/// numbers_of are the packet numbers of what a peer sees; each frame opens with its keys.
std::vector<std::uint64_t> numbers_of(RawPeer& peer, PacketProtection& keys) {
  std::vector<std::uint64_t> numbers;
  for (const RawPeer::Frame& frame : peer.take()) {
    const auto header = wire::decode_header(frame);
    REQUIRE(header);
    DataPathCounters counters;
    CHECK(keys.open(*header, frame, keys.scratch().data(), counters));
    numbers.push_back(header->packet_number);
  }
  return numbers;
}

}  // namespace

TEST_CASE("K1 a loop that falls back to another port uses no packet number twice",
          "[run][threats]") {
  VirtualLink lost{{.seed = 1}}, good{{.seed = 2}};
  RawPeer at_lost{lost, 0, keys_of(true)}, at_good{good, 0, keys_of(true)};
  const auto keys = std::make_unique<PacketProtection>(keys_of(true));
  TwoPorts port{std::make_unique<VirtualPort>(lost, 1)};
  Side side;
  const auto loop = std::make_unique<ReceiverLoop<TwoPorts>>(port, keys_of(false),
                                                             receiver_config({}), side.links());
  Instant now{1s};
  const auto play = [&](Nanos span) {
    for (const Instant end = now + span; now < end; now += 10ms) {
      lost.run_until(now);
      good.run_until(now);
      (void)loop->turn(now);
    }
  };
  side.command(CommandKind::prove_path);
  play(2s);
  const auto before = numbers_of(at_lost, *keys);
  REQUIRE(before.size() > 10);
  const QueueTelemetry queue_before = port.tx_queue(now);

  CHECK_FALSE(port.has_fallen());
  port.offer(std::make_unique<VirtualPort>(good, 1));
  CHECK(port.has_fallen());
  std::thread other{[&] {  // as the session's thread does
    port.wait_taken(true);
    port.close_first();
  }};
  (void)loop->turn(now += 10ms);
  other.join();
  side.command(CommandKind::prove_path);
  play(1s);
  CHECK(at_lost.take().empty());
  const auto after = numbers_of(at_good, *keys);
  REQUIRE(after.size() > 5);
  CHECK(after.front() > before.back());
  CHECK(std::ranges::adjacent_find(after, std::greater_equal{}) == after.end());
  const QueueTelemetry queue = port.tx_queue(now);
  CHECK(queue.drained_total + queue.occupancy >=
        queue_before.drained_total + queue_before.occupancy);
}

TEST_CASE("a port that falls back before it has an engine is the other one at once", "[run]") {
  VirtualLink lost{{.seed = 1}}, good{{.seed = 2}};
  TwoPorts port{std::make_unique<VirtualPort>(lost, 1)};
  port.offer(std::make_unique<VirtualPort>(good, 1));
  port.wait_taken(false);
  port.close_first();
  RawPeer peer{good, 0, keys_of(true)};
  const auto slot = port.lend(100);
  REQUIRE(slot.size() == 100);
  port.commit(100);
  (void)port.flush(Instant{1s});
  good.run_until(Instant{2s});
  CHECK(peer.take().size() == 1);
}
