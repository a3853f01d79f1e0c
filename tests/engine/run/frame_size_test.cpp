// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// How large a full frame is, and what the loop does when a port ends its large frames.
#include <catch2/catch.hpp>

#include "tests/engine/run/loop_bench.hpp"

using namespace onehop;
using namespace onehop::run;

namespace {

/// LargePort: a virtual port that has them.
class LargePort : public VirtualPort {
 public:
  using VirtualPort::VirtualPort;
  [[nodiscard]] UdpFragments* large_frames() noexcept { return &large_; }

 private:
  UdpFragments large_{bench_frame_bytes, [] {}};
};

}  // namespace

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

  UdpFragments large{wire::datagram_bytes_max, [] {}};
  FrameSize size{{.single_bytes = 1472, .ip_udp_bytes = 28, .large = &large}};
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
}
