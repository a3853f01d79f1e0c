// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Goal:   the rings are right at every index, with a cache that is behind, and across the wrap of slots and of 32 bits.
// Method: plain memory; the test plays the kernel by moving the other side's index.
#include "xdp/xsk_ring.hpp"

#include <array>
#include <deque>
#include <random>

#include <catch2/catch.hpp>

#include "tests/xdp/plain_ring.hpp"

using namespace onehop::xdp;
using onehop::test::Plain;

namespace {

using PlainRing = Plain<std::uint64_t, 8>;

const std::array<std::uint32_t, 4> starts = {0, 5, 0x7fffffffU, 0xfffffffaU};

}  // namespace

TEST_CASE("producer ring: the kernel sees nothing before publish, and never more than a ring") {
  const auto start = GENERATE(from_range(starts));
  PlainRing plain{start};
  ProducerRing<std::uint64_t> ring{plain.memory()};
  for (std::uint64_t i = 0; i < PlainRing::size; ++i) REQUIRE(ring.push(100 + i));
  CHECK(plain.producer == start);
  CHECK_FALSE(ring.push(1));
  ring.publish();
  CHECK(plain.producer == start + PlainRing::size);
  CHECK(ring.unconsumed() == PlainRing::size);
  for (std::uint32_t i = 0; i < PlainRing::size; ++i) CHECK(plain.slot(start + i) == 100 + i);
}

TEST_CASE("producer ring: a stale cache of the consumer hides room until it is needed, then shows it") {
  const auto start = GENERATE(from_range(starts));
  PlainRing plain{start};
  ProducerRing<std::uint64_t> ring{plain.memory()};
  for (std::uint64_t i = 0; i < PlainRing::size; ++i) REQUIRE(ring.push(i));
  ring.publish();
  plain.consumer = start + 3;
  for (std::uint64_t i = 0; i < 3; ++i) CHECK(ring.push(50 + i));
  CHECK_FALSE(ring.push(99));
  CHECK(plain.slot(start + 8) == 50);  // the slots of the three that were taken
  CHECK(plain.slot(start + 10) == 52);
  CHECK(plain.slot(start + 3) == 3);   // and no other
  CHECK(ring.unconsumed() == PlainRing::size);
}

TEST_CASE("consumer ring: acquire shows what is there, release gives back what was taken") {
  const auto start = GENERATE(from_range(starts));
  PlainRing plain{start};
  ConsumerRing<std::uint64_t> ring{plain.memory()};
  CHECK(ring.acquire(4) == 0);
  for (std::uint32_t i = 0; i < 6; ++i) plain.slot(start + i) = 10 + i;
  plain.producer = start + 6;
  CHECK(ring.waiting() == 6);
  REQUIRE(ring.acquire(4) == 4);
  for (std::uint32_t i = 0; i < 4; ++i) CHECK(ring[i] == 10 + i);
  CHECK(plain.consumer == start);
  ring.release(3);
  CHECK(plain.consumer == start + 3);
  REQUIRE(ring.acquire(64) == 3);
  CHECK(ring[0] == 13);
  ring.release(3);
  CHECK(ring.waiting() == 0);
  CHECK(ring.acquire(1) == 0);
}

TEST_CASE("rings attach to indices that are already moving") {
  PlainRing plain{41};
  plain.producer = 44;
  plain.slot(41) = 7;
  ConsumerRing<std::uint64_t> consumer{plain.memory()};
  REQUIRE(consumer.acquire(8) == 3);
  CHECK(consumer[0] == 7);
  ProducerRing<std::uint64_t> producer{plain.memory()};
  CHECK(producer.unconsumed() == 3);
}

TEST_CASE("the wake-up flag is read anew each time") {
  PlainRing plain{0};
  ProducerRing<std::uint64_t> ring{plain.memory()};
  CHECK_FALSE(ring.needs_wakeup());
  plain.flags = XDP_RING_NEED_WAKEUP;
  CHECK(ring.needs_wakeup());
  plain.flags = 0;
  CHECK_FALSE(ring.needs_wakeup());
}

TEST_CASE("both ends on one memory keep order over many wraps of the 32-bit index") {
  const auto seed = GENERATE(range(1U, 20U));
  CAPTURE(seed);
  PlainRing plain{0xffffff00U};
  ProducerRing<std::uint64_t> in{plain.memory()};
  ConsumerRing<std::uint64_t> out{plain.memory()};
  std::mt19937 engine{seed};
  const auto random = [&] { return static_cast<std::uint32_t>(engine()); };
  std::deque<std::uint64_t> model;
  std::uint64_t next = 0;
  std::size_t published = 0;
  for (int step = 0; step < 4000; ++step) {
    for (std::uint32_t n = random() % 5; n > 0; --n) {
      const bool is_taken = in.push(next);
      REQUIRE(is_taken == (model.size() < PlainRing::size));
      if (is_taken) model.push_back(next++);
    }
    if (random() % 2 == 0) {
      in.publish();
      published = model.size();
    }
    const std::uint32_t ready = out.acquire(random() % 10);
    REQUIRE(ready <= published);
    for (std::uint32_t i = 0; i < ready; ++i) REQUIRE(out[i] == model[i]);
    const std::uint32_t taken = ready == 0 ? 0 : random() % (ready + 1);
    out.release(taken);
    model.erase(model.begin(), model.begin() + taken);
    published -= taken;
  }
  CHECK(next > 2000);
  CHECK(plain.producer < 0xffffff00U);  // the index did wrap
}
