// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// What the loops answer, and what they count of frames that they do not take.
#include <catch2/catch.hpp>

#include "tests/engine/run/loop_bench.hpp"

using namespace onehop;
using namespace onehop::run;

TEST_CASE("a request for what is missing leaves with the PONG of the same turn, once") {
  VirtualLink link{{.seed = 3}};
  VirtualPort port{link, 0};
  Side side;
  const auto loop =
      std::make_unique<SenderLoop<VirtualPort>>(port, keys_of(true), sender_config(), side.links());
  RawPeer peer{link, 1, keys_of(false)};
  side.grant.store({.rate = mbit_per_s(100), .backlog_max = kib(64), .nack_request_id = 1});
  Instant now{1s};
  for (const std::uint64_t number : {1U, 2U}) {
    peer.send(now, peer.sealed(
                       {.type = wire::FrameType::ping, .packet_number = number, .settled = number},
                       std::array<std::byte, wire::ping_body_bytes_min>{}));
    link.run_until(now += 1ms);
    (void)loop->turn(now);
    link.run_until(now += 1ms);
    const auto frames = peer.take();
    REQUIRE(frames.size() == 1);
    const auto header = wire::decode_header(frames[0]);
    REQUIRE(header);
    CHECK(header->type == wire::FrameType::pong);
    CHECK(header->is_nack_requested == (number == 1));
  }
}

// Goal:   a PING that waits at the sender, because its link is down, is no round trip.
// Method: the sender's link is down for 5 s, the receiver's is not; the largest srtt that the
//         receiver has in the 100 ms after it.
// Bounds: the path takes less than 3 ms with its queue. With the wait in it, it was 57 ms.
TEST_CASE("what a PING waits at a sender that cannot answer is no round trip") {
  Pair pair{{80'000'000}};
  for (Side* side : {&pair.sender_side, &pair.receiver_side})
    side->command(CommandKind::prove_path);
  pair.start();
  for (int i = 0; i < 1000; ++i) pair.step();
  REQUIRE(pair.receiver_side.report.load().srtt > 0ns);
  const auto set_up = [&](bool is_up) {
    REQUIRE(pair.sender_side.commands.push(
        {.kind = CommandKind::path_update,
         .path = {.mtu_bytes = 1500, .is_link_up = is_up, .has_neighbour = true}}));
  };
  set_up(false);
  for (int i = 0; i < 50'000; ++i) pair.step();
  set_up(true);
  Nanos srtt_max{0};
  for (int i = 0; i < 1000; ++i) {
    pair.step();
    srtt_max = std::max(srtt_max, pair.receiver_side.report.load().srtt);
  }
  CHECK(srtt_max < 5ms);
}

TEST_CASE("a range that was cut anew and has arrived in part is no malformed frame") {
  VirtualLink link{{.seed = 3}};
  VirtualPort port{link, 1};
  Side side;
  const std::array<std::uint64_t, 1> sizes{10'000};
  const auto loop = std::make_unique<ReceiverLoop<VirtualPort>>(
      port, keys_of(false), receiver_config(sizes), side.links());
  RawPeer peer{link, 0, keys_of(true)};
  std::vector<std::byte> memory(block_bytes);
  REQUIRE(side.from_file.push({.data = memory.data(), .slot = 0}));
  Instant now{1s};
  for (const std::uint64_t number : {1U, 2U}) {
    peer.send(now, peer.sealed({.packet_number = number, .offset = (number - 1) * 500},
                               std::array<std::byte, 1000>{}));
    link.run_until(now += 1ms);
    (void)loop->turn(now);
  }
  CHECK(loop->receiver().totals().bytes_accepted == 1000);
  CHECK(loop->receiver().totals().no_room == 1);
  CHECK(side.report.load().app_buffer.refused_total == 1);
  CHECK(loop->counters().malformed_total == 0);
}
