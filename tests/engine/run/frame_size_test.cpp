// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// How large a full frame is, and when datagrams in fragments are given up.
#include <catch2/catch.hpp>

#include <random>

#include "tests/engine/run/loop_bench.hpp"

using namespace onehop;
using namespace onehop::run;

namespace {

/// lost_until says after how many datagrams of `fragments` each the loss is too high; 0: it never was.
std::uint64_t lost_until(std::size_t fragments, double frame_loss, std::uint64_t seed) {
  transfer::FragmentLoss watch{fragments};
  std::mt19937_64 random{seed};
  std::bernoulli_distribution is_lost{1 - std::pow(1 - frame_loss, static_cast<double>(fragments))};
  std::uint64_t sent = 0, lost = 0;
  for (Instant now{1s}; sent < 100'000; now += 1ms) {  // 1000 datagrams of 52 kB a second: 420 Mbit/s
    ++sent;
    lost += is_lost(random) ? 1 : 0;
    if (watch.step(now, sent, lost, 100ms)) return sent;
  }
  return 0;
}

}  // namespace

//= [SMUFF] aggregation below 0.1 % loss  type=test
// Bounds: 0.1 % of frames is 3.5 % of datagrams of 36 fragments. A window of 100 datagrams scatters by 2 %, its mean over 8 by
//         0.7: at 0.02 % no run of 100 s ends fragments, at 0.2 % each does within 3 s.
TEST_CASE("fragments end above 0.1 % of frames lost and not far below", "[run][fragments]") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    CHECK(lost_until(36, 0.0, seed) == 0);
    CHECK(lost_until(36, 0.0002, seed) == 0);
    const std::uint64_t many = lost_until(36, 0.002, seed);
    CHECK(many > 0);
    CHECK(many <= 3000);
  }
  CHECK(lost_until(36, 1.0, 1) <= 201);  // a reassembly memory that takes nothing: the first window tells
}

TEST_CASE("a single frame follows the MTU, a datagram in fragments does not", "[run][fragments]") {
  FrameSize plain{{.single_bytes = 1472, .ip_udp_bytes = 28}};
  CHECK(plain.bytes() == 1472);
  plain.follow_mtu(1300);
  CHECK(plain.bytes() == 1272);
  plain.follow_mtu(9000);
  CHECK(plain.bytes() == 1472);
  plain.follow_mtu(300);  // no usable path
  CHECK(plain.bytes() == 1472);
  CHECK_FALSE(plain.judge(Instant{1s}, 100, 100, 1ms));

  FrameSize size{{.single_bytes = 1472, .fragmented_bytes = wire::datagram_bytes_max, .ip_udp_bytes = 28}};
  size.follow_mtu(1300);
  CHECK(size.bytes() == wire::datagram_bytes_max);
  REQUIRE(size.judge(Instant{1s}, 100, 100, 1ms));
  CHECK_FALSE(size.has_fragments());
  CHECK(size.bytes() == 1272);
  CHECK_FALSE(size.judge(Instant{2s}, 200, 200, 1ms));  // told once
}

// Goal:   the loop keeps its large frames over a clean path, and gives them up for good over a lossy one; the file is whole.
// Method: a model of the scale: 1472 bytes stand for the datagram, 500 for the single frame.
TEST_CASE("the sender's loop goes back to single frames where the path loses", "[run][fragments]") {
  const bool is_lossy = GENERATE(false, true);
  Pair pair{{4'000'000}, 1U << 12, {.loss_ppm = is_lossy ? 50'000U : 0U}};
  SenderLoopConfig config = sender_config();
  config.frame_bytes = 500;
  config.fragmented_bytes = bench_frame_bytes;
  pair.sender = std::make_unique<SenderLoop<VirtualPort>>(pair.sender_port, keys_of(true), config, pair.sender_side.links());
  pair.start();
  REQUIRE(pair.run_until_arrived());
  CHECK(pair.wrong_bytes == 0);
  CHECK(pair.checked_bytes == 4'000'000);
  const Bytes payload = pair.sender_side.report.load().payload_per_frame;
  CHECK((payload <= Bytes{500 - wire::overhead_bytes}) == is_lossy);
}
