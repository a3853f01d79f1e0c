// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// The links between threads: SpscRing and Latest.
#include <atomic>
#include <catch2/catch.hpp>
#include <cstdint>
#include <thread>

#include "engine/base/latest.hpp"
#include "engine/base/spsc_ring.hpp"

using namespace onehop;

namespace {
// Wide enough that a torn read has many places to show.
struct Wall {
  std::uint64_t brick[13] = {};
};
}  // namespace

TEST_CASE("spsc_ring refuses at capacity, keeps order, and goes on over many wraps",
          "[base][spsc_ring]") {
  SpscRing<std::uint32_t> ring{5};
  REQUIRE(ring.capacity() == 8);
  std::uint32_t item = 0;
  CHECK_FALSE(ring.pop(item));
  std::uint32_t pushed = 0, popped = 0;
  for (int round = 0; round < 100; ++round) {
    while (ring.push(pushed)) ++pushed;
    CHECK(ring.size() == ring.capacity());
    // An odd number out, so that the wrap falls at each index in turn.
    for (int i = 0; i < 3; ++i) {
      REQUIRE(ring.pop(item));
      REQUIRE(item == popped++);
    }
    CHECK(ring.size() == ring.capacity() - 3);
  }
  while (ring.pop(item)) REQUIRE(item == popped++);
  CHECK(pushed == popped);
  CHECK(ring.is_empty());
}

// Goal:   what one thread pushes, the other pops once, whole and in order.
// Method: a small ring, so that both ends meet full and empty often; every item carries its number
// 13 times. Bounds: exact.
TEST_CASE("spsc_ring passes every item once between two threads", "[base][spsc_ring]") {
  constexpr std::uint64_t items = 200'000;
  SpscRing<Wall> ring{16};
  std::thread producer{[&ring] {
    for (std::uint64_t i = 0; i < items;) {
      Wall wall;
      for (auto& brick : wall.brick) brick = i;
      if (ring.push(wall))
        ++i;
      else
        std::this_thread::yield();
    }
  }};
  std::uint64_t wrong = 0;
  for (std::uint64_t i = 0; i < items;) {
    Wall wall;
    if (!ring.pop(wall)) {
      std::this_thread::yield();
      continue;
    }
    for (const auto brick : wall.brick) wrong += brick != i;
    ++i;
  }
  producer.join();
  CHECK(wrong == 0);
  CHECK(ring.is_empty());
}

// Goal:   a reader never sees a mixture of two stores, nor an older value after a newer one.
// Method: one writer without pause, one reader without pause, until the reader has seen 20000
// changes. Bounds: exact. Taking the sequence check out of load() gave torn reads within a second.
TEST_CASE("latest never gives a mixture of two values", "[base][latest]") {
  Latest<Wall> cell;
  std::atomic<bool> is_stopped{false};
  std::thread writer{[&] {
    for (std::uint64_t i = 1; !is_stopped.load(std::memory_order_relaxed); ++i) {
      Wall wall;
      for (auto& brick : wall.brick) brick = i;
      cell.store(wall);
      if (i % 64 == 0)
        std::this_thread::yield();  // lets the reader in on a machine with one free core
    }
  }};
  std::uint64_t torn = 0, older = 0, changes = 0, newest = 0;
  for (int reads = 0; changes < 20'000 && reads < 50'000'000; ++reads) {
    const Wall wall = cell.load();
    for (const auto brick : wall.brick) torn += brick != wall.brick[0];
    older += wall.brick[0] < newest;
    changes += wall.brick[0] != newest;
    newest = wall.brick[0];
    if (wall.brick[0] == 0) std::this_thread::yield();
  }
  is_stopped.store(true, std::memory_order_relaxed);
  writer.join();
  CHECK(torn == 0);
  CHECK(older == 0);
  CHECK(changes > 0);
}
