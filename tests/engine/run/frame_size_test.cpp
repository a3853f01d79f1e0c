// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// How large a full frame is, when large ones are given up, and what the loop does then.
#include <catch2/catch.hpp>

#include <cmath>
#include <random>

#include "tests/engine/run/loop_bench.hpp"

using namespace onehop;
using namespace onehop::run;

namespace {

constexpr std::size_t single_bytes = 1472, datagram_bytes = 52'000;  // 36 fragments
constexpr double fragments = 36;

/// LargePort: a virtual port that has them.
class LargePort : public VirtualPort {
 public:
  using VirtualPort::VirtualPort;
  [[nodiscard]] std::size_t large_frame_bytes() const noexcept {
    return has_ended ? 0 : bench_frame_bytes;
  }
  void end_large_frames() noexcept { has_ended = true; }

  bool has_ended = false;
};

/// lost_until says after how many datagrams the loss is too high; 0: it never was.
std::uint64_t lost_until(double frame_loss, std::uint64_t seed) {
  FrameSize size{{.single_bytes = single_bytes, .large_bytes = datagram_bytes}};
  std::mt19937_64 random{seed};
  std::bernoulli_distribution is_lost{1 - std::pow(1 - frame_loss, fragments)};
  std::uint64_t sent = 0, lost = 0;
  // 1000 datagrams of 52 kB a second: 420 Mbit/s.
  for (Instant now{1s}; sent < 100'000; now += 1ms) {
    ++sent;
    lost += is_lost(random) ? 1 : 0;
    const bool is_over = size.follow_loss({now, sent, lost, 100ms});
    CHECK(size.bytes() == (is_over ? single_bytes : datagram_bytes));
    if (is_over) return sent;
  }
  return 0;
}

}  // namespace

//= [SMUFF] aggregation below 0.1 % loss  type=test
// Bounds: 0.1 % of frames is 3.5 % of datagrams of 36 fragments. A window of 100 datagrams scatters
//         by 2 %, its mean over 8 by 0.7: at 0.02 % no run of 100 s ends fragments, at 0.2 % each
//         does within 3 s.
TEST_CASE("fragments end above 0.1 % of frames lost and not far below", "[run][fragments]") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    CHECK(lost_until(0.0, seed) == 0);
    CHECK(lost_until(0.0002, seed) == 0);
    const std::uint64_t many = lost_until(0.002, seed);
    CHECK(many > 0);
    CHECK(many <= 3000);
  }
  // A reassembly memory that takes nothing: the first window tells.
  CHECK(lost_until(1.0, 1) <= 201);
}

TEST_CASE("a single frame follows the MTU, a large one does not", "[run][fragments]") {
  FrameSize plain{{.single_bytes = 1472, .ip_udp_bytes = 28}};
  CHECK(plain.bytes() == 1472);
  plain.follow_mtu(1300);
  CHECK(plain.bytes() == 1272);
  plain.follow_mtu(9000);
  CHECK(plain.bytes() == 1472);
  plain.follow_mtu(300);  // no usable path
  CHECK(plain.bytes() == 1472);
  CHECK_FALSE(plain.follow_loss({.at = Instant{1s}, .sent_total = 100, .lost_total = 100}));

  FrameSize size{
      {.single_bytes = 1472, .ip_udp_bytes = 28, .large_bytes = wire::datagram_bytes_max}};
  size.follow_mtu(1300);
  CHECK(size.bytes() == wire::datagram_bytes_max);
  REQUIRE(size.follow_loss({.at = Instant{1s}, .sent_total = 100, .lost_total = 100}));
  CHECK(size.bytes() == 1272);
  CHECK_FALSE(size.follow_loss({.at = Instant{2s}, .sent_total = 200, .lost_total = 200}));
}

// Goal:   the loop keeps its large frames over a clean path, and gives them up for good over a
//         lossy one; the file is whole.
// Method: a model of the scale: 1472 bytes stand for the datagram, 500 for the single frame.
TEST_CASE("the sender's loop goes back to single frames where the path loses", "[run][fragments]") {
  const bool is_lossy = GENERATE(false, true);
  PairOver<LargePort> pair{{4'000'000}, 1U << 12, {.loss_ppm = is_lossy ? 50'000U : 0U}};
  SenderLoopConfig config = sender_config();
  config.frame_bytes = 500;
  pair.sender = std::make_unique<SenderLoop<LargePort>>(pair.sender_port, keys_of(true), config,
                                                        pair.sender_side.links());
  pair.start();
  REQUIRE(pair.run_until_arrived());
  CHECK(pair.wrong_bytes == 0);
  CHECK(pair.checked_bytes == 4'000'000);
  const Bytes payload = pair.sender_side.report.load().payload_per_frame;
  CHECK((payload <= Bytes{500 - wire::overhead_bytes}) == is_lossy);
  CHECK(pair.sender_port.has_ended == is_lossy);
}
