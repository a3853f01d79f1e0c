// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Goal:   a frame that a thread of a driver's own frees is counted, and comes back to the thread
// that sends. Method: a pool as a device has one, its owner, and a second thread that frees; which
// part of the pool a frame lies in shows
//         in who can take it.
#include <catch2/catch.hpp>

#include <rte_mbuf.h>

#include <atomic>
#include <set>
#include <thread>
#include <vector>

#include "engine/base/spsc_ring.hpp"
#include "engine/port/dpdk/frame_pool.hpp"
#include "tests/contract/dpdk_pair.hpp"

using namespace onehop;
using namespace onehop::test;

namespace {

constexpr std::uint32_t pool_frames = 64;

using Frames = std::vector<rte_mbuf*>;

dpdk::FramePool make_pool() {
  (void)eal();
  return take_or_throw(dpdk::FramePool::make({.frames = pool_frames, .room_bytes = 2048}));
}

/// take_all empties what the calling thread can take from.
Frames take_all(const dpdk::FramePool& pool) {
  Frames frames;
  while (rte_mbuf* const frame = rte_pktmbuf_alloc(pool.get())) frames.push_back(frame);
  return frames;
}

void free_all(const Frames& frames) {
  for (rte_mbuf* const frame : frames) rte_pktmbuf_free(frame);
}

template <class Work>
void on_another_thread(Work work) {
  std::thread{work}.join();
}

}  // namespace

TEST_CASE("what another thread frees is counted once and can be taken again", "[engine][port]") {
  const dpdk::FramePool pool = make_pool();
  const Frames frames = take_all(pool);
  REQUIRE(std::set(frames.begin(), frames.end()).size() == pool_frames);
  std::int64_t bytes = 0;
  for (std::uint32_t i = 0; i < pool_frames; ++i) {
    if (i % 4 == 3) continue;  // not marked: never sent
    dpdk::FramePool::mark(frames[i], 100 + i);
    bytes += 100 + i;
  }
  on_another_thread([&] { free_all(frames); });
  CHECK(pool.freed_frames() == pool_frames * 3 / 4);
  CHECK(pool.freed_bytes() == Bytes{bytes});
  const Frames again = take_all(pool);
  CHECK(std::set(again.begin(), again.end()) == std::set(frames.begin(), frames.end()));
  free_all(again);
  CHECK(pool.freed_frames() == pool_frames * 3 / 4);  // a mark counts once
  CHECK(pool.freed_bytes() == Bytes{bytes});
}

// The owner's part has no lock, so nobody else may touch it.
TEST_CASE("another thread takes what others freed and nothing of the owner's", "[engine][port]") {
  const dpdk::FramePool pool = make_pool();
  on_another_thread([&] { CHECK(take_all(pool).empty()); });
  Frames frames = take_all(pool);
  Frames some{frames.begin(), frames.begin() + 10};
  frames.erase(frames.begin(), frames.begin() + 10);
  free_all(frames);
  on_another_thread([&] {
    CHECK(take_all(pool).empty());
    free_all(some);
    const Frames taken = take_all(pool);
    CHECK(std::set(taken.begin(), taken.end()) == std::set(some.begin(), some.end()));
    free_all(taken);
  });
  const Frames all = take_all(pool);
  CHECK(all.size() == pool_frames);
  free_all(all);
}

TEST_CASE("who adopts the pool is its owner", "[engine][port]") {
  dpdk::FramePool pool = make_pool();
  on_another_thread([&] {
    pool.adopt();
    const Frames frames = take_all(pool);
    CHECK(frames.size() == pool_frames);
    for (rte_mbuf* const frame : frames) dpdk::FramePool::mark(frame, 1);
    free_all(frames);
  });
  CHECK(pool.freed_frames() == pool_frames);
  pool.adopt();
  const Frames frames = take_all(pool);
  CHECK(frames.size() == pool_frames);
  free_all(frames);
}

// Bounds: each frame is taken and freed about 3,000 times, by both threads at once; none is lost,
// doubled or counted wrong.
TEST_CASE("owner and another thread free at once and no frame is lost", "[engine][port]") {
  constexpr std::uint64_t rounds = 200'000;
  constexpr int tries_max = 10'000'000;  // on end: a frame that does not come back is lost
  const dpdk::FramePool pool = make_pool();
  SpscRing<rte_mbuf*> handed{pool_frames};
  std::atomic<bool> is_over{false};
  std::thread other{[&] {
    for (rte_mbuf* frame = nullptr;;) {
      const bool is_last = is_over.load(std::memory_order_acquire);
      if (handed.pop(frame))
        rte_pktmbuf_free(frame);
      else if (is_last)
        return;
      else
        std::this_thread::yield();
    }
  }};
  std::uint64_t taken = 0;
  for (int tries = 0; taken < rounds && tries < tries_max; ++tries) {
    rte_mbuf* const frame = rte_pktmbuf_alloc(pool.get());
    if (frame == nullptr) {
      std::this_thread::yield();
      continue;
    }
    tries = 0;
    dpdk::FramePool::mark(frame, 1000);
    ++taken;
    if (taken % 16 == 0 || !handed.push(frame)) rte_pktmbuf_free(frame);
  }
  is_over.store(true, std::memory_order_release);
  other.join();
  CHECK(taken == rounds);
  CHECK(pool.freed_frames() == rounds);
  CHECK(pool.freed_bytes() == Bytes{1000 * static_cast<std::int64_t>(rounds)});
  const Frames all = take_all(pool);
  CHECK(std::set(all.begin(), all.end()).size() == pool_frames);
  CHECK(all.size() == pool_frames);
  free_all(all);
}
