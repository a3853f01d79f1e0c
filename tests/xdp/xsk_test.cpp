// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Goal:   libxdp's rings with our guards are right at every index, with a cached index that is
//         behind, and across the wrap of slots and of 32 bits.
// Method: plain memory; the test plays the kernel by moving the other side's index.
#include "xdp/xsk.hpp"

#include <array>
#include <deque>
#include <random>

#include <catch2/catch.hpp>

#include "tools/labs/world/plain_ring.hpp"

using namespace onehop::xdp;

namespace {

constexpr std::uint32_t size = 8;
const std::array<std::uint32_t, 4> starts = {0, 5, 0x7fffffffU, 0xfffffffaU};
using PlainRing = onehop::scenario::PlainRing<std::uint64_t>;

bool push(xsk_ring_prod& ring, std::uint64_t entry) {
  std::uint32_t index = 0;
  if (xsk_ring_prod__reserve(&ring, 1, &index) != 1) return false;
  *xsk_ring_prod__fill_addr(&ring, index) = entry;
  return true;
}

}  // namespace

TEST_CASE("producer ring: the kernel sees nothing before submit, and never more than a ring") {
  const auto start = GENERATE(from_range(starts));
  PlainRing plain{size, start};
  auto ring = plain.attach<xsk_ring_prod>();
  CHECK(unconsumed(ring) == 0);
  for (std::uint64_t i = 0; i < size; ++i) REQUIRE(push(ring, 100 + i));
  CHECK(plain.producer == start);
  CHECK_FALSE(push(ring, 1));
  xsk_ring_prod__submit(&ring, size);
  CHECK(plain.producer == start + size);
  CHECK(unconsumed(ring) == size);
  for (std::uint32_t i = 0; i < size; ++i) CHECK(plain.at(start + i) == 100 + i);
}

TEST_CASE("producer ring: room that the cached index hides is found when it is needed") {
  const auto start = GENERATE(from_range(starts));
  PlainRing plain{size, start};
  auto ring = plain.attach<xsk_ring_prod>();
  for (std::uint64_t i = 0; i < size; ++i) REQUIRE(push(ring, i));
  xsk_ring_prod__submit(&ring, size);
  plain.consumer = start + 3;
  for (std::uint64_t i = 0; i < 3; ++i) CHECK(push(ring, 50 + i));
  CHECK_FALSE(push(ring, 99));
  CHECK(plain.at(start + 8) == 50);  // the slots of the three that were taken
  CHECK(plain.at(start + 10) == 52);
  CHECK(plain.at(start + 3) == 3);  // and no other
  CHECK(unconsumed(ring) == size);
  plain.consumer = start + 7;
  CHECK(unconsumed(ring) == 4);
}

TEST_CASE("consumer ring: peek shows all that is there, though older entries are left") {
  const auto start = GENERATE(from_range(starts));
  PlainRing plain{size, start};
  auto ring = plain.attach<xsk_ring_cons>();
  std::uint32_t first = 0;
  CHECK(peek(ring, 4, first) == 0);
  for (std::uint32_t i = 0; i < 8; ++i) plain.at(start + i) = 10 + i;
  plain.producer = start + 6;
  CHECK(waiting(ring) == 6);
  REQUIRE(peek(ring, 4, first) == 4);
  for (std::uint32_t i = 0; i < 4; ++i)
    CHECK(*xsk_ring_cons__comp_addr(&ring, first + i) == 10 + i);
  CHECK(plain.consumer == start);
  xsk_ring_cons__cancel(&ring, 1);
  xsk_ring_cons__release(&ring, 3);
  CHECK(plain.consumer == start + 3);
  plain.producer = start + 8;
  REQUIRE(peek(ring, 64, first) == 5);  // libxdp alone: the three that it knew of
  CHECK(*xsk_ring_cons__comp_addr(&ring, first) == 13);
  xsk_ring_cons__release(&ring, 5);
  CHECK(waiting(ring) == 0);
  CHECK(peek(ring, 1, first) == 0);
}

// Goal: the guard for indices that xsk_umem__create() leaves as they were.
TEST_CASE("read_indices replaces whatever the cached indices were") {
  PlainRing plain{size, 41};
  plain.producer = 44;
  plain.at(41) = 7;
  auto consumer = plain.attach<xsk_ring_cons>();
  consumer.cached_prod = consumer.cached_cons = 0x5a5a5a5aU;
  read_indices(consumer);
  std::uint32_t first = 0;
  REQUIRE(peek(consumer, 8, first) == 3);
  CHECK(*xsk_ring_cons__comp_addr(&consumer, first) == 7);
  auto producer = plain.attach<xsk_ring_prod>();
  producer.cached_prod = producer.cached_cons = 0x5a5a5a5aU;
  read_indices(producer);
  CHECK(unconsumed(producer) == 3);
}

TEST_CASE("the wake-up flag is read anew each time") {
  PlainRing plain{size, 0};
  const auto ring = plain.attach<xsk_ring_prod>();
  CHECK(xsk_ring_prod__needs_wakeup(&ring) == 0);
  plain.flags = XDP_RING_NEED_WAKEUP;
  CHECK(xsk_ring_prod__needs_wakeup(&ring) != 0);
  plain.flags = 0;
  CHECK(xsk_ring_prod__needs_wakeup(&ring) == 0);
}

TEST_CASE("a queue that is busy is waited for, any other error is not") {
  int calls = 0;
  const auto after_three = [&] { return ++calls < 3 ? -EBUSY : 0; };
  CHECK(wait_while_busy(after_three) == 0);
  CHECK(calls == 3);
  calls = 0;
  const auto unsupported = [&] { return ++calls < 3 ? -EOPNOTSUPP : 0; };
  CHECK(wait_while_busy(unsupported) == -EOPNOTSUPP);
  CHECK(calls == 1);
}

TEST_CASE("both ends on one memory keep order over many wraps of the 32-bit index") {
  const auto seed = GENERATE(range(1U, 20U));
  CAPTURE(seed);
  PlainRing plain{size, 0xffffff00U};
  auto in = plain.attach<xsk_ring_prod>();
  auto out = plain.attach<xsk_ring_cons>();
  std::mt19937 engine{seed};
  const auto random = [&] { return static_cast<std::uint32_t>(engine()); };
  std::deque<std::uint64_t> model;
  std::uint64_t next = 0;
  std::uint32_t published = 0, reserved = 0;
  for (int step = 0; step < 4000; ++step) {
    for (std::uint32_t n = random() % 5; n > 0; --n) {
      const bool is_taken = push(in, next);
      REQUIRE(is_taken == (model.size() < size));
      if (!is_taken) continue;
      model.push_back(next++);
      ++reserved;
    }
    if (random() % 2 == 0) {
      xsk_ring_prod__submit(&in, reserved);
      published += std::exchange(reserved, 0U);
    }
    const std::uint32_t wanted = random() % 10;
    std::uint32_t first = 0;
    const std::uint32_t ready = peek(out, wanted, first);
    REQUIRE(ready == std::min(wanted, published));
    for (std::uint32_t i = 0; i < ready; ++i)
      REQUIRE(*xsk_ring_cons__comp_addr(&out, first + i) == model[i]);
    const std::uint32_t taken = ready == 0 ? 0 : random() % (ready + 1);
    xsk_ring_cons__cancel(&out, ready - taken);
    xsk_ring_cons__release(&out, taken);
    model.erase(model.begin(), model.begin() + taken);
    published -= taken;
  }
  CHECK(next > 2000);
  CHECK(plain.producer < 0xffffff00U);  // the index did wrap
}
