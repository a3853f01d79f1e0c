// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Sender and Receiver back to back: whatever the link does, every byte arrives, once, in bounded
// memory.
#include <catch2/catch.hpp>
#include <cstdlib>

#include "tests/engine/protocol/lossy_link.hpp"

using namespace onehop;
using namespace onehop::protocol;

namespace {
/// finish plays until the transfer is done, at most `steps`.
bool finish(LossyLink& link, int steps) {
  for (int i = 0; i < steps && !link.is_done() && link.violation == wire::Violation::none; ++i)
    link.step();
  return link.is_done();
}
}  // namespace

TEST_CASE("N1 N9 N11 bytes are equal through loss, reordering, duplication and MTU changes") {
  const auto seed = GENERATE(range(std::uint64_t{1}, std::uint64_t{13}));
  CAPTURE(seed);
  LossyLink link{{.seed = seed,
                  .sizes = {3'000'000, 0, 1, 262'144, 700'001, 0, 17},
                  .loss = 0.2,
                  .feedback_loss = 0.2,
                  .duplicate = 0.05,
                  .reorder = 0.1,
                  .frames_per_step = 4}};
  int changes = 0;
  for (int i = 0; i < 400'000 && !link.is_done() && link.violation == wire::Violation::none; ++i) {
    if (i % 100 == 0) {
      ++changes;
      link.mtu_body =
          300 + link.random() % 1200;  // the link changes first, the sender learns of it later
    } else if (i % 100 == 20) {
      link.sender.set_body_max(std::min<std::size_t>(link.mtu_body, 1428));
    }
    link.step();
  }
  CHECK(link.violation == wire::Violation::none);
  REQUIRE(link.is_done());
  CHECK(changes >= 8);
  CHECK(link.wrong_bytes == 0);
  CHECK(link.blocks_checked == 12 + 1 + 1 + 1 + 3 + 1 + 1);
  CHECK(link.receiver.totals().bytes_accepted == 3'000'000 + 1 + 262'144 + 700'001 + 17);
}

TEST_CASE("N11 loss of 40 % in both directions converges") {
  const auto seed = GENERATE(range(std::uint64_t{1}, std::uint64_t{5}));
  CAPTURE(seed);
  LossyLink link{{.seed = seed, .sizes = {5'000'000}, .loss = 0.4, .feedback_loss = 0.4}};
  REQUIRE(finish(link, 300'000));
  CHECK(link.violation == wire::Violation::none);
  CHECK(link.wrong_bytes == 0);
}

TEST_CASE("N11 a blackhole in the middle, one way or both, is survived") {
  const bool is_forward_dead = GENERATE(true, false);
  const bool is_backward_dead = GENERATE(true, false);
  const std::size_t in_flight_max = GENERATE(std::size_t{1024}, std::size_t{65'536});
  CAPTURE(is_forward_dead, is_backward_dead, in_flight_max);
  LossyLink link{{.seed = 3, .sizes = {4'000'000}, .in_flight_max = in_flight_max}};
  for (int i = 0; i < 50; ++i) link.step();
  CHECK_FALSE(link.is_done());
  if (is_forward_dead) link.config.loss = 1;
  if (is_backward_dead) link.config.feedback_loss = 1;
  const std::uint64_t frames_before = link.frames;
  for (int i = 0; i < 200'000; ++i) link.step();  // 20 s
  if (is_forward_dead && is_backward_dead)
    CHECK(link.frames - frames_before < 5000);  // the window, then probes and pings
  link.config.loss = link.config.feedback_loss = 0;
  CHECK(finish(link, 60'000));
  CHECK(link.wrong_bytes == 0);
  CHECK(link.violation == wire::Violation::none);
}

TEST_CASE("T2 a transfer across packet number 2^32 arrives") {
  LossyLink link{{.seed = 9,
                  .sizes = {3'000'000},
                  .loss = 0.05,
                  .reorder = 0.05,
                  .first_packet_number = (std::uint64_t{1} << 32) - 1000}};
  REQUIRE(finish(link, 100'000));
  CHECK(link.wrong_bytes == 0);
  CHECK(link.violation == wire::Violation::none);
}

TEST_CASE("many small files never ask for more buffers than there are") {
  std::vector<std::uint64_t> sizes;
  for (std::uint64_t i = 0; i < 400; ++i) sizes.push_back(i * 37 % 3000);
  LossyLink link{{.seed = 5, .sizes = sizes, .loss = 0.02, .slots = 8}};
  REQUIRE(finish(link, 200'000));
  CHECK(link.wrong_bytes == 0);
  CHECK(link.receiver.totals().no_room == 0);
  CHECK(link.freed <= 400);
}

TEST_CASE("frames so small that a block has more gaps than are remembered still complete it") {
  LossyLink link{{.seed = 11, .sizes = {1'500'000}, .loss = 0.5, .body_max = 256, .slots = 8}};
  REQUIRE(finish(link, 400'000));
  CHECK(link.wrong_bytes == 0);
}

TEST_CASE("millions of frames at 5 % loss: both gap lists hold no more than two srtt of packets") {
  // ONEHOP_LONG=1 plays ten million. The volume differs, the bound does not.
  const std::uint64_t frames = std::getenv("ONEHOP_LONG") != nullptr ? 10'000'000 : 2'000'000;
  LossyLink link{{.seed = 2,
                  .sizes = {frames * 1425},
                  .loss = 0.05,
                  .delay = 4ms,
                  .frames_per_step = 20,
                  .slots = 64,
                  .is_body_checked = false}};
  link.receiver.set_rx_ring(
      {.capacity = mib(64), .scope = QueueScope::own_ring});  // credit is not what bounds them
  REQUIRE(finish(link, static_cast<int>(frames / 20 * 4)));
  CHECK(link.violation == wire::Violation::none);
  CHECK(link.frames >= frames);
  const Nanos srtt = 2 * link.config.delay;
  const std::size_t bound =
      2 * static_cast<std::size_t>(srtt / link.config.step) * link.config.frames_per_step;
  CAPTURE(link.frames, link.in_flight_max, link.ranges_max, bound);
  CHECK(link.in_flight_max >
        bound / 4);  // the window was open: it is not the credit that kept the lists short
  CHECK(link.in_flight_max <= bound);
  CHECK(link.ranges_max <= bound / 8);  // a range is a loss, and one in twenty is lost
}
